// Tests the producer of the spool together with the drain: the drain must deliver exactly the
// recorded events. The producer runs in a child process.
#include "base/clock.h"
#include "capture/producer/producer_private.h"
#include "capture/spool/attach.h"
#include "record/drain/drain.h"
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#endif

enum { THREADS = 5, DEADLINE_S = 120, MANY_THREADS = PRODUCER_MAX_THREADS };

// Events delivered by the drain. The main stream of each thread has the blocks 0, 1, 2, …
struct seen {
    uint64_t blocks[THREADS + 1], in_handlers, lost, starts, wrong, gaps, words[THREADS + 1];
};

// Shared with the producer: number of events recorded in signal handlers.
static _Atomic uint64_t *in_handlers;

// Returns the index of the thread's entry. The last entry belongs to the thread MANY_THREADS.
static uint32_t place_of(const struct trace_segment *g)
{
    return g->thread == MANY_THREADS ? THREADS : g->thread;
}

// Returns the allocation of block `i`. Some addresses are far apart, and some blocks have several
// elements.
static struct event block_of(uint64_t i)
{
    bool counted = i % 5 == 4;
    return (struct event){.kind = counted ? HT_CALLOC : HT_MALLOC,
                          .size = i % 50000,
                          .count = counted ? i % 4 : 0,
                          .result = 4096 + 16 * (i % 100000) + (i % 3 ? 0 : 0x7f0000000000)};
}

static void see_event(struct seen *seen, const struct trace_segment *g, const struct event *ev)
{
    uint64_t i = seen->blocks[place_of(g)];
    const struct event want = block_of(i);
    switch (ev->kind) {
    case HT_MALLOC:
    case HT_CALLOC:
        seen->wrong += ev->kind != want.kind || ev->size != want.size || ev->count != want.count ||
                       ev->result != want.result;
        seen->blocks[place_of(g)]++;
        break;
    case HT_FREE:
        seen->in_handlers++;
        break;
    case HT_LOST:
        seen->lost += ev->value;
        seen->blocks[place_of(g)] += ev->value;
        break;
    default:
        seen->starts += ev->kind == HT_THREAD_START;
    }
}

static int see(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct seen *seen = ctx;
    struct codec_state state = {g->epoch0, g->base0};
    struct event ev;
    (void)s;
    (void)e;
    assert_in_range(place_of(g), 0, THREADS);
    if (g->stream == 0) {
        seen->gaps += g->first_word != seen->words[place_of(g)];
        seen->words[place_of(g)] = g->first_word + g->n_words;
    }
    for (uint32_t at = 0, used; at < g->n_words; at += used) {
        used = codec_get(&state, g->words + at, g->n_words - at, &ev);
        assert_int_not_equal(used, 0);
        if (ev.kind)
            see_event(seen, g, &ev);
    }
    g->epoch_end = state.epoch;
    g->base_end = state.base;
    return 0;
}

// Records a block the way the wrapper of malloc does.
static void put_block(uint64_t i)
{
    const struct event ev = block_of(i);
    const void *frame = __builtin_frame_address(0);
    bool done = ev.kind == HT_CALLOC && ev.count != 1
                    ? producer_put_calloc(ev.count, ev.size, ev.result, NULL, frame)
                    : producer_put_allocated(ev.kind, ev.size, ev.result) ||
                          producer_put_retry(ev.kind, ev.size, ev.result, NULL, frame);
    if (!done)
        producer_record(&ev, NULL);
}

static void put_blocks(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        put_block(i);
}

// Forks a producer for the session.
static pid_t begin(const struct drain *c)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(DEADLINE_S);
        setenv(SPOOL_ENV_DIR, c->dir, 1);
        producer_start();
    }
    return child;
}

static void finish(void)
{
    producer_finish();
    _exit(0);
}

static struct drain open_session(uint32_t flags)
{
    struct drain c;
    struct err e = {0};
    assert_int_equal(drain_open(&c, flags, CLOCK_KIND_TSC, "", &e), 0);
    return c;
}

// Drains until the spool has ended. Returns the maximum number of chunks in use.
static uint32_t drain_all(struct drain *c, struct seen *seen, pid_t child)
{
    const struct drain_sink sink = {.ctx = seen, .segment = see};
    struct err e = {0};
    uint64_t end_ns = clock_monotonic_ns() + DEADLINE_S * 1000000000ull;
    uint32_t chunks = 0;
    bool found = false;
    while (!found || c->n_spools) {
        assert_true(clock_monotonic_ns() < end_ns);
        uint32_t wakeups = drain_wakeups(c);
        drain_check_ends(c);
        found |= drain_discover(c, &e) > 0;
        assert_int_equal(drain_drain(c, &sink, &e), 0);
        for (size_t i = c->n_spools; i-- > 0;) {
            chunks = atomic_load(&c->spools[i]->header->fresh_chunks);
            seen->gaps += c->spools[i]->lost_words;
            if (c->spools[i]->dead)
                drain_drop(c, i);
        }
        drain_sleep(c, wakeups, 1000000);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return chunks;
}

// Waits until the child has exited, which must succeed. alarm() enforces the deadline.
static void wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void one_thread(void **state)
{
    (void)state;
    // The sizes include values around the ends of chunks.
    const uint64_t sizes[] = {0, 1, 100, 8181, 8182, 8183, 8184, 8185, 16368, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct drain c = open_session(0);
        struct seen seen = {0};
        pid_t child = begin(&c);
        if (child == 0) {
            put_blocks(sizes[i]);
            finish();
        }
        drain_all(&c, &seen, child);
        assert_int_equal(seen.blocks[0], sizes[i]);
        assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
        drain_close(&c);
    }
}

static void chunks_are_used_again(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(2000000);
        finish();
    }
    uint32_t chunks = drain_all(&c, &seen, child);
    assert_int_equal(seen.blocks[0], 2000000);
    assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
    assert_in_range(chunks, 1, SPOOL_BASE_CHUNKS + SPOOL_CHUNKS_A_THREAD);
    drain_close(&c);
}

static void *run_thread(void *thread)
{
    producer_thread_begin(thread);
    put_blocks(300000);
    return NULL;
}

static void several_threads(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        pthread_t threads[THREADS];
        for (unsigned i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, run_thread, producer_thread_create(NULL, NULL));
        put_blocks(100000);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.blocks[0], 100000);
    for (unsigned i = 1; i <= THREADS; i++)
        assert_int_equal(seen.blocks[i], 300000);
    assert_int_equal(seen.starts, THREADS);
    assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
    drain_close(&c);
}

static void *put_some_blocks(void *n)
{
    put_blocks((uintptr_t)n);
    return NULL;
}

static void run_unannounced(uint64_t blocks)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, put_some_blocks, (void *)(uintptr_t)blocks) != 0)
        _exit(5);
    pthread_join(thread, NULL);
}

// Events of threads without a state are counted as lost. Once a state is free again, the next
// thread is recorded, whatever its number.
static void more_threads_than_states(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    uint64_t *lost = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = begin(&c);
    if (child == 0) {
        struct producer_thread *last = NULL;
        put_blocks(1);
        for (unsigned i = 1; i < MANY_THREADS; i++) {
            last = producer_thread_create(NULL, NULL);
            if (!last)
                _exit(3);
        }
        if (producer_thread_create(NULL, NULL))
            _exit(4);
        run_unannounced(1234);
        *lost = spool_unrecorded(producer_inherited.spool);
        producer_thread_cancel(last);
        run_unannounced(4321);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(*lost, 1234);
    assert_int_equal(seen.blocks[THREADS], 4321);
    assert_int_equal(seen.starts, 1);
    assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
    munmap(lost, 4096);
    drain_close(&c);
}

static void on_alarm(int sig)
{
    const struct event ev = {.kind = HT_FREE, .ptr = 4096};
    (void)sig;
    if (!producer_put_plain(HT_FREE, 4096))
        producer_record(&ev, NULL);
    atomic_fetch_add(in_handlers, 1);
}

static void release(uint64_t address)
{
    const struct event ev = {.kind = HT_FREE, .ptr = address};
    if (!producer_put_plain(HT_FREE, address) && !producer_retry_plain(HT_FREE, address))
        producer_record(&ev, NULL);
}

// Records a block on the fast path if possible. Returns the stamp of its record.
static uint64_t put_stamped(void)
{
    const struct producer_stream *stream = &producer_tls.thread->streams[0];
    put_block(1);
    return codec_stamp(stream->state.epoch, stream->pos[-1]);
}

static void read_rarely(struct producer_stream *stream)
{
    stream->mask = PRODUCER_MAX_READING_MASK;
}

// Sets the position and the last reading so that the next event needs no reading of the counter.
static void prepare_unread(void)
{
    struct producer_stream *stream = &producer_tls.thread->streams[0];
    do {
        put_block(1);
        read_rarely(stream);
    } while (((uintptr_t)stream->pos & PRODUCER_MAX_READING_MASK) == 0);
}

// Returns true if the next event reads the counter.
static bool next_event_reads(void)
{
    uint64_t begin = clock_counter();
    return put_stamped() >= begin >> CODEC_STAMP_SHIFT;
}

// Returns true if an event gets the stamp of an earlier reading. Tries several times, because the
// recorder may request a reading at any time.
static bool some_event_is_unread(void)
{
    enum { TRIES = 1000 };
    for (unsigned i = 0; i < TRIES; i++) {
        prepare_unread();
        if (!next_event_reads())
            return true;
    }
    return false;
}

// Records the event of a signal handler that interrupts the writing of a record. Calls the handler
// directly, because the kernel would request a reading when it delivers a signal.
static void interrupt_record(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    on_alarm(SIGVTALRM);
    producer_leave(was);
}

// Returns the offset of struct rseq, or 0 if libc does not register it with the kernel.
static ptrdiff_t rseq_offset(void)
{
#ifdef RSEQ_SIG
    return __rseq_size ? __rseq_offset : 0;
#else
    return 0;
#endif
}

static long count_sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// Returns true if the kernel clears the word of the last reading while the thread sleeps, so that
// the next event is a reading. If the time passes before the thread has been switched out,
// nanosleep() does not switch it out.
static bool switches_are_detected(void)
{
    enum { TRIES = 1000 };
    const struct timespec pause = {.tv_nsec = 1000};
    const uint64_t section = (uintptr_t)&producer_section;
    unsigned tries = 0;
    // The loop repeats the test, because the thread may also be switched out right after the
    // reading.
    do
        producer_read_counter(&producer_tls.thread->streams[0]);
    while (*producer_section_word() != section && ++tries < TRIES);
    for (long sleeps = count_sleeps(); count_sleeps() == sleeps;)
        nanosleep(&pause, NULL);
    return tries < TRIES && *producer_section_word() != section;
}

// Checks the rules for sparse readings. Returns 0 if all rules hold, or the number of the first
// rule that does not hold.
static int check_sparse_readings(void)
{
    if (rseq_offset())
        producer_set_rseq(rseq_offset());
    put_block(1);
    struct producer_thread *t = producer_tls.thread;
    struct producer_stream *stream = &t->streams[0];
    if (!some_event_is_unread())
        return 10;
    // A reading by count, after which the next event is a reading because much time has passed.
    do {
        read_rarely(stream);
        stream->ticks -= producer_usual_ticks();
        put_block(1);
    } while ((uintptr_t)(stream->pos - 1) & PRODUCER_MAX_READING_MASK);
    if (stream->mask != PRODUCER_EACH_WORD || !next_event_reads())
        return 11;
    prepare_unread();
    atomic_fetch_add(&stream->readings->sequence, SPOOL_READ_STEP);
    if (!next_event_reads())
        return 12;
    prepare_unread();
    producer_before_fork();
    if (put_stamped() < producer_inherited.fork_stamp)
        return 13;
    prepare_unread();
    if (producer_control(CONTROL_PAUSE) || producer_control(CONTROL_RESUME) || !next_event_reads())
        return 14;
    prepare_unread();
    interrupt_record();
    if (!t->streams[1].last_stamp || put_stamped() < t->streams[1].last_stamp)
        return 15;
    if (atomic_load(&stream->readings->unread_words) == 0)
        return 16;
    if (rseq_offset() && !switches_are_detected())
        return 18;
    // The recorder requests readings. alarm() enforces the deadline.
    uint32_t sequence = atomic_load(&stream->readings->sequence);
    while (atomic_load(&stream->readings->sequence) == sequence)
        sched_yield();
    producer_thread_cancel(producer_thread_create(NULL, NULL));
    return producer_tls.owner ? 0 : 17;
}

// A process with one thread reads the counter at few events. It must read the counter at each event
// whose stamp must be later than another stamp.
static void sparse_readings(void **state)
{
    (void)state;
    in_handlers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0)
        _exit(check_sparse_readings());
    drain_all(&c, &seen, child);
    assert_int_equal(seen.in_handlers, 1);
    munmap((void *)in_handlers, 4096);
    drain_close(&c);
}

// With --clock=exact, and without a recorder that requests readings, every event reads the counter.
static void readings_at_each_event(void **state)
{
    (void)state;
    struct drain c = open_session(SPOOL_EXACT_CLOCK);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(2);
        if (producer_tls.thread->streams[0].readings || !next_event_reads())
            _exit(3);
        finish();
    }
    drain_all(&c, &seen, child);
    drain_close(&c);
}

// Returns the unit of the address, or 0 if the address has no unit.
static uint32_t unit_of(uint64_t address)
{
    const _Atomic uint8_t *unit = producer_unit_at(address);
    return unit ? atomic_load(unit) : 0;
}

static void set_unit(uint64_t address, uint32_t value)
{
    atomic_store(producer_unit_at(address), (uint8_t)value);
}

static void allocate(uint64_t address, uint64_t size)
{
    const struct event ev = {.kind = HT_MALLOC, .size = size, .result = address};
    producer_record(&ev, NULL);
}

// Returns true if the next event, a free at the address, reads the counter.
static bool free_reads(uint64_t address)
{
    const struct producer_stream *stream = &producer_tls.thread->streams[0];
    prepare_unread();
    uint64_t begin = clock_counter();
    release(address);
    return codec_stamp(stream->state.epoch, stream->pos[-1]) >= begin >> CODEC_STAMP_SHIFT;
}

// Returns true if a free at the address repeats an earlier reading. Tries several times, because
// the recorder may request a reading at any time.
static bool free_is_unread(uint64_t address)
{
    enum { TRIES = 1000 };
    for (unsigned i = 0; i < TRIES; i++) {
        if (!free_reads(address))
            return true;
    }
    return false;
}

// Checks the rules for the two addresses of a unit. Returns 0 if all rules hold, or the number of
// the first rule that does not hold.
static int check_shared_unit(uint64_t address)
{
    const uint64_t other = address + PRODUCER_BLOCK_BYTES;
    const uint32_t own = producer_tls.owner;
    set_unit(address, 0);
    allocate(address, 16);
    if (producer_unit_at(other) != producer_unit_at(address) ||
        unit_of(address) != (own | PRODUCER_NOT_SECOND) || !free_reads(other))
        return 30;
    // The thread recorded the last event at both addresses.
    if (unit_of(address) != own || !free_is_unread(address) || !free_is_unread(other))
        return 31;
    set_unit(address, (own + 1) | PRODUCER_NOT_SECOND);
    if (!free_reads(other) || unit_of(other) != (own | PRODUCER_NOT_FIRST) ||
        !free_is_unread(other) || !free_reads(address) || unit_of(address) != own)
        return 32;
    set_unit(address, own + 1);
    return !free_reads(other) || unit_of(other) != (own | PRODUCER_NOT_FIRST) ||
                   !free_reads(address) || unit_of(address) != own
               ? 33
               : 0;
}

// Frees and big blocks do not set a unit of 0. Returns 0, or the number of the first rule that does
// not hold.
static int check_units_of_zero(uint64_t address)
{
    const uint64_t new_region = address + (2ull << PRODUCER_REGION_SHIFT);
    const uint32_t own = producer_tls.owner | PRODUCER_NOT_SECOND;
    set_unit(address, 0);
    allocate(address, PRODUCER_BIG_BYTES);
    if (unit_of(address) || !free_reads(address) || unit_of(address))
        return 40;
    allocate(address, PRODUCER_BIG_BYTES - 1);
    if (unit_of(address) != own)
        return 41;
    // Events of other threads precede the event.
    set_unit(address, producer_tls.owner + 1);
    allocate(address, PRODUCER_BIG_BYTES);
    if (unit_of(address) != own || !free_is_unread(address))
        return 42;
    allocate(new_region, PRODUCER_BIG_BYTES);
    return !free_reads(new_region) || producer_unit_at(new_region) ? 43 : 0;
}

// Checks the rules for events at an address that other threads use. Returns 0 if all rules hold, or
// the number of the first rule that does not hold.
static int check_owners(void)
{
    const uint64_t address = 5ull << 40, other_region = address + (1ull << PRODUCER_REGION_SHIFT),
                   // An address with the same place in the table as `address`.
        conflicting = address ^ ((1ull << PRODUCER_REGIONS_SHIFT | 1) << PRODUCER_REGION_SHIFT);
    put_block(1);
    if (!free_is_unread(address) || producer_tls.owner || unit_of(address))
        return 10;
    producer_thread_cancel(producer_thread_create(NULL, NULL));
    put_block(1);
    const uint32_t number = producer_tls.owner, own = number | PRODUCER_NOT_SECOND;
    if (!number || !free_reads(address) || !free_reads(address))
        return 11;
    allocate(address, 1);
    if (unit_of(address) != own || !free_is_unread(address))
        return 22;
    // The last event at the address is from another thread, or from a thread without a number.
    set_unit(address, number + 1);
    if (!free_reads(address) || unit_of(address) != own)
        return 12;
    set_unit(address, 0);
    if (!free_reads(address) || !free_reads(address) || unit_of(address))
        return 13;
    int rule = check_shared_unit(address);
    rule = rule ? rule : check_units_of_zero(address);
    if (rule)
        return rule;
    // Addresses without a unit, and frees of NULL.
    allocate(address + 8, 8);
    allocate(conflicting, 8);
    if (!free_reads(address + 8) || !free_reads(address + 8) || unit_of(other_region) ||
        producer_region_at(conflicting) != producer_region_at(address) ||
        !free_reads(conflicting) || producer_unit_at(conflicting) || !free_is_unread(0))
        return 14;
    allocate(other_region, 8);
    if (!free_is_unread(other_region) || unit_of(address) != own)
        return 15;
    // A mark requests readings in all threads.
    struct producer_thread *t = producer_tls.thread;
    const struct event mark = {.kind = HT_MARK, .text = "mark", .text_bytes = 4};
    struct spool_readings *readings = t->streams[0].readings;
    uint32_t sequence = atomic_load(&readings->sequence);
    producer_record(&mark, NULL);
    if (atomic_load(&readings->sequence) == sequence)
        return 19;
    // A thread without a number does not recognize its own events.
    uint32_t index = t->index;
    t->index = PRODUCER_NUMBERED;
    producer_request_reading(&t->streams[0]);
    put_block(1);
    bool reads = free_reads(address) && free_reads(address) && !unit_of(address);
    if (producer_tls.owner != PRODUCER_UNNUMBERED || !reads)
        return 16;
    // The number of the last thread that has a number leaves the bits of the addresses free.
    t->index = PRODUCER_NUMBERED - 1;
    producer_request_reading(&t->streams[0]);
    put_block(1);
    uint32_t last = producer_tls.owner;
    t->index = index;
    if (last > UINT8_MAX || last & PRODUCER_NOT_ONE)
        return 21;
    // A child with a single thread, whose second thread gets the same number as a thread of the
    // parent.
    producer_request_reading(&t->streams[0]);
    put_block(1);
    allocate(address, 1);
    if (unit_of(address) != own)
        return 17;
    pid_t child = fork();
    if (child == 0) {
        put_block(1);
        _exit(producer_tls.owner || unit_of(address) || !producer_unit_at(address));
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 18;
}

// In a process with several threads, an event at an address whose last event is not known to be
// from the same thread reads the counter.
static void owners_of_addresses(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0)
        _exit(check_owners());
    drain_all(&c, &seen, child);
    drain_close(&c);
}

// producer_private_bytes counts the units of all regions, and no memory that was mapped after the
// end of a recording. Returns 0, or the number of the first rule that does not hold.
static int check_private_bytes(void)
{
    enum { USED = 300 };
    producer_thread_cancel(producer_thread_create(NULL, NULL));
    put_block(1);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = producer_private_bytes();
    for (uint64_t i = 0; i < USED; i++)
        allocate((5ull << 40) + (i << PRODUCER_REGION_SHIFT), 1);
    if (producer_private_bytes() < before + USED * page)
        return 50;
    producer_freed_start();
    void *freed = producer_inherited.freed, *process = producer_current();
    if (!freed || !producer_detach() || heaptape_clear())
        return 51;
    const uint64_t after = producer_private_bytes();
    void *const at[] = {freed, process};
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        char *own = mmap(at[i], page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (own == MAP_FAILED)
            return 52;
        *own = 1;
    }
    return producer_private_bytes() > after ? 53 : 0;
}

static void private_memory(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0)
        _exit(check_private_bytes());
    drain_all(&c, &seen, child);
    drain_close(&c);
}

// Signal handlers interrupt the recording of events; every event must arrive intact.
static void a_signal_handler(void **state)
{
    (void)state;
    in_handlers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct drain c = open_session(0);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        const struct itimerval often = {{0, 50}, {0, 50}}, never = {0};
        signal(SIGVTALRM, on_alarm);
        signal(SIGPROF, on_alarm);
        setitimer(ITIMER_PROF, &often, NULL);
        for (uint64_t i = 0; i < 1000000; i++) {
            put_block(i);
            if (i % 1000 == 0)
                raise(SIGVTALRM);
        }
        setitimer(ITIMER_PROF, &never, NULL);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.blocks[0], 1000000);
    assert_in_range(seen.in_handlers, 1000, UINT64_MAX);
    assert_int_equal(seen.in_handlers, atomic_load(in_handlers));
    assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
    munmap((void *)in_handlers, 4096);
    drain_close(&c);
}

// Drains only after the process has exited. Every event that did not fit must be counted.
static void lossy(void **state)
{
    (void)state;
    struct drain c = open_session(SPOOL_LOSSY);
    struct seen seen = {0};
    struct err e = {0};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(1000000);
        finish();
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(drain_discover(&c, &e), 1);
    drain_check_ends(&c);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    uint64_t lost = spool_unrecorded(c.spools[0]->header);
    assert_in_range(seen.blocks[0], 100000, 999999);
    assert_int_equal(seen.blocks[0] - seen.lost + lost, 1000000);
    assert_int_equal(seen.wrong, 0);
    wait_for(child);
    drain_close(&c);
}

// After the recorder stops, every event that the process has recorded or records later must be
// counted.
static void left_by_a_recorder_that_stops(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct seen seen = {0};
    struct err e = {0};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(3000000);
        finish();
    }
    while (drain_discover(&c, &e) == 0)
        usleep(1000);
    while (seen.blocks[0] < 100000)
        assert_int_equal(drain_drain(&c, &sink, &e), 0);
    drain_stop(&c);
    wait_for(child);
    struct drain_spool *s = c.spools[0];
    uint64_t left = drain_undrained(s), off = spool_unrecorded(s->header);
    assert_int_equal(atomic_load(&s->header->status), SPOOL_OFF);
    assert_in_range(left, 100000, 3000000);
    assert_in_range(off, 100000, 3000000);
    assert_int_equal(seen.blocks[0] + left + off, 3000000);
    assert_int_equal(seen.wrong + seen.gaps + seen.lost, 0);
    drain_close(&c);
}

static void paused(void **state)
{
    (void)state;
    struct drain c = open_session(SPOOL_START_PAUSED);
    struct seen seen = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(50000);
        if (producer_control(CONTROL_START) != 0)
            _exit(3);
        put_blocks(12345);
        if (producer_control(CONTROL_PAUSE) != 0)
            _exit(4);
        put_blocks(50000);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.blocks[0], 12345);
    assert_int_equal(seen.wrong + seen.lost, 0);
    drain_close(&c);
}

static void a_refused_spool(void **state)
{
    (void)state;
    struct drain c = open_session(0);
    struct err e = {0};
    pid_t child = begin(&c);
    if (child == 0) {
        put_blocks(3000000);
        finish();
    }
    while (drain_discover(&c, &e) == 0)
        usleep(1000);
    atomic_store(&c.spools[0]->header->refused, 1);
    wait_for(child);
    assert_int_equal(atomic_load(&c.spools[0]->header->status), SPOOL_OFF);
    drain_close(&c);
}

// The recorder stops or is killed; the program must continue.
static void a_recorder_that_is_gone(void **state)
{
    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        struct drain *shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char *dir = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        _Atomic uint32_t *end = (_Atomic uint32_t *)shared;
        pid_t recorder = fork();
        if (recorder == 0) {
            struct drain c = open_session(0);
            strcpy(dir, c.dir);
            atomic_store(end, 1);
            while (atomic_load(end) == 1)
                usleep(1000);
            drain_close(&c);
            _exit(0);
        }
        while (atomic_load(end) == 0)
            usleep(1000);
        pid_t child = begin(&(struct drain){.dir = dir});
        if (child == 0) {
            put_blocks(3000000);
            finish();
        }
        usleep(50000); // The process is usually waiting by now. If not, it detects the end later.
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        if (killed)
            kill(recorder, SIGKILL);
        atomic_store(end, 2);
        wait_for(child);
        waitpid(recorder, NULL, 0);
        munmap(shared, sizeof *shared);
        munmap(dir, 4096);
    }
}

static size_t resident_pages(const void *at, size_t bytes)
{
    unsigned char resident[PRODUCER_SEEN_SITES * sizeof(uint64_t) / 4096 + 1];
    size_t n = 0, first = (uintptr_t)at % 4096;
    assert_int_equal(mincore((char *)at - first, bytes + first, resident), 0);
    for (size_t i = 0; i < (bytes + first + 4095) / 4096; i++)
        n += resident[i] & 1;
    return n;
}

// The table grows with the number of sites. The table loses no site before it is full, and few
// sites afterwards.
static void table_of_sites_grows_with_them(void **unused)
{
    struct producer_sites *sites = mmap(NULL, sizeof *sites, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static struct spool_header spool;
    uint64_t state = 0, again = 0, missed = 0;
    (void)unused;
    assert_true(sites != MAP_FAILED);
    // Some kernels are configured to use huge pages without a request.
    madvise(sites, sizeof *sites, MADV_NOHUGEPAGE);
    for (uint32_t n = 1; n <= PRODUCER_SEEN_SITES / 2; n++) {
        uint64_t id = unit_random(&state) >> 5;
        assert_false(producer_site_seen(sites, &spool, id));
        producer_site_add(sites, id);
        assert_true(producer_site_seen(sites, &spool, id));
        if (n == PRODUCER_SEEN_FIRST / 2)
            assert_in_range(resident_pages(sites->seen, sizeof sites->seen), 1,
                            PRODUCER_SEEN_FIRST * 8 / 4096 + 1);
    }
    for (uint32_t n = 1; n <= PRODUCER_SEEN_SITES / 2; n++)
        missed += !producer_site_seen(sites, &spool, unit_random(&again) >> 5);
    print_message("# %u of %u sites would be defined again\n", (unsigned)missed,
                  PRODUCER_SEEN_SITES / 2);
    assert_in_range(missed, 0, PRODUCER_SEEN_SITES / 2 / 25);
    munmap(sites, sizeof *sites);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(table_of_sites_grows_with_them),
    cmocka_unit_test(one_thread),
    cmocka_unit_test(chunks_are_used_again),
    cmocka_unit_test(several_threads),
    cmocka_unit_test(owners_of_addresses),
    cmocka_unit_test(private_memory),
    cmocka_unit_test(a_signal_handler),
    cmocka_unit_test(lossy),
    cmocka_unit_test(paused),
    cmocka_unit_test(a_refused_spool),
    cmocka_unit_test(a_recorder_that_is_gone),
    cmocka_unit_test(more_threads_than_states),
    cmocka_unit_test(left_by_a_recorder_that_stops),
    cmocka_unit_test(sparse_readings),
    cmocka_unit_test(readings_at_each_event),
};

UNIT_MAIN(tests)
