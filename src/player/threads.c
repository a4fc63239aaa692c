// Births and ends of threads. Stacks are shared mappings, so that they do not count as the allocator's, and are used
// again once their thread has been joined.
#include "player/player.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 512 << 10, SEAT_BYTES = 4096 };

// Where a thread sits: this, and its stack above.
struct seat {
    struct player_thread thread;
    pthread_t id;
    struct seat *next; // in the list of those whose thread is over
    bool at_start;
};
_Static_assert(sizeof(struct seat) <= SEAT_BYTES, "a seat's head is a page");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seat *over;      // their threads can be joined without waiting long
static uint64_t unjoined;      // under the lock
static _Atomic uint32_t overs; // futex: grows when a thread is over
static _Atomic uint32_t going; // futex: 1 when the clock runs

static void *map_shared(size_t bytes, int flags)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void player_thread_init(struct player_thread *t, uint32_t number)
{
    struct histogram *calls = t->calls;
    *t = (struct player_thread){.number = number, .line = &player.lines[number], .calls = calls};
    t->pc = player.words + player.threads[number].first_word;
    t->window = PLAYER_NO_WINDOW;
    if (player.results->timed && !calls) {
        t->calls = map_shared(RESULTS_HISTOGRAMS * sizeof *calls, 0);
        if (!t->calls)
            player_fail(RESULTS_NO_SETUP, NULL, 0, 0, errno);
    }
}

static void merge_calls(struct player_thread *t)
{
    for (unsigned i = 0; t->calls && i < RESULTS_HISTOGRAMS; i++) {
        // What has not been used must not be looked at: that would make its memory.
        if ((i >= RESULTS_KINDS || player.plan->by_kind[i]) && t->calls[i].count) {
            histogram_merge(&player.results->calls[i], &t->calls[i]);
            memset(&t->calls[i], 0, sizeof t->calls[i]);
        }
    }
}

void player_thread_begins(const struct player_thread *t)
{
    struct results_span *span = &results_spans(player.results)[t->number];
    uint64_t now = clock_monotonic_ns();
    span->begin_ns = now > player.start_ns ? now - player.start_ns : 0;
    span->begin_event = atomic_load_explicit(&player.events, memory_order_relaxed);
}

void player_thread_over(struct player_thread *t)
{
    struct results_span *span = &results_spans(player.results)[t->number];
    span->end_ns = clock_monotonic_ns() - player.start_ns;
    span->end_event = atomic_load_explicit(&player.events, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    merge_calls(t);
    player.results->figures.sleeps += t->sleeps;
    player.results->figures.blocked_waits += t->unmet;
    player.results->figures.stalls += t->reader_waits;
    player.results->figures.stall_ns += t->reader_wait_ns;
    player.results->figures.free_space_wait_ns += t->room_wait_ns;
    player.results->requested_bytes += t->requested_bytes;
    player.results->usable_bytes += t->usable_bytes;
    if (t->late_ns > player.results->figures.max_lag_ns)
        player.results->figures.max_lag_ns = t->late_ns;
    pthread_mutex_unlock(&lock);
}

// pthread_create lets libc allocate, of which the null allocator must give real memory.
static int create(pthread_t *id, const pthread_attr_t *attributes, void *(*body)(void *), void *arg)
{
    if (player.null_real)
        player.null_real(true);
    int rc = pthread_create(id, attributes, body, arg);
    if (player.null_real)
        player.null_real(false);
    return rc;
}

static void *run(void *arg)
{
    struct seat *seat = arg;
    if (seat->at_start) {
        while (!atomic_load_explicit(&going, memory_order_acquire))
            player_futex_wait(&going, 0);
    }
    player_thread_begins(&seat->thread);
    player_play(&seat->thread);
    player_thread_over(&seat->thread);
    pthread_mutex_lock(&lock);
    seat->next = over;
    over = seat;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add_explicit(&overs, 1, memory_order_release);
    player_futex_wake(&overs);
    return NULL;
}

static struct seat *take_over(void)
{
    pthread_mutex_lock(&lock);
    struct seat *seat = over;
    if (seat) {
        over = seat->next;
        unjoined--;
    }
    pthread_mutex_unlock(&lock);
    if (seat)
        pthread_join(seat->id, NULL);
    return seat;
}

static struct seat *new_seat(void)
{
    struct seat *seat = take_over();
    return seat ? seat : map_shared(SEAT_BYTES + STACK_BYTES, 0);
}

static void start(const struct player_thread *parent, uint32_t number, bool at_start)
{
    pthread_attr_t attributes;
    struct seat *seat = new_seat();
    if (!seat)
        player_fail(RESULTS_NO_THREAD, parent, 0, number, errno);
    player_thread_init(&seat->thread, number);
    seat->at_start = at_start;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, (char *)seat + SEAT_BYTES, STACK_BYTES);
    pthread_mutex_lock(&lock);
    unjoined++;
    pthread_mutex_unlock(&lock);
    int rc = create(&seat->id, &attributes, run, seat);
    if (rc)
        player_fail(RESULTS_NO_THREAD, parent, 0, number, rc);
    pthread_attr_destroy(&attributes);
}

void player_birth(const struct player_thread *parent, uint32_t number)
{
    if (player.threads[number].first_word)
        start(parent, number, false);
}

void player_start_threads(void)
{
    for (uint32_t i = 1; i < player.plan->n_threads; i++) {
        if (player.threads[i].at_start && player.threads[i].first_word)
            start(NULL, i, true);
    }
}

void player_go(void)
{
    atomic_store_explicit(&going, 1, memory_order_release);
    player_futex_wake(&going);
}

void player_join_all(void)
{
    for (;;) {
        uint32_t seen = atomic_load_explicit(&overs, memory_order_acquire);
        while (take_over()) {
        }
        pthread_mutex_lock(&lock);
        uint64_t left = unjoined;
        pthread_mutex_unlock(&lock);
        if (!left)
            return;
        player_futex_wait(&overs, seen);
    }
}
