// Tests the set of addresses at which blocks were freed since heaptape attached (producer_freed.c),
// and the records of an attached process. If the allocation of a block is not in the trace, the
// record of its free must contain its size.
#include "capture/producer/producer_private.h"
#include "record/drain/drain.h"
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STEP = 16, // bytes between addresses
    COVERED_BYTES = PRODUCER_FREED_ENTRIES * PRODUCER_FREED_PLACES * STEP,
    THREADS = 8,
    DEADLINE_S = 120,
};
// The addresses are above the shadow memory of AddressSanitizer.
#define HEAP 0x200000000000u

static struct spool_header header;

static bool has(uint64_t address)
{
    return producer_freed_has(&header, address);
}

static void add(uint64_t address)
{
    producer_freed_add(&header, address);
}

static void drop(uint64_t address)
{
    producer_freed_remove(&header, address);
}

static int start(void **state)
{
    (void)state;
    memset(&header, 0, sizeof header);
    producer_freed_start();
    return producer_inherited.freed ? 0 : 1;
}

static int stop(void **state)
{
    (void)state;
    producer_freed_stop();
    return 0;
}

static void only_added_addresses(void **state)
{
    (void)state;
    const uint64_t added[] = {0, HEAP, HEAP + 8, 0x7ffff7ff0000 + 504, (1ull << 48) - 8};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        assert_false(has(added[i]));
        add(added[i]);
        for (int64_t by = -2048; by <= 2048; by++)
            assert_int_equal(has(added[i] + (uint64_t)by), by == 0);
        drop(added[i] + 16);
        assert_true(has(added[i]));
        drop(added[i]);
        assert_false(has(added[i]));
    }
}

static void addresses_that_no_block_has(void **state)
{
    (void)state;
    const uint64_t odd[] = {HEAP + 1,   HEAP + 4,   HEAP + 12,
                            1ull << 48, UINT64_MAX, HEAP | 1ull << 60};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        add(odd[i]);
        assert_false(has(odd[i]));
        drop(odd[i]);
    }
}

// Fills all entries. Then the addresses of another heap replace the first heap.
static void a_full_table(void **state)
{
    enum { FAR = 13 * STEP };
    (void)state;
    for (uint64_t heap = HEAP; heap < HEAP + 2ull * COVERED_BYTES; heap += COVERED_BYTES) {
        uint64_t others = heap == HEAP ? HEAP + COVERED_BYTES : HEAP, found = 0, wrong = 0;
        for (uint64_t at = 0; at < COVERED_BYTES; at += FAR)
            add(heap + at);
        for (uint64_t at = 0; at < COVERED_BYTES; at += FAR) {
            found += has(heap + at);
            wrong += has(others + at);
        }
        assert_int_equal(found, (COVERED_BYTES + FAR - 1) / FAR);
        assert_int_equal(wrong, 0);
    }
}

// glibc's heaps of threads start at multiples of 64 MiB. If the index consisted only of low bits of
// the address, each heap would replace the previous heap in the table.
static void heaps_at_equal_offsets(void **state)
{
    (void)state;
    enum { HEAPS = 16, BYTES = 1 << 20 };
    uint64_t first = 0x7f0000000000, found = 0;
    for (uint64_t heap = 0; heap < HEAPS; heap++) {
        for (uint64_t at = 0; at < BYTES; at += STEP)
            add(first + (heap << 26) + at);
    }
    for (uint64_t heap = 0; heap < HEAPS; heap++) {
        for (uint64_t at = 0; at < BYTES; at += STEP)
            found += has(first + (heap << 26) + at);
    }
    print_message("# %u of %u addresses are left\n", (unsigned)found, HEAPS * BYTES / STEP);
    assert_in_range(found, HEAPS * BYTES / STEP / 10 * 8, HEAPS * BYTES / STEP);
}

// Compares the set with a model that never loses an address.
static void never_contains_others(void **state)
{
    (void)state;
    enum { ADDRESSES = 1 << 16 };
    static bool added[ADDRESSES];
    uint64_t random = 1, lost = 0;
    for (unsigned n = 0; n < 4000000; n++) {
        uint64_t r = unit_random(&random), i = r % ADDRESSES;
        // The addresses form groups of four within 4 GiB, so that some groups share an entry.
        uint64_t address = HEAP + (i >> 2) * 0x41230 + (i & 3) * 24;
        if (r >> 60 < 6) {
            add(address);
            added[i] = true;
            assert_true(has(address));
        } else if (r >> 60 < 9) {
            drop(address);
            added[i] = false;
            assert_false(has(address));
        } else if (has(address)) {
            assert_true(added[i]);
        } else {
            lost += added[i];
        }
    }
    assert_in_range(lost, 1, 4000000);
}

static void after_state_changes_and_resets_it_is_empty(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 1 << PRODUCER_FREED_GENERATION_BITS; round++) {
        assert_false(has(HEAP));
        add(HEAP);
        assert_true(has(HEAP));
        if (round % 3 == 0)
            header.control.changes_made++;
        else if (round % 3 == 1)
            header.control.asked[SPOOL_RESET]++;
        else
            header.restarts++;
        assert_false(has(HEAP));
        if (round % 3 == 1) {
            // Until the reset is done, the set does not accept addresses.
            add(HEAP);
            assert_false(has(HEAP));
            header.control.done[SPOOL_RESET]++;
        }
    }
    // The table cannot distinguish this many resets, so it does not accept addresses.
    add(HEAP);
    assert_false(has(HEAP));
}

// Returns an address behind the heap that has the same entry of the table as HEAP.
static uint64_t find_address_with_same_entry(void)
{
    uint64_t at = HEAP + COVERED_BYTES;
    for (add(HEAP); has(HEAP); at += PRODUCER_FREED_PLACES * STEP)
        add(at);
    return at - PRODUCER_FREED_PLACES * STEP;
}

// Threads add different addresses to the same entries. The addresses of the last thread have
// another key, so that the last thread and the other threads replace each other's entries.
static uint64_t same_entry;

static void *add_and_drop(void *number)
{
    uint64_t thread = (uintptr_t)number, random = thread, failed = 0;
    bool others = thread == THREADS - 1;
    for (unsigned n = 0; n < 300000; n++) {
        uint64_t entry = unit_random(&random) % 64,
                 offset = entry * PRODUCER_FREED_PLACES * STEP + thread * STEP,
                 address = (others ? same_entry : HEAP) ^ offset;
        add(address);
        failed += has((others ? HEAP : same_entry) ^ offset);
        drop(address);
        failed += has(address);
    }
    return (void *)(uintptr_t)failed;
}

static void threads_with_the_same_entries(void **state)
{
    pthread_t threads[THREADS];
    void *failed;
    (void)state;
    same_entry = find_address_with_same_entry();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add_and_drop, (void *)i);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

// Adds the addresses of one thread. Threads that add different addresses to the same entries must
// not lose any.
static void *add_own(void *number)
{
    for (uint64_t i = 0; i < 100000; i++)
        add(HEAP + (i * THREADS + (uintptr_t)number) * STEP);
    return NULL;
}

static void threads_lose_nothing_of_each_other(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add_own, (void *)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t i = 0; i < 100000 * THREADS; i++)
        assert_true(has(HEAP + i * STEP));
}

static void wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_fork_child_has_none(void **state)
{
    (void)state;
    add(HEAP);
    pid_t child = fork();
    if (child == 0) {
        bool inherited = has(HEAP);
        add(HEAP);
        _exit(inherited || !has(HEAP));
    }
    wait_for(child);
    assert_true(has(HEAP));
}

static void scarce_memory(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit little = {1 << 20, 1 << 20};
        producer_freed_stop();
        setrlimit(RLIMIT_DATA, &little);
        producer_freed_start();
        add(HEAP);
        _exit(producer_inherited.freed || has(HEAP));
    }
    wait_for(child);
}

// The following tests check the records of an attached process. The drain compares the records with
// a model of the live blocks.
enum { BLOCKS = 8192, BIG_EVERY = 97, HEAP_BYTES = 1 << 20 };

struct seen {
    bool live[2][BLOCKS]; // index 1 is the fork child
    uint64_t preexisting[2], known, noted, wrong, lost;
};

static uint64_t address_of(unsigned i)
{
    return HEAP + i * STEP * 2ull + (i % 7 == 0 ? 8 : 0);
}

static size_t usable_bytes(unsigned kind, void *block)
{
    (void)kind;
    return 24 + (uintptr_t)block / STEP % 1000;
}

static void see_event(struct seen *seen, unsigned process, const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    uint64_t address = ev->ptr ? ev->ptr : ev->result;
    unsigned i = (unsigned)((address - HEAP) / STEP / 2);
    if (ev->kind == HT_LOST)
        seen->lost += ev->value;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && ev->result)) {
        i = (unsigned)((ev->result - HEAP) / STEP / 2);
        assert_in_range(i, 0, BLOCKS - 1);
        seen->wrong += seen->live[process][i];
        seen->live[process][i] = true;
    } else if (class == HT_CLASS_FREE || class == HT_CLASS_HALF) {
        assert_in_range(i, 0, BLOCKS - 1);
        if (seen->live[process][i]) {
            seen->known++;
            seen->noted += ev->notes[HT_NOTE_USABLE] != 0;
        } else {
            seen->preexisting[process]++;
            seen->wrong += ev->notes[HT_NOTE_USABLE] != usable_bytes(ev->kind, (void *)address);
        }
        seen->live[process][i] = false;
    }
}

static int see(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct codec_state state = {g->epoch0, g->base0};
    struct event ev;
    (void)e;
    for (uint32_t at = 0, used; at < g->n_words; at += used) {
        used = codec_get(&state, g->words + at, g->n_words - at, &ev);
        assert_int_not_equal(used, 0);
        if (ev.kind)
            see_event(ctx, s->header->parent_spool_pid != 0, &ev);
    }
    g->epoch_end = state.epoch;
    g->base_end = state.base;
    return 0;
}

// The functions below run in the attached process, and record like the wrappers.
static void put_malloc(unsigned i)
{
    // Big blocks are also in the table of producer_residency.c.
    uint64_t size = i % BIG_EVERY ? 24 : HT_BIG_BYTES;
    const struct event ev = {.kind = HT_MALLOC, .size = size, .count = 1, .result = address_of(i)};
    if (!producer_put_allocated(HT_MALLOC, size, address_of(i)) &&
        !producer_put_retry(HT_MALLOC, size, address_of(i), NULL, __builtin_frame_address(0)))
        producer_record(&ev, NULL);
}

static void put_release(enum event_kind kind, unsigned i)
{
    const struct event ev = {.kind = kind, .ptr = address_of(i)};
    if (!producer_put_plain(kind, address_of(i)) && !producer_retry_plain(kind, address_of(i)))
        producer_record(&ev, NULL);
}

static void put_free(unsigned i)
{
    put_release(HT_FREE, i);
}

static void put_realloc(unsigned i, unsigned to)
{
    const struct event ev = {
        .kind = HT_REALLOC, .ptr = address_of(i), .size = 24, .result = address_of(to)};
    put_release(HT_REALLOC_BEGIN, i);
    producer_record(&ev, NULL);
}

static void put_failed_realloc(unsigned i)
{
    const struct event ev = {.kind = HT_REALLOC, .ptr = address_of(i), .size = 24, .error = 12};
    put_release(HT_REALLOC_BEGIN, i);
    producer_record(&ev, NULL);
}

static void check(bool ok)
{
    if (!ok)
        _exit(3);
}

static struct drain open_session(uint32_t flags)
{
    struct drain c;
    struct err e = {0};
    assert_int_equal(drain_open(&c, flags, CLOCK_KIND_TSC, "", &e), 0);
    return c;
}

static pid_t begin(const struct drain *c)
{
    pid_t child = fork();
    if (child == 0) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        alarm(DEADLINE_S);
        // The contents of big blocks are measured.
        check(mmap((void *)HEAP, HEAP_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == (void *)HEAP);
        check(producer_attach_prepare() == 0);
        producer_usable = usable_bytes;
        check(producer_attach(c->dir) == 0);
    }
    return child;
}

static void finish(void)
{
    producer_finish();
    _exit(0);
}

// Drains until all spools have ended. A spool whose file was not complete at the last scan counts.
static void drain_all(struct drain *c, struct seen *seen, pid_t child)
{
    const struct drain_sink sink = {.ctx = seen, .segment = see};
    struct err e = {0};
    uint64_t end_ns = clock_monotonic_ns() + DEADLINE_S * 1000000000ull;
    for (bool found = c->n_spools; !found || c->n_spools || c->pending;) {
        assert_true(clock_monotonic_ns() < end_ns);
        uint32_t wakeups = drain_wakeups(c);
        drain_check_ends(c);
        found |= drain_discover(c, &e) > 0;
        assert_int_equal(drain_drain(c, &sink, &e), 0);
        for (size_t i = c->n_spools; i-- > 0;) {
            if (c->spools[i]->dead)
                drain_drop(c, i);
        }
        drain_sleep(c, wakeups, 1000000);
    }
    wait_for(child);
    drain_close(c);
}

// The first half of the blocks was allocated before the attach. Each of these blocks is freed or
// reallocated once, after many calls, and its address is used again.
static void blocks_from_before_are_freed_late(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(SPOOL_RESIDENCY);
    pid_t child = begin(&c);
    if (child == 0) {
        uint64_t random = 1;
        static bool live[BLOCKS];
        memset(live, true, BLOCKS / 2);
        for (unsigned n = 0; n < 2000000; n++) {
            uint64_t r = unit_random(&random);
            unsigned i = (unsigned)(r % BLOCKS), to = (unsigned)(r >> 32) % BLOCKS;
            bool resize = live[i] && r >> 60 < 2 && (i == to || !live[to]);
            if (n < 1000000 && (i < BLOCKS / 2 || to < BLOCKS / 2))
                continue;
            if (resize)
                put_realloc(i, to);
            else if (live[i])
                put_free(i);
            else
                put_malloc(i);
            live[i] = !live[i];
            live[to] |= resize;
        }
        finish();
    }
    drain_all(&c, &seen, child);
    print_message("# %u of %u frees of recorded blocks with a size\n", (unsigned)seen.noted,
                  (unsigned)seen.known);
    assert_int_equal(seen.preexisting[0], BLOCKS / 2);
    assert_int_equal(seen.wrong, 0);
    // The slow path records the first free at each address, frees at the start of an epoch, and
    // frees of big blocks.
    assert_in_range(seen.noted, 0, seen.known / 5);
    assert_in_range(seen.known, 500000, 2000000);
}

static void a_failed_realloc_of_a_block_from_before(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        put_failed_realloc(1);
        put_free(1);
        put_malloc(1);
        put_free(1);
        finish();
    }
    drain_all(&c, &seen, child);
    // The model does not know that the block stays live.
    assert_int_equal(seen.preexisting[0], 2);
    assert_int_equal(seen.known, 1);
}

static void a_block_from_before_is_reallocated_often(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        for (unsigned i = 0; i < 10000; i++)
            put_realloc(1, 1);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.preexisting[0], 1);
    assert_int_equal(seen.known, 9999);
    assert_int_equal(seen.wrong, 0);
    assert_in_range(seen.noted, 0, 2000);
}

static void *use_own_blocks(void *number)
{
    unsigned first = (unsigned)(uintptr_t)number;
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = first; i < BLOCKS; i += THREADS) {
            if (round || i % 3)
                put_malloc(i);
            put_free(i);
        }
    }
    return NULL;
}

// A third of the blocks was allocated before the attach. Neighbouring blocks belong to different
// threads.
static void blocks_of_many_threads(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            check(pthread_create(&threads[i], NULL, use_own_blocks, (void *)i) == 0);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.preexisting[0], (BLOCKS + 2) / 3);
    assert_int_equal(seen.known, 50 * BLOCKS - (BLOCKS + 2) / 3);
    assert_int_equal(seen.wrong, 0);
}

static void blocks_allocated_in_a_pause(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        for (unsigned i = 0; i < 1000; i++) {
            put_free(i);
            put_malloc(i);
            put_free(i);
        }
        check(producer_control(CONTROL_PAUSE) == 0);
        for (unsigned i = 0; i < 1000; i++)
            put_malloc(i);
        check(producer_control(CONTROL_RESUME) == 0);
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < 1000; i++) {
                put_free(i);
                put_malloc(i);
            }
        }
        check(producer_freed_has(producer_inherited.spool, address_of(1)));
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.preexisting[0], 2000);
    assert_int_equal(seen.known, 3000);
    assert_int_equal(seen.wrong, 0);
}

static void blocks_of_a_thread_that_is_not_recorded(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        put_free(1);
        put_free(2);
        producer_disable(false);
        put_malloc(1);
        producer_enable();
        put_malloc(2); // uses the slow path to get a chunk
        put_free(1);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.preexisting[0], 3);
    assert_int_equal(seen.wrong, 0);
}

static void a_block_whose_record_is_lost(void **state)
{
    (void)state;
    static struct seen seen;
    _Atomic uint32_t *step =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct drain c = open_session(SPOOL_LOSSY);
    pid_t child = begin(&c);
    if (child == 0) {
        put_free(1);
        for (unsigned n = 0; !producer_tls.thread->streams[0].lost; n++) {
            put_malloc(2 + n % 1000);
            put_free(2 + n % 1000);
        }
        put_malloc(1);
        check(!producer_freed_has(producer_inherited.spool, address_of(1)));
        atomic_store(step, 1);
        while (atomic_load(step) < 2)
            usleep(1000);
        put_free(1);
        finish();
    }
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    struct err e = {0};
    while (atomic_load(step) == 0) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        usleep(1000);
    }
    assert_int_equal(drain_discover(&c, &e), 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    atomic_store(step, 2);
    drain_all(&c, &seen, child);
    assert_in_range(seen.lost, 1, UINT64_MAX);
    assert_int_equal(seen.preexisting[0], 2);
    assert_int_equal(seen.wrong, 0);
    munmap((void *)step, 4096);
}

// A fork child inherits blocks. Their allocations are not in the child's part of the trace.
static void blocks_that_a_fork_child_inherits(void **state)
{
    (void)state;
    static struct seen seen;
    struct drain c = open_session(0);
    pid_t child = begin(&c);
    if (child == 0) {
        for (unsigned i = 0; i < 1000; i++) {
            put_free(i);
            put_malloc(i);
        }
        producer_before_fork();
        pid_t of_child = fork();
        if (of_child == 0)
            producer_after_fork();
        for (unsigned round = 0; round < 3; round++) {
            for (unsigned i = 0; i < 1000; i++) {
                put_free(i);
                put_malloc(i);
            }
        }
        if (of_child)
            waitpid(of_child, NULL, 0);
        finish();
    }
    drain_all(&c, &seen, child);
    assert_int_equal(seen.preexisting[0], 1000);
    assert_int_equal(seen.preexisting[1], 1000);
    assert_int_equal(seen.known, 5000);
    assert_int_equal(seen.wrong, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(only_added_addresses, start, stop),
    cmocka_unit_test_setup_teardown(addresses_that_no_block_has, start, stop),
    cmocka_unit_test_setup_teardown(a_full_table, start, stop),
    cmocka_unit_test_setup_teardown(heaps_at_equal_offsets, start, stop),
    cmocka_unit_test_setup_teardown(never_contains_others, start, stop),
    cmocka_unit_test_setup_teardown(after_state_changes_and_resets_it_is_empty, start, stop),
    cmocka_unit_test_setup_teardown(threads_with_the_same_entries, start, stop),
    cmocka_unit_test_setup_teardown(threads_lose_nothing_of_each_other, start, stop),
    cmocka_unit_test_setup_teardown(a_fork_child_has_none, start, stop),
    cmocka_unit_test_setup_teardown(scarce_memory, start, stop),
    cmocka_unit_test(blocks_from_before_are_freed_late),
    cmocka_unit_test(a_failed_realloc_of_a_block_from_before),
    cmocka_unit_test(a_block_from_before_is_reallocated_often),
    cmocka_unit_test(blocks_of_many_threads),
    cmocka_unit_test(blocks_allocated_in_a_pause),
    cmocka_unit_test(blocks_of_a_thread_that_is_not_recorded),
    cmocka_unit_test(a_block_whose_record_is_lost),
    cmocka_unit_test(blocks_that_a_fork_child_inherits),
};

UNIT_MAIN(tests)
