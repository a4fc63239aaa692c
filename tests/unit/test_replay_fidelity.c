#include "replay/fidelity.h"
#include "replay/machine.h"
#include "unit.h"

#include <string.h>

enum { CALLS = 4 * PLAN_SAMPLE_EVENTS, BLOCK = 100, LOADED = 5000 };

static void must(int rc)
{
    assert_int_equal(rc, 0);
}

// Makes a plan of one thread that allocates CALLS blocks, one every 10 stamps.
static struct plan *make_plan(size_t n_samples, const struct workload_sample *samples)
{
    struct plan *p;
    struct err e = {0};
    must(plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 64 << 20}, &e));
    must(plan_set_samples(p, samples, n_samples, &e));
    for (uint32_t i = 0; i < CALLS; i++) {
        struct workload_op op = {.kind = HT_MALLOC, .slot = i, .size = BLOCK, .stamp = 10 * i + 5};
        must(plan_add_ops(p, 0, &op, 1, &e));
    }
    must(plan_finish(p, &e));
    return p;
}

static void test_the_live_curve(void **state)
{
    (void)state;
    struct plan *p = make_plan(0, NULL);
    struct results_sample s[] = {
        {.event = 0, .live_bytes = 0},
        {.event = PLAN_SAMPLE_EVENTS, .live_bytes = PLAN_SAMPLE_EVENTS * BLOCK},
        {.event = 2 * PLAN_SAMPLE_EVENTS, .live_bytes = 2 * PLAN_SAMPLE_EVENTS * BLOCK},
        {.event = CALLS, .live_bytes = CALLS * BLOCK},
    };
    struct replay_run run = {.samples = s, .n_samples = 4};
    struct fidelity_live l = fidelity_live(p, &run);
    assert_true(l.points == 4 && l.equal == 4 && l.max_bytes == 0 && l.mean_bytes == 0);
    s[2].live_bytes -= 400;
    l = fidelity_live(p, &run);
    assert_true(l.points == 4 && l.equal == 3 && l.max_bytes == 400 && l.mean_bytes == 100);
    plan_free(p);
}

// The program has 1,000 bytes of memory outside of the heap. Its heap exceeds its live bytes by 10
// %. The heap of the replay exceeds them by 20 %.
static void test_memory(void **state)
{
    (void)state;
    struct workload_sample samples[] = {
        {.stamp = 0, .anon_bytes = 1000},
        {.stamp = 20 * PLAN_SAMPLE_EVENTS,
         .anon_bytes = 1000 + 2 * PLAN_SAMPLE_EVENTS * BLOCK * 11 / 10},
        {.stamp = 10 * CALLS, .anon_bytes = 1000 + CALLS * BLOCK * 11 / 10},
    };
    struct plan *p = make_plan(3, samples);
    size_t n;
    const struct plan_recorded_sample *r = plan_recorded_samples(p, &n);
    assert_int_equal(n, 3);
    assert_true(r[0].event == 0 && r[1].event == 2 * PLAN_SAMPLE_EVENTS && r[2].event == CALLS);
    assert_true(r[0].live_bytes == 0 && r[2].live_bytes == CALLS * BLOCK);
    assert_true(plan_facts(p)->touch_zeroed);
    struct results_sample s[] = {
        {.event = 0, .rss_bytes = LOADED},
        {.event = CALLS, .rss_bytes = LOADED + CALLS * BLOCK * 12 / 10},
    };
    struct replay_run run = {.samples = s, .n_samples = 2};
    run.figures.baseline_rss_bytes = LOADED;
    run.figures.peak_rss_bytes = LOADED + CALLS * BLOCK * 12 / 10;
    struct fidelity_memory m = fidelity_memory(p, &run);
    assert_int_equal(m.samples, 3);
    assert_int_equal(m.baseline_bytes, 1000);
    assert_true(m.recorded_peak_bytes == CALLS * BLOCK * 11 / 10 &&
                m.replayed_peak_bytes == CALLS * BLOCK * 12 / 10);
    assert_true(m.mean_error > 0.089 && m.mean_error < 0.092 && m.mean_bias == m.mean_error);
    plan_free(p);
}

// Returns true if the plan touches zeroed blocks when the program's memory is only `percent` of its
// live bytes in `lacking` of 16 samples.
static bool is_touched(unsigned lacking, unsigned percent)
{
    enum { SAMPLES = 16 };
    struct workload_sample samples[SAMPLES];
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t event = (i + 1) * CALLS / SAMPLES, live = event * BLOCK;
        samples[i] = (struct workload_sample){.stamp = 10 * event, .anon_bytes = live};
        if (i >= SAMPLES - lacking)
            samples[i].anon_bytes = live * percent / 100;
    }
    struct plan *p = make_plan(SAMPLES, samples);
    bool touched = plan_facts(p)->touch_zeroed;
    plan_free(p);
    return touched;
}

static void test_a_program_that_does_not_use_its_blocks(void **state)
{
    (void)state;
    assert_true(is_touched(0, 0));
    assert_true(is_touched(16, 90)); // in each sample, an eighth of the live bytes may be missing
    assert_true(is_touched(2, 50));  // in one of eight samples, more may be missing
    assert_false(is_touched(3, 50));
    assert_false(is_touched(16, 85));
    struct plan *p = make_plan(0, NULL);
    assert_false(plan_facts(p)->touch_zeroed);
    plan_free(p);
}

static void put(struct plan *p, uint32_t thread, struct workload_op op, struct err *e)
{
    must(plan_add_ops(p, thread, &op, 1, e));
}

// The program's own mappings do not count as heap.
static void test_mappings(void **state)
{
    (void)state;
    struct plan *p;
    struct err e = {0};
    size_t n;
    const struct workload_sample samples[] = {{.stamp = 5, .anon_bytes = 9000},
                                              {.stamp = 30, .anon_bytes = 7000},
                                              {.stamp = 50, .anon_bytes = 7000}};
    must(plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 64 << 20}, &e));
    must(plan_set_samples(p, samples, 3, &e));
    put(p, 0,
        (struct workload_op){
            .kind = HT_MMAP, .size = 12288, .text = "rw-p anonymous", .text_bytes = 14, .stamp = 1},
        &e);
    put(p, 0,
        (struct workload_op){
            .kind = HT_MMAP, .size = 8192, .text = "rw-s anonymous", .text_bytes = 14, .stamp = 2},
        &e);
    put(p, 0, (struct workload_op){.kind = HT_MALLOC, .size = 7, .stamp = 20}, &e);
    put(p, 0, (struct workload_op){.kind = HT_MUNMAP, .size = 4096, .stamp = 21}, &e);
    put(p, 0, (struct workload_op){.kind = HT_MUNMAP, .size = 1 << 20, .stamp = 41}, &e);
    must(plan_finish(p, &e));
    const struct plan_recorded_sample *r = plan_recorded_samples(p, &n);
    assert_true(n == 3 && r[0].mapped_bytes == 12288 && r[0].event == 0);
    assert_true(r[1].mapped_bytes == 8192 && r[2].mapped_bytes == 0 && r[1].event == 1 &&
                r[1].live_bytes == 7);
    plan_free(p);
}

// Thread 0 runs from 0 to 100, thread 1 from 50 to 60. In the replay, thread 1 runs for half of the
// time.
static void test_overlap(void **state)
{
    (void)state;
    struct plan *p;
    struct err e = {0};
    struct fidelity_overlap o;
    must(plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 64 << 20}, &e));
    put(p, 0, (struct workload_op){.kind = HT_MALLOC, .slot = 0, .size = 1, .stamp = 0}, &e);
    put(p, 1, (struct workload_op){.kind = HT_MALLOC, .slot = 1, .size = 1, .stamp = 50}, &e);
    put(p, 1, (struct workload_op){.kind = HT_MALLOC, .slot = 2, .size = 1, .stamp = 60}, &e);
    put(p, 0, (struct workload_op){.kind = HT_MALLOC, .slot = 3, .size = 1, .stamp = 100}, &e);
    must(plan_finish(p, &e));
    struct results_span spans[] = {{.begin_ns = 0, .end_ns = 200, .end_event = 4},
                                   {.begin_ns = 100, .end_ns = 200}};
    struct replay_run run = {.spans = spans};
    must(fidelity_overlap(p, &run, &o));
    assert_true(o.recorded_time == 0.1 && o.replayed_time == 0.5 && o.replayed_events == 0);
    assert_true(o.recorded_events > 0.33 && o.recorded_events < 0.34);
    plan_free(p);
}

static void test_the_same_allocator(void **state)
{
    (void)state;
    char id[129], other[] = "00112233";
    machine_build_id("/proc/self/exe", id, sizeof id);
    assert_true(*id);
    const struct {
        const char *recorded;
        char *build_id;
        const char *library;
        bool is_same;
    } cases[] = {
        {"/a/libx.so", NULL, "/a/libx.so", true},
        {"/proc/self/exe", NULL, "/proc/self/../self/exe", true},
        {"/a/libx.so", NULL, "/b/libx.so", false},
        {NULL, NULL, "/b/libx.so", false},
        // The build ID decides: an anonymized workload has no path, and another machine may have
        // another build at the same path.
        {"exe", id, "/proc/self/exe", true},
        {"/proc/self/exe", other, "/proc/self/exe", false},
        {"exe", NULL, "/proc/self/exe", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct replay_session s = {.recorded_allocator = (char *)cases[i].recorded,
                                         .recorded_build_id = cases[i].build_id};
        assert_true(fidelity_is_recorded(&s, cases[i].library) == cases[i].is_same);
    }
}

static void test_few_samples_are_not_compared(void **state)
{
    (void)state;
    for (size_t n = 4; n <= 5; n++) {
        struct workload_sample samples[5];
        for (size_t i = 0; i < n; i++)
            samples[i] =
                (struct workload_sample){.stamp = 10000 * i, .anon_bytes = 1000 * i * BLOCK};
        struct plan *p = make_plan(n, samples);
        struct replay_run run = {.library = (char[]){"/a/libx.so"}};
        struct replay_result result = {.runs = &run, .n_runs = 1};
        const struct replay_session s = {
            .plan = p, .has_samples = true, .recorded_allocator = run.library};
        struct fidelity f = fidelity_of(&s, &result);
        assert_int_equal(f.memory.samples, n);
        assert_true((f.missing_reason == NULL) == (n == 5));
        if (f.missing_reason)
            assert_non_null(strstr(f.missing_reason, "too few samples"));
        plan_free(p);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_live_curve),
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_mappings),
    cmocka_unit_test(test_overlap),
    cmocka_unit_test(test_a_program_that_does_not_use_its_blocks),
    cmocka_unit_test(test_the_same_allocator),
    cmocka_unit_test(test_few_samples_are_not_compared),
};

UNIT_MAIN(tests)
