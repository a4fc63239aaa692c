// Starts and joins threads. Their stacks are in shared mappings, which do not count as the
// allocator's memory. A stack is reused after a join.
#include "replay/player/player.h"

#include <errno.h>
#include <sys/mman.h>

#if defined(__SANITIZE_THREAD__)
#define STACK_BYTES (8u << 20) // includes ThreadSanitizer's per-thread data
#else
#define STACK_BYTES (512u << 10)
#endif

enum {
    WORKER_BYTES = 4096,
    // Workers are mapped this many at a time, because the kernel limits the number of mappings
    // (vm.max_map_count, 65530 by default).
    MAPPED_WORKERS = 16,
};

// Start of a thread's own memory, followed by its stack.
struct worker {
    struct player_thread thread;
    struct player_latency latencies[PLAYER_LATENCIES];
    pthread_t id;
    struct worker *next; // next worker in the list `exited` or `joined`
    bool at_start;
};
_Static_assert(sizeof(struct worker) <= WORKER_BYTES, "a worker's head is a page");

// Latencies of several threads. Threads share histograms, because the histograms need 3 MB.
struct shard {
    pthread_mutex_t lock;
    bool used[RESULTS_HISTOGRAMS]; // reading an unused histogram would populate its memory
    struct histogram calls[RESULTS_HISTOGRAMS]; // as in struct results
};

enum { SHARDS = 16 };

static void (*play_stream)(struct player_thread *t, const uint64_t *from);
static struct shard *shards; // NULL unless calls are timed
static struct player_latency main_latencies[PLAYER_LATENCIES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *exited;     // workers that can be joined; protected by the lock
static struct worker *joined;     // workers that can be reused; protected by the lock
static uint64_t n_joined;         // number of joins so far; protected by the lock
static char *unused, *unused_end; // memory mapped for workers; protected by the lock
static uint32_t mapped;           // number of workers; protected by the lock
// `kept` is the number of threads that have made their calls but must not exit before `over`. Both
// variables are protected by the lock.
static uint64_t unjoined, kept;
static _Atomic uint32_t exits;    // futex; incremented when a thread exits, is joined or is kept
static _Atomic bool joining;      // a thread has waited on `exits`
static _Atomic uint32_t released; // futex; 1 from the start of the measured part
static _Atomic uint32_t over;     // futex; 1 from the end of the measured part

void player_threads_init(void (*play)(struct player_thread *t, const uint64_t *from))
{
    play_stream = play;
    if (!player.results->task.timed)
        return;
    shards = player_map_shared(SHARDS * sizeof *shards, MAP_NORESERVE);
    for (unsigned i = 0; i < SHARDS; i++)
        pthread_mutex_init(&shards[i].lock, NULL);
}

static void init_thread(struct player_thread *t, uint32_t number, uint32_t shard,
                        struct player_latency *latencies)
{
    *t = (struct player_thread){.number = number,
                                .line = &player.lines[number],
                                .shard = shard,
                                .latencies = latencies,
                                .gap_ns = player.results->task.gap_ns};
    t->at = &results_positions(player.results)[number];
    t->window = PLAYER_NO_WINDOW;
}

void player_thread_init(struct player_thread *t, uint32_t number)
{
    init_thread(t, number, 0, main_latencies);
}

struct results_position *player_unthreaded_position(void)
{
    return &results_positions(player.results)[player.results->n_spans];
}

static void add_latency(struct shard *shard, unsigned i, uint64_t ticks)
{
    shard->used[i] = true;
    histogram_add(&shard->calls[i], ticks);
}

void player_add_latencies(struct player_thread *t)
{
    if (!t->n_latencies)
        return;
    struct shard *shard = &shards[t->shard];
    pthread_mutex_lock(&shard->lock);
    for (uint32_t i = 0; i < t->n_latencies; i++) {
        struct player_latency l = t->latencies[i];
        add_latency(shard, l.kind, l.ticks);
        if (l.size_class < RESULTS_SIZES)
            add_latency(shard, RESULTS_KINDS + l.size_class, l.ticks);
    }
    pthread_mutex_unlock(&shard->lock);
    t->n_latencies = 0;
}

void player_merge_latencies(void)
{
    for (unsigned n = 0; shards && n < SHARDS && n < player.plan->n_threads; n++) {
        for (unsigned i = 0; i < RESULTS_HISTOGRAMS; i++) {
            if (shards[n].used[i])
                histogram_merge(&player.results->calls[i], &shards[n].calls[i]);
        }
    }
}

void player_thread_started(const struct player_thread *t)
{
    struct results_span *span = &results_spans(player.results)[t->number];
    uint64_t now = clock_monotonic_ns();
    span->begin_ns = now > player.start_ns ? now - player.start_ns : 0;
    span->begin_event = atomic_load_explicit(&player.events, memory_order_relaxed);
}

void player_thread_exited(struct player_thread *t)
{
    struct results_span *span = &results_spans(player.results)[t->number];
    span->end_ns = clock_monotonic_ns() - player.start_ns;
    span->end_event = atomic_load_explicit(&player.events, memory_order_relaxed);
    player_add_latencies(t);
    pthread_mutex_lock(&lock);
    player.results->figures.sleeps += t->waits.sleeps;
    player.results->figures.blocked_waits += t->waits.blocked;
    player.results->figures.coupled_waits += t->coupled_waits.blocked;
    player.results->figures.touch_ns += t->touch_ns;
    player.results->figures.refused_calls += t->refused;
    player.results->figures.stalls += t->stalls;
    player.results->figures.stall_ns += t->stall_ns;
    player.results->figures.free_space_wait_ns += t->free_space_wait_ns;
    player.results->calls_made += t->calls;
    player.results->report.requested_bytes += t->requested_bytes;
    player.results->report.usable_bytes += t->usable_bytes;
    if (t->max_lag_ns > player.results->figures.max_lag_ns)
        player.results->figures.max_lag_ns = t->max_lag_ns;
    pthread_mutex_unlock(&lock);
}

// Creates a thread. pthread_create() allocates memory, so the null allocator must return real
// memory here.
static int create_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*body)(void *),
                         void *arg)
{
    if (player.null_real)
        player.null_real(true);
    int rc = pthread_create(id, attributes, body, arg);
    if (player.null_real)
        player.null_real(false);
    return rc;
}

// Pairs with join_until(). Either this thread sees `joining`, or the joiner sees the change.
static void notify_joiner(void)
{
    atomic_fetch_add(&exits, 1);
    if (atomic_load(&joining))
        player_futex_wake(&exits);
}

static void keep_thread(void)
{
    pthread_mutex_lock(&lock);
    kept++;
    pthread_mutex_unlock(&lock);
    notify_joiner();
    while (!atomic_load_explicit(&over, memory_order_acquire))
        player_futex_wait(&over, 0);
    pthread_mutex_lock(&lock);
    kept--;
    pthread_mutex_unlock(&lock);
}

static void push_worker(struct worker **list, struct worker *worker)
{
    worker->next = *list;
    *list = worker;
}

static struct worker *pop_worker(struct worker **list)
{
    pthread_mutex_lock(&lock);
    struct worker *worker = *list;
    *list = worker ? worker->next : NULL;
    pthread_mutex_unlock(&lock);
    return worker;
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    if (worker->at_start) {
        while (!atomic_load_explicit(&released, memory_order_acquire))
            player_futex_wait(&released, 0);
    }
    player_thread_started(&worker->thread);
    play_stream(&worker->thread, player_first_word(&worker->thread));
    player_thread_exited(&worker->thread);
    if (player.threads[worker->thread.number].outlives)
        keep_thread();
    pthread_mutex_lock(&lock);
    push_worker(&exited, worker);
    pthread_mutex_unlock(&lock);
    notify_joiner();
    return NULL;
}

// Joins a thread that has exited. Returns false if no such thread is left.
static bool join_exited(void)
{
    struct worker *worker = pop_worker(&exited);
    if (!worker)
        return false;
    pthread_join(worker->id, NULL);
    pthread_mutex_lock(&lock);
    push_worker(&joined, worker);
    unjoined--;
    n_joined++;
    pthread_mutex_unlock(&lock);
    notify_joiner();
    return true;
}

// Joins threads until `n` threads have been joined since the start, or until only threads that
// outlive the recording are left.
static void join_until(uint64_t n)
{
    atomic_store(&joining, true);
    for (;;) {
        uint32_t seen = atomic_load(&exits);
        while (join_exited()) {
        }
        pthread_mutex_lock(&lock);
        bool done = n_joined >= n || unjoined == (atomic_load(&over) ? 0 : kept);
        pthread_mutex_unlock(&lock);
        if (done)
            return;
        player_futex_wait(&exits, seen);
    }
}

// Returns memory for one worker. The memory is from a mapping for several workers, or from a
// mapping for one worker if address space is short.
static struct worker *map_worker(void)
{
    const size_t bytes = WORKER_BYTES + STACK_BYTES;
    pthread_mutex_lock(&lock);
    if (unused == unused_end) {
        unused = player_try_map(MAPPED_WORKERS * bytes, MAP_NORESERVE);
        unused_end = unused ? unused + MAPPED_WORKERS * bytes : NULL;
    }
    struct worker *worker = (struct worker *)unused;
    unused += unused ? bytes : 0;
    uint32_t shard = ++mapped % SHARDS;
    pthread_mutex_unlock(&lock);
    if (!worker)
        worker = player_try_map(bytes, MAP_NORESERVE);
    if (worker)
        worker->thread.shard = shard;
    return worker;
}

static _Noreturn void fail_to_start(const struct player_thread *parent, uint32_t number, int error)
{
    player_claim_failure();
    player.results->live_threads = unjoined - 1;
    player_report_failure(RESULTS_NO_THREAD, parent, 0, number, error);
}

static void start_worker(const struct player_thread *parent, uint32_t number, bool at_start)
{
    pthread_attr_t attributes;
    pthread_mutex_lock(&lock);
    unjoined++;
    pthread_mutex_unlock(&lock);
    join_exited();
    struct worker *worker = pop_worker(&joined);
    if (!worker)
        worker = map_worker();
    if (!worker)
        fail_to_start(parent, number, errno);
    init_thread(&worker->thread, number, worker->thread.shard, worker->latencies);
    worker->at_start = at_start;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, (char *)worker + WORKER_BYTES, STACK_BYTES);
    int rc = create_thread(&worker->id, &attributes, run_worker, worker);
    if (rc)
        fail_to_start(parent, number, rc);
    pthread_attr_destroy(&attributes);
}

void player_wait_for_exits(uint64_t n)
{
    if (n && player.plan->waits_for_exits)
        join_until(n);
}

// Allocators reuse the memory of exited threads for new threads: glibc the arena, mimalloc the
// pages. The program joined the earlier threads before it started this thread, so wait for those
// threads.
void player_start_thread(const struct player_thread *parent, uint32_t number, uint64_t exits_before)
{
    player_wait_for_exits(exits_before);
    if (player.threads[number].first_word)
        start_worker(parent, number, false);
}

void player_start_threads(void)
{
    for (uint32_t i = 1; i < player.plan->n_threads; i++) {
        if (player.threads[i].at_start && player.threads[i].first_word)
            start_worker(NULL, i, true);
    }
}

void player_release_threads(void)
{
    atomic_store_explicit(&released, 1, memory_order_release);
    player_futex_wake(&released);
}

void player_join_all(void)
{
    join_until(UINT64_MAX);
}

void player_end_threads(void)
{
    atomic_store_explicit(&over, 1, memory_order_release);
    player_futex_wake(&over);
    player_join_all();
}
