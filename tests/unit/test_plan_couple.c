// Tests the coupling of threads. A simulated scheduler executes plans and prefers one thread while
// this thread can run.
#include "replay/plan/file.h"
#include "replay/plan/ops.h"
#include "replay/plan/plan.h"
#include "unit.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_THREADS = 8, MAX_ENTRIES = 1 << 16 };

struct scheduled {
    const uint64_t *words;
    const struct plan_header *header;
    const struct plan_thread *threads;
    bool coupled;
    // An element of `at` is 0 before the start and after the stop of its thread.
    uint64_t at[MAX_THREADS], progress[MAX_THREADS];
    uint64_t sizes[MAX_ENTRIES];
    int64_t live, peak;
    uint64_t stopped; // number of threads that have stopped, without the main thread
};

static void allocate_entry(struct scheduled *s, uint64_t entry, uint64_t size)
{
    assert_true(entry < MAX_ENTRIES);
    s->live += (int64_t)size - (int64_t)s->sizes[entry];
    s->sizes[entry] = size;
    s->peak = s->live > s->peak ? s->live : s->peak;
}

// Runs one op of the thread. Returns false if the thread must wait or has stopped.
static bool step(struct scheduled *s, uint32_t thread)
{
    const uint64_t *w = s->words + s->at[thread];
    enum plan_op op = plan_op_of(*w);
    bool waits = op == PLAN_WAIT || (op == PLAN_COUPLE && s->coupled);
    if (!s->at[thread])
        return false;
    if (waits && (plan_size_of(*w) == thread ? s->stopped : s->progress[plan_size_of(*w)]) < w[1])
        return false;
    s->at[thread] += op == PLAN_JUMP ? 1 + (*w >> 8) : plan_op_words(*w);
    if (op == PLAN_MALLOC || op == PLAN_FREE)
        allocate_entry(s, plan_entry_of(*w), op == PLAN_MALLOC ? plan_size_of(*w) : 0);
    if (op == PLAN_START_THREAD)
        s->at[plan_size_of(*w)] = s->threads[plan_size_of(*w)].first_word;
    if (plan_op_info(op).is_numbered && *w & PLAN_PUBLISH)
        s->progress[thread] = s->at[thread];
    if (op == PLAN_STOP) {
        s->at[thread] = 0;
        s->stopped += thread != 0;
    }
    return true;
}

// Executes the plan and returns the peak of the live bytes. The scheduler runs the first thread
// that can run, in the order `first`, `first` + 1, and so on. All threads must finish.
static uint64_t play(const struct plan *p, bool coupled, uint32_t first)
{
    static struct scheduled s;
    size_t bytes = plan_facts(p)->own_bytes;
    s = (struct scheduled){.words = mmap(NULL, bytes, PROT_READ, MAP_SHARED, plan_fd(p), 0),
                           .coupled = coupled};
    assert_true(s.words != MAP_FAILED);
    s.header = (const struct plan_header *)s.words;
    s.threads = (const struct plan_thread *)(s.words + s.header->threads_at);
    uint32_t n = s.header->n_threads;
    for (uint32_t i = 0; i < n; i++)
        s.at[i] = s.threads[i].at_start ? s.threads[i].first_word : 0;
    for (uint32_t i = 0; i < n;)
        i = step(&s, (first + i) % n) ? 0 : i + 1;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(s.at[i], 0);
    assert_int_equal(s.live, 0);
    munmap((void *)s.words, bytes);
    return (uint64_t)s.peak;
}

static struct plan *new_plan(void)
{
    struct plan *p;
    struct err e = {0};
    assert_int_equal(
        plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 256 << 20}, &e), 0);
    return p;
}

// Adds an op of the thread. If `on` is not NULL, the op depends on the op *on of another thread.
static void add(struct plan *p, uint32_t thread, struct workload_op op,
                const struct workload_dependency *on)
{
    struct err e = {0};
    op.dependencies = on;
    op.n_dependencies = on != NULL;
    if (plan_add_ops(p, thread, &op, 1, &e) != 0)
        fail_msg("%s", e.text);
}

static void finish(struct plan *p)
{
    struct err e = {0};
    if (plan_finish(p, &e) != 0)
        fail_msg("%s", e.text);
}

// Thread 0 allocates blocks, and thread 1 frees them. In the recording, at most BOUND + 1 blocks
// are live at the same time.
static void test_a_bounded_queue(void **state)
{
    (void)state;
    enum { ITEMS = 10000, BOUND = 64, SIZE = 4096 };
    struct plan *p = new_plan();
    for (uint32_t i = 0; i < ITEMS + BOUND; i++) {
        if (i < ITEMS)
            add(p, 0,
                (struct workload_op){.kind = HT_MALLOC, .slot = i % (BOUND + 1), .size = SIZE},
                NULL);
        if (i >= BOUND)
            add(p, 1, (struct workload_op){.kind = HT_FREE, .slot = (i - BOUND) % (BOUND + 1)},
                &(struct workload_dependency){0, i - BOUND});
    }
    finish(p);
    uint64_t recorded = plan_facts(p)->peak_live_bytes;
    assert_int_equal(recorded, (BOUND + 1) * SIZE);
    assert_true(play(p, false, 0) > 10 * recorded);
    assert_true(play(p, true, 0) < recorded + recorded / 5);
    assert_true(play(p, true, 1) <= recorded);
    plan_free(p);
}

// The threads use separate blocks and never wait for each other. In the recording, only one thread
// has live blocks at any time.
static void test_phases(void **state)
{
    (void)state;
    enum { PHASES = 40, BLOCKS = 500, SIZE = 1000 };
    struct plan *p = new_plan();
    for (uint32_t phase = 0; phase < PHASES; phase++) {
        for (uint32_t i = 0; i < BLOCKS; i++)
            add(p, phase % 4,
                (struct workload_op){.kind = HT_MALLOC, .slot = phase * BLOCKS + i, .size = SIZE},
                NULL);
        for (uint32_t i = 0; i < BLOCKS; i++)
            add(p, phase % 4, (struct workload_op){.kind = HT_FREE, .slot = phase * BLOCKS + i},
                NULL);
    }
    finish(p);
    uint64_t recorded = plan_facts(p)->peak_live_bytes;
    for (uint32_t first = 0; first < 4; first++)
        assert_true(play(p, true, first) <= recorded + recorded / 5);
    plan_free(p);
}

// Only the memory samples show the pause of a thread. After the pause, the ops of the other thread
// must follow all ops before the pause.
static void test_a_pause(void **state)
{
    (void)state;
    enum { BLOCKS = 8, SIZE = 1 << 20 };
    const struct workload_sample samples[] = {{.stamp = 30}, {.stamp = 40}};
    for (size_t n = 0; n <= 2; n += 2) {
        struct plan *p = new_plan();
        struct err e = {0};
        assert_int_equal(plan_set_samples(p, samples, n, &e), 0);
        for (uint32_t i = 0; i < 4 * BLOCKS; i++) {
            struct workload_op op = {
                .kind = i / BLOCKS % 2 ? HT_FREE : HT_MALLOC, .slot = i % BLOCKS, .size = SIZE};
            op.slot += i / (2 * BLOCKS) * BLOCKS;
            op.stamp = i < 2 * BLOCKS ? 1 + i : 50 + i;
            add(p, i / (2 * BLOCKS), op, NULL);
        }
        finish(p);
        uint64_t peak = play(p, true, 1);
        assert_true(n ? peak == BLOCKS * SIZE : peak > BLOCKS * SIZE * 3 / 2);
        plan_free(p);
    }
}

// The first op after the exit of thread 1 follows the exit.
static void test_an_exit(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    struct plan *p = new_plan();
    add(p, 0, (struct workload_op){.kind = HT_MALLOC, .slot = 3, .size = 16}, NULL);
    add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = 1}, NULL);
    add(p, 1, (struct workload_op){.kind = HT_MALLOC, .slot = 0, .size = 16}, NULL);
    add(p, 1, (struct workload_op){.kind = HT_MALLOC, .slot = 1, .size = SIZE}, NULL);
    add(p, 1, (struct workload_op){.kind = HT_FREE, .slot = 1}, NULL);
    add(p, 1, (struct workload_op){.kind = HT_THREAD_END}, NULL);
    add(p, 0, (struct workload_op){.kind = HT_MALLOC, .slot = 2, .size = SIZE}, NULL);
    add(p, 0, (struct workload_op){.kind = HT_FREE, .slot = 0},
        &(struct workload_dependency){1, 1});
    add(p, 0, (struct workload_op){.kind = HT_FREE, .slot = 2}, NULL);
    add(p, 0, (struct workload_op){.kind = HT_FREE, .slot = 3}, NULL);
    finish(p);
    assert_int_equal(play(p, true, 0), SIZE + 32);
    assert_int_equal(play(p, false, 0), 2 * SIZE + 32);
    plan_free(p);
}

// No thread waits forever, for random ops and for each preferred thread.
static void test_all_threads_end(void **state)
{
    (void)state;
    enum { SLOTS = 200, OPS = 5000, SEEDS = 50, SAMPLES = 500 };
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        srand(seed);
        struct plan *p = new_plan();
        uint32_t n = 2 + (uint32_t)rand() % (MAX_THREADS - 1), thread = 0, of[SLOTS] = {0};
        uint64_t done[MAX_THREADS] = {0}, at[SLOTS] = {0};
        bool live[SLOTS] = {false};
        struct workload_sample samples[SAMPLES] = {{0}};
        struct err e = {0};
        for (unsigned i = 1; i < SAMPLES; i++)
            samples[i].stamp = samples[i - 1].stamp + (uint64_t)(rand() % 3 * (rand() % 20));
        assert_int_equal(plan_set_samples(p, samples, SAMPLES, &e), 0);
        for (uint32_t i = 1; i < n; i += 2) { // the other threads exist from the start
            add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = i}, NULL);
            done[0]++;
        }
        for (unsigned i = 0; i < OPS + SLOTS; i++) {
            uint32_t slot = i < OPS ? (uint32_t)rand() % SLOTS : i - OPS;
            if (rand() % 4 == 0)
                thread = (uint32_t)rand() % n;
            if (i >= OPS && !live[slot])
                continue;
            struct workload_op op = {.kind = live[slot] ? HT_FREE : HT_MALLOC, .slot = slot};
            op.size = live[slot] ? 0 : (uint64_t)rand() % 10000;
            op.stamp = 1 + i;
            add(p, thread, op,
                live[slot] || at[slot] ? &(struct workload_dependency){of[slot], at[slot] - 1}
                                       : NULL);
            live[slot] = !live[slot];
            of[slot] = thread;
            at[slot] = ++done[thread];
        }
        finish(p);
        for (uint32_t first = 0; first < n; first++)
            play(p, true, first);
        plan_free(p);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_bounded_queue), cmocka_unit_test(test_phases),
    cmocka_unit_test(test_a_pause),         cmocka_unit_test(test_an_exit),
    cmocka_unit_test(test_all_threads_end),
};

UNIT_MAIN(tests)
