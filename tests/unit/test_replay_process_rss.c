// Tests the prediction of the memory of the whole process.
#include "replay/plan/plan.h"
#include "replay/process_rss.h"
#include "replay/session.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { CALLS = 1000, BLOCK = 100, KIB = 1024 };

// The memory of a program was sampled after 0, 500 and 1,000 calls. In a replay on the recorded
// allocator, the heap has 100, 600 and 400 KiB after these calls. In a replay on the other
// allocator, it has 200, 900 and 500 KiB.
struct fixture {
    struct replay_session s;
    struct replay_result results[2];
    struct replay_run runs[2];
    struct results_sample samples[2][3];
};

static const uint64_t at_event[3] = {0, CALLS / 2, CALLS};

// Call number `free_at` frees the block of the first call, which then has 500 KiB. If `free_at` is
// 0, no call does.
static struct plan *make_plan_with_free(size_t n, const struct workload_sample *samples,
                                        uint32_t free_at)
{
    struct plan *p;
    struct err e = {0};
    assert_int_equal(
        plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 64 << 20}, &e), 0);
    assert_int_equal(plan_set_samples(p, samples, n, &e), 0);
    for (uint32_t i = 0; i < CALLS; i++) {
        struct workload_op op = {.kind = HT_MALLOC, .slot = i, .size = BLOCK, .stamp = 10 * i + 5};
        if (free_at && i == 0)
            op.size = 500 * KIB;
        if (free_at && i == free_at)
            op = (struct workload_op){.kind = HT_FREE, .stamp = op.stamp};
        assert_int_equal(plan_add_ops(p, 0, &op, 1, &e), 0);
    }
    assert_int_equal(plan_finish(p, &e), 0);
    return p;
}

static struct plan *make_plan(size_t n, const struct workload_sample *samples)
{
    return make_plan_with_free(n, samples, 0);
}

// `rss_kib` and `shared_kib` are the recorded samples.
static struct replay_session *make(struct fixture *f, const uint64_t rss_kib[3],
                                   const uint64_t shared_kib[3])
{
    static const uint64_t heap_kib[2][3] = {{100, 600, 400}, {200, 900, 500}};
    struct workload_sample recorded[3];
    *f = (struct fixture){.s = {.recorded_allocator = "/lib/own.so",
                                .results = f->results,
                                .n_results = 2,
                                .has_samples = true}};
    for (unsigned i = 0; i < 3; i++) {
        recorded[i] = (struct workload_sample){10 * at_event[i], rss_kib[i] * KIB,
                                               (rss_kib[i] - shared_kib[i]) * KIB};
        for (unsigned k = 0; k < 2; k++)
            f->samples[k][i] = (struct results_sample){
                .event = at_event[i], .ns = i, .rss_bytes = heap_kib[k][i] * KIB};
    }
    for (unsigned k = 0; k < 2; k++) {
        f->runs[k] = (struct replay_run){.samples = f->samples[k],
                                         .n_samples = 3,
                                         .library = k ? "/lib/other.so" : "/lib/own.so"};
        f->runs[k].figures.peak_rss_bytes = (double)heap_kib[k][1] * KIB;
        f->runs[k].figures.end_rss_bytes = (double)heap_kib[k][2] * KIB;
        f->runs[k].figures.process_peak_rss_bytes = f->runs[k].figures.outside_rss_bytes = NAN;
        f->results[k] = (struct replay_result){.runs = &f->runs[k], .n_runs = 1};
    }
    f->s.plan = make_plan(3, recorded);
    return &f->s;
}

static void release(struct fixture *f)
{
    process_rss_release(&f->s.outside);
    plan_free(f->s.plan);
}

static void expect(const struct fixture *f, unsigned k, double process_kib, double outside_kib)
{
    assert_true(f->runs[k].figures.process_peak_rss_bytes == process_kib * KIB);
    assert_true(f->runs[k].figures.outside_rss_bytes == outside_kib * KIB);
}

static const uint64_t steady_kib[3] = {1100, 1600, 1400}, files_kib[3] = {800, 800, 800};

static void heap_and_memory_outside(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    assert_null(process_rss_missing_reason(s));
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1600, 1000);
    expect(&f, 1, 1900, 1000);
    assert_true(process_rss_outside(&s->outside, &f.runs[1], CALLS / 4) == 1000 * KIB);
    release(&f);
}

// The files of the allocator's library replace the files of the recorded allocator.
static void files_of_the_allocator(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    f.runs[0].figures.library_bytes = 50 * KIB;
    f.runs[1].figures.library_bytes = 250 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1600, 1000);
    expect(&f, 1, 2100, 1200);
    release(&f);
}

static void memory_of_the_recording(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    assert_true(process_rss_has_recording(s));
    s->summary.recording_rss_bytes = 300 * KIB;
    assert_false(process_rss_has_recording(s));
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1300, 700);
    expect(&f, 1, 1600, 700);
    release(&f);
}

// All predicted peaks contain the difference between the peak and the samples.
static void kernels_count_of_the_peak(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    s->summary.recording_rss_bytes = 300 * KIB;
    s->summary.peak_rss_bytes = 5300 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    assert_true(s->outside.hidden_bytes == 3700 * KIB);
    expect(&f, 0, 5000, 4400);
    expect(&f, 1, 5300, 4400);
    s->summary.peak_rss_bytes = 1500 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1200, 600);
    expect(&f, 1, 1500, 600);
    assert_true(s->outside.hidden_bytes == 0);
    assert_true(process_rss_outside(&s->outside, &f.runs[0], 0) == 600 * KIB);
    release(&f);
}

// The program maps 2,000 KiB itself after its heap has shrunk.
static void peak_after_the_peak_of_the_heap(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 1600, 3400}, files_kib);
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 3400, 3000);
    expect(&f, 1, 3500, 3000);
    assert_true(process_rss_outside(&s->outside, &f.runs[0], CALLS * 3 / 4) == 2000 * KIB);
    release(&f);
}

// The memory outside the heap may have grown before the peak of the heap. The peak is higher than
// the next sample.
static void memory_outside_grows_before_the_peak(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 1600, 1600}, files_kib);
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 1900, 1000);
    f.runs[1].figures.peak_rss_bytes = 950 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 2150, 1200);
    release(&f);
}

// The memory outside the heap shrinks after the peak of the heap. The other allocator retains the
// memory of this peak.
static void memory_outside_shrinks_after_the_peak(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){2100, 2600, 1400}, files_kib);
    f.samples[1][2].rss_bytes = 950 * KIB;
    f.runs[1].figures.peak_rss_bytes = 950 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 2950, 2000);
    release(&f);
}

// After its only call, the program writes to its block in steps. The replay writes to the block at
// other times.
static void samples_between_two_calls(void **state)
{
    static const uint64_t rss_kib[4] = {1000, 1700, 1700, 2000},
                          heap_kib[2][4] = {{0, 400, 1000, 1000}, {0, 1000, 1000, 1000}};
    (void)state;
    struct fixture f;
    struct workload_sample recorded[4];
    struct replay_session *s = make(&f, steady_kib, files_kib);
    struct results_sample samples[2][4];
    for (unsigned i = 0; i < 4; i++) {
        recorded[i] = (struct workload_sample){10, rss_kib[i] * KIB, (rss_kib[i] - 800) * KIB};
        for (unsigned k = 0; k < 2; k++)
            samples[k][i] =
                (struct results_sample){.event = 1, .ns = i, .rss_bytes = heap_kib[k][i] * KIB};
    }
    plan_free(s->plan);
    s->plan = make_plan(4, recorded);
    for (unsigned k = 0; k < 2; k++) {
        f.runs[k].samples = samples[k];
        f.runs[k].n_samples = 4;
        f.runs[k].figures.peak_rss_bytes = 1000 * KIB;
    }
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 2000, 1000);
    expect(&f, 1, 2000, 1000);
    release(&f);
}

// The replay has no sample after 500 calls, because its threads drift apart. At the recorded
// sample, the heap is between 100 and 400 KiB, so that the memory outside need not change, or at
// its peak of 600 KiB.
static void sample_between_two_of_the_replay(void **state)
{
    (void)state;
    for (unsigned is_peak = 0; is_peak < 2; is_peak++) {
        struct fixture f;
        const uint64_t rss_kib[3] = {1100, is_peak ? 1600 : 1350, 1400};
        struct replay_session *s = make(&f, rss_kib, files_kib);
        for (unsigned k = 0; k < 2; k++) {
            f.samples[k][1] = f.samples[k][2];
            f.runs[k].n_samples = 2;
        }
        if (!is_peak)
            f.runs[0].figures.peak_rss_bytes = 400 * KIB;
        assert_int_equal(process_rss_predict(s), 0);
        assert_true(process_rss_outside(&s->outside, &f.runs[0], CALLS / 2) == 1000 * KIB);
        expect(&f, 0, is_peak ? 1600 : 1400, 1000);
        release(&f);
    }
}

// The program writes to its blocks before the sample after 500 calls. The replay writes to them
// after this sample.
static void replay_that_lags_at_a_sample(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 2000, 1400}, files_kib);
    f.runs[0].figures.peak_rss_bytes = 1000 * KIB;
    f.runs[1].figures.peak_rss_bytes = 1300 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 2000, 1000);
    expect(&f, 1, 2300, 1000);
    release(&f);
}

// The program makes no call between the second and the third sample, but writes 300 KiB, which the
// replay does before its next sample.
static void write_between_two_calls(uint64_t second_kib)
{
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    const uint64_t rss_kib[4] = {1100, second_kib, 1600, 1600}, event[4] = {0, 2, 2, 4};
    struct workload_sample recorded[4];
    for (unsigned i = 0; i < 4; i++)
        recorded[i] =
            (struct workload_sample){10 * event[i], rss_kib[i] * KIB, (rss_kib[i] - 800) * KIB};
    plan_free(s->plan);
    s->plan = make_plan(4, recorded);
    const uint64_t heap_kib[3] = {100, 300, 600};
    for (unsigned i = 0; i < 3; i++) {
        f.samples[0][i].event = event[i + (i > 0)];
        f.samples[0][i].rss_bytes = heap_kib[i] * KIB;
    }
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1600, 1000);
    release(&f);
}

// The kernel unmaps a freed block of 500 KiB at the third sample, after four calls. The replay has
// freed it by then. If the free is not the last call, the free has ended, so the memory is outside.
static void free_before_a_sample(uint32_t free_at, double outside_kib)
{
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    const uint64_t rss_kib[4] = {1100, 1600, 1500, 1100}, heap_kib[4] = {100, 600, 100, 100};
    struct workload_sample recorded[4];
    struct results_sample samples[4];
    for (unsigned i = 0; i < 4; i++) {
        recorded[i] = (struct workload_sample){20 * i, rss_kib[i] * KIB, (rss_kib[i] - 800) * KIB};
        samples[i] =
            (struct results_sample){.event = 2 * i, .ns = i, .rss_bytes = heap_kib[i] * KIB};
    }
    plan_free(s->plan);
    s->plan = make_plan_with_free(4, recorded, free_at);
    f.runs[0].samples = samples;
    f.runs[0].n_samples = 4;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1600, 1000);
    assert_true(process_rss_outside(&s->outside, &f.runs[0], 4) == outside_kib * KIB);
    release(&f);
}

static void sample_in_a_free(void **state)
{
    (void)state;
    free_before_a_sample(3, 1000);
    free_before_a_sample(2, 1400);
}

// The program writes before the third sample, or already before the second sample.
static void writes_between_two_calls(void **state)
{
    (void)state;
    write_between_two_calls(1300);
    write_between_two_calls(1600);
}

// The program writes 1,000 KiB between two calls. The replay writes 400 KiB of them at samples, and
// the rest after its last sample between the calls.
static void writes_after_the_last_sample(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    const uint64_t rss_kib[4] = {1000, 1700, 1700, 2000}, event[4] = {0, 2, 2, 2},
                   heap_kib[4] = {0, 0, 400, 400};
    struct workload_sample recorded[4];
    struct results_sample samples[4];
    for (unsigned i = 0; i < 4; i++) {
        recorded[i] =
            (struct workload_sample){10 * event[i], rss_kib[i] * KIB, (rss_kib[i] - 800) * KIB};
        samples[i] =
            (struct results_sample){.event = event[i], .ns = i, .rss_bytes = heap_kib[i] * KIB};
    }
    plan_free(s->plan);
    s->plan = make_plan(4, recorded);
    f.runs[0].samples = samples;
    f.runs[0].n_samples = 4;
    f.runs[0].figures.peak_rss_bytes = 1000 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 2000, 1000);
    release(&f);
}

// The memory of a thread that exited before the second sample was freed after the sample. The
// replay frees the memory before its sample.
static void thread_exits_before_a_sample(void **state)
{
    (void)state;
    struct fixture f;
    size_t n;
    struct replay_session *s = make(&f, (const uint64_t[]){1600, 1600, 1400}, files_kib);
    f.samples[0][0].rss_bytes = 600 * KIB;
    f.samples[0][1].rss_bytes = 100 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 2100, 1200);
    ((struct plan_recorded_sample *)plan_recorded_samples(s->plan, &n))[1].exits = 1;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 1900, 1000);
    release(&f);
}

// After the last call, the memory of ended threads and the blocks of the last frees are free. The
// destructors of libraries have read 500 KiB of files.
static void threads_exit_before_the_end(void **state)
{
    (void)state;
    struct fixture f;
    size_t n;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 1600, 1600}, files_kib);
    f.samples[0][2].rss_bytes = 100 * KIB;
    f.runs[0].figures.end_rss_bytes = 100 * KIB;
    struct plan_recorded_sample *last =
        (struct plan_recorded_sample *)plan_recorded_samples(s->plan, &n) + 2;
    last->exits = 1;
    last->freed_bytes = 500 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 2000, 1500);
    release(&f);
}

// The second sample is in the middle of a realloc that copies 300 KiB. The replay has no sample in
// the call.
static void sample_in_a_call_that_copies(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 1600, 1600}, files_kib);
    f.samples[0][1].rss_bytes = 300 * KIB;
    f.samples[0][2].rss_bytes = 600 * KIB;
    f.runs[0].figures.peak_rss_bytes = 900 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1900, 1000);
    release(&f);
}

// The second sample is in the middle of a calloc that clears 300 KiB. The memory outside the heap
// does not change.
static void sample_in_a_call_that_clears(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1100, 1600, 1600}, files_kib);
    f.samples[0][1].rss_bytes = 300 * KIB;
    f.samples[0][2].rss_bytes = 600 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1600, 1000);
    expect(&f, 1, 1900, 1000);
    release(&f);
}

// The heap peaks between two samples.
static void peak_between_samples(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    f.runs[1].figures.peak_rss_bytes = 950 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 1, 1950, 1000);
    release(&f);
}

// The replay has more memory than the program, but shared pages are not heap.
// The memory outside the heap grows at the end. Before, the heap is near its peak if the allocator
// retains its memory.
static void expect_peak(uint64_t early_kib, double process_kib)
{
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){1700, 1700, 2400}, files_kib);
    f.samples[0][0].rss_bytes = f.samples[0][1].rss_bytes = early_kib * KIB;
    f.samples[0][2].rss_bytes = 900 * KIB;
    f.runs[0].figures.peak_rss_bytes = 910 * KIB;
    assert_int_equal(process_rss_predict(s), 0);
    assert_true(f.runs[0].figures.process_peak_rss_bytes == process_kib * KIB);
    release(&f);
}

static void peak_of_retained_memory(void **state)
{
    (void)state;
    // Within 2 % of the highest sample, the peak of 910 KiB is early. It exceeds the early samples
    // by more than 2 %, so the heap may also have 910 KiB at the end.
    expect_peak(882, 900 + 2400 - 910);
    // Otherwise, the peak is near the last sample.
    expect_peak(881, 910 + 2400 - 900);
}

static void files_are_outside(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, (const uint64_t[]){900, 900, 900}, files_kib);
    assert_int_equal(process_rss_predict(s), 0);
    expect(&f, 0, 1400, 800);
    release(&f);
}

static void unknown_without_samples_or_the_recorded_allocator(void **state)
{
    (void)state;
    struct fixture f;
    struct replay_session *s = make(&f, steady_kib, files_kib);
    char *tunables[] = {"MALLOC_ARENA_MAX=1"};
    s->has_samples = false;
    assert_non_null(strstr(process_rss_missing_reason(s), "no samples"));
    assert_false(process_rss_has_recording(s));
    s->has_samples = true;
    f.results[0].allocator.tunables = tunables;
    f.results[0].allocator.n_tunables = 1;
    assert_non_null(strstr(process_rss_missing_reason(s), "without tunables"));
    f.results[0].allocator.n_tunables = 0;
    // With added trims, the replay needs less memory than the program did.
    s->settings.trim_every = 1000;
    for (size_t i = 0; i < s->n_results; i++)
        s->results[i].trim_step = 1;
    assert_non_null(strstr(process_rss_missing_reason(s), "without tunables and trims"));
    f.results[0].trim_step = 0;
    assert_null(process_rss_missing_reason(s));
    s->settings.trim_every = 0;
    s->recorded_allocator = "/lib/third.so";
    assert_non_null(strstr(process_rss_missing_reason(s), "not among those replayed"));
    assert_int_equal(process_rss_predict(s), 0);
    assert_true(isnan(f.runs[0].figures.process_peak_rss_bytes) && !s->outside.n);
    release(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(heap_and_memory_outside),
    cmocka_unit_test(files_of_the_allocator),
    cmocka_unit_test(memory_of_the_recording),
    cmocka_unit_test(kernels_count_of_the_peak),
    cmocka_unit_test(peak_between_samples),
    cmocka_unit_test(peak_after_the_peak_of_the_heap),
    cmocka_unit_test(memory_outside_grows_before_the_peak),
    cmocka_unit_test(memory_outside_shrinks_after_the_peak),
    cmocka_unit_test(samples_between_two_calls),
    cmocka_unit_test(sample_between_two_of_the_replay),
    cmocka_unit_test(replay_that_lags_at_a_sample),
    cmocka_unit_test(writes_between_two_calls),
    cmocka_unit_test(writes_after_the_last_sample),
    cmocka_unit_test(sample_in_a_free),
    cmocka_unit_test(thread_exits_before_a_sample),
    cmocka_unit_test(threads_exit_before_the_end),
    cmocka_unit_test(sample_in_a_call_that_copies),
    cmocka_unit_test(sample_in_a_call_that_clears),
    cmocka_unit_test(peak_between_samples),
    cmocka_unit_test(peak_of_retained_memory),
    cmocka_unit_test(files_are_outside),
    cmocka_unit_test(unknown_without_samples_or_the_recorded_allocator),
};

UNIT_MAIN(tests)
