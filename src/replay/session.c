#include "replay/session.h"

#include "base/buf.h"
#include "trace/libraries.h"
#include "trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum run_purpose { RUN_MEASURED, RUN_TIMED, RUN_USABLE, RUN_STATS };

void replay_session_init(struct replay_session *s, const struct replay_settings *settings)
{
    *s = (struct replay_session){.settings = *settings, .plan_file.fd = -1};
    struct replay_settings *set = &s->settings;
    if (set->verify) {
        set->touch = RESULTS_TOUCH_VERIFY;
        set->latency = set->internal_fragmentation = set->fragmentation = false;
        set->stats_every = 0;
    }
    s->plan_settings = (struct plan_settings){
        .memory_bytes = set->memory_bytes ? set->memory_bytes : plan_default_memory(),
        .one_thread = set->threads == REPLAY_THREADS_ONE,
        .stats_every = set->stats_every,
        .trim_every = set->trim_every,
    };
}

static void result_release(struct replay_result *r)
{
    for (size_t i = 0; i < r->n_runs; i++)
        replay_run_release(&r->runs[i]);
    free(r->runs);
    free(r->failure);
    free(r->real);
    free(r->real_calls);
    replay_run_release(&r->latency);
    replay_run_release(&r->usable);
    replay_run_release(&r->stats);
    for (unsigned i = 0; i < PLAN_SNAPSHOTS; i++)
        fragmentation_release(&r->fragmentation[i]);
    allocator_release(&r->allocator);
}

void replay_session_release(struct replay_session *s)
{
    progress_clear(&s->progress);
    for (size_t i = 0; i < s->n_results + s->n_failed; i++)
        result_release(&s->results[i]);
    result_release(&s->added);
    result_release(&s->null);
    free(s->results);
    symbols_free(s->symbols);
    workload_sites_release(&s->sites);
    free(s->recorded_allocator);
    free(s->recorded_build_id);
    free(s->recorded_argv);
    plan_free(s->plan);
    output_close(&s->plan_file, false, NULL);
    cache_release(&s->cache);
    process_rss_release(&s->outside);
}

int replay_session_add(struct replay_session *s, const char *spec, struct err *e)
{
    if (HT_GROW(&s->results, &s->results_capacity, s->n_results + 1) < 0)
        return err_no_memory(e, NULL);
    struct replay_result *r = &s->results[s->n_results];
    *r = (struct replay_result){.trim_step = 1};
    int rc = allocator_parse(&r->allocator, spec, e);
    if (rc == 0)
        s->n_results++;
    return rc;
}

static void read_summary(struct replay_session *s, const struct workload_file *w)
{
    struct workload_summary *summary = &s->summary;
    if (workload_read_summary(w->reader, summary, NULL) < 0)
        *summary = (struct workload_summary){0};
    if (summary->recording_ns > summary->cpu_ns)
        summary->recording_ns = summary->cpu_ns;
    if (!summary->libraries && summary->cxx_bytes)
        summary->libraries = LIBRARIES_CXX;
    summary->libraries &= ~libraries_bit(s->recorded_allocator ? s->recorded_allocator : "");
}

// Sets the duration of a timestamp unit at the requested speed. At full speed, the duration is used
// only for the allocator's clock.
static int set_pace(struct replay_session *s, const struct workload_file *w, struct err *e)
{
    const struct workload_header *h = workload_reader_header(w->reader);
    bool is_paced = s->settings.speed > 0;
    if (h->has_stamps && h->clock_hz)
        s->plan_settings.ns_per_stamp = s->ns_per_stamp / (is_paced ? s->settings.speed : 1);
    else if (is_paced)
        return err_set(e, -EINVAL, "%s: has no times, which --speed needs", w->in.name);
    s->plan_settings.paced = is_paced;
    return 0;
}

// Passes the samples to the plan. If the ops have no timestamps, does nothing, because the samples
// cannot be placed between the ops.
static int set_samples(struct replay_session *s, struct err *e)
{
    const struct workload_sample *samples;
    size_t n;
    if (!workload_reader_header(s->input->reader)->has_stamps)
        return 0;
    // Any errors in the file are reported when the ops are read.
    int rc = workload_read_samples(s->input->reader, &samples, &n, NULL);
    s->has_samples = rc == 0 && n > 0;
    return s->has_samples ? plan_set_samples(s->plan, samples, n, e) : 0;
}

static void store_plan(struct replay_session *s)
{
    struct output file;
    if (s->plan_settings.streamed) {
        cache_store(&s->cache, s->plan, s->input, &s->plan_file);
        return;
    }
    if (cache_open_file(&s->cache, &file, NULL) == 0)
        cache_store(&s->cache, s->plan, s->input, &file);
    output_close(&file, false, NULL);
}

static int make_plan(struct replay_session *s, struct err *e)
{
    size_t n;
    if (cache_load(&s->cache, &s->plan, s->input->in.name, &s->plan_settings)) {
        s->has_samples = plan_recorded_samples(s->plan, &n) && n > 0;
        return 0;
    }
    int rc = 0;
    s->plan_settings.file = &s->plan_file;
    if (s->plan_settings.streamed && cache_open_file(&s->cache, &s->plan_file, NULL) < 0)
        rc = output_open_unnamed(&s->plan_file, e);
    rc = rc ?: plan_new(&s->plan, s->input->in.name, &s->plan_settings, e) ?: set_samples(s, e);
    workload_reader_prove_order(s->input->reader);
    if (rc == 0)
        rc = plan_read(s->plan, s->input->reader, &s->progress, e);
    if (rc == 0)
        store_plan(s);
    return rc;
}

// Builds a plan in memory or, if it does not fit, a streamed plan.
static int make_fitting_plan(struct replay_session *s, uint64_t expected, struct err *e)
{
    enum { MIN_OP_BYTES = 8 };
    s->plan_settings.streamed = expected > s->plan_settings.memory_bytes / MIN_OP_BYTES;
    int rc = make_plan(s, e);
    if (rc != -E2BIG || s->plan_settings.streamed)
        return rc;
    *e = (struct err){0};
    plan_free(s->plan);
    s->plan = NULL;
    s->plan_settings.streamed = true;
    return workload_file_rewind(s->input, e) ?: make_plan(s, e);
}

static void note_recording(struct replay_session *s, const struct workload_header *h)
{
    s->recorded_allocator = h->allocator ? strdup(h->allocator) : NULL;
    s->recorded_build_id = h->allocator_build_id ? strdup(h->allocator_build_id) : NULL;
    s->forked_from = h->forked_from;
    s->recorded_argv = h->argv_bytes ? malloc(h->argv_bytes) : NULL;
    if (s->recorded_argv)
        memcpy(s->recorded_argv, h->argv, s->recorded_argv_bytes = h->argv_bytes);
    if (h->has_stamps && h->clock_hz)
        s->ns_per_stamp = 1e9 / (double)h->clock_hz * (double)(1ull << (h->stamp_shift & 63));
}

// Finds bounds on the workload's memory in another pass over its ops.
static int find_placement(struct replay_session *s, uint64_t events, struct err *e)
{
    uint64_t max = s->settings.placement_events;
    s->placement_missing_reason = !max ? "the search was not requested"
                                  : events > max
                                      ? "the workload has many calls (--placement always)"
                                      : NULL;
    if (s->placement_missing_reason)
        return 0;
    int rc =
        workload_file_rewind(s->input, e) ?: placement_read(s->input->reader, &s->placement, e);
    if (rc != -EFBIG)
        return rc;
    *e = (struct err){0};
    s->placement_missing_reason = "a block is too big";
    return 0;
}

struct replay_best_placement replay_session_best_placement(const struct replay_session *s)
{
    struct replay_best_placement b = {
        s->placement_missing_reason ? NAN : (double)s->placement.found_bytes, NULL};
    for (size_t i = 0; !s->placement_missing_reason && i < s->n_results; i++) {
        if (s->results[i].figures.peak_rss_bytes < b.bytes)
            b = (struct replay_best_placement){s->results[i].figures.peak_rss_bytes,
                                               &s->results[i]};
    }
    return b;
}

int replay_session_read(struct replay_session *s, const char *name, struct workload_file *w,
                        struct err *e)
{
    s->workload = name;
    s->input = w;
    note_recording(s, workload_reader_header(w->reader));
    read_summary(s, w);
    uint64_t expected = s->summary.events;
    progress_init(&s->progress, "reading the workload", "events", expected, s->settings.quiet);
    int rc = set_pace(s, w, e);
    if (rc == 0 && expected >= CACHE_MIN_EVENTS && !s->settings.no_cache)
        cache_init(&s->cache, w);
    rc = rc ?: make_fitting_plan(s, expected, e) ?: find_placement(s, expected, e);
    progress_clear(&s->progress);
    return rc;
}

bool replay_session_needs_input(const struct replay_session *s)
{
    return s->settings.fragmentation;
}

bool replay_session_memory_apart(const struct replay_session *s)
{
    return s->settings.threads == REPLAY_THREADS_AUTO && !(s->settings.speed > 0) &&
           replay_session_memory_threads(s) == REPLAY_THREADS_COUPLED;
}

// Makes another run with coupled threads, and copies the memory figures of that run.
static int run_for_memory(struct replay_session *s, const struct replay_result *r,
                          struct replay_run_settings settings, struct replay_run *run,
                          struct err *e)
{
    struct replay_run memory;
    settings.task.coupled = true;
    settings.task.idle_wait_ns = s->settings.idle_ns;
    int rc = replay_run(s->plan, &r->allocator, &settings, &memory, e);
    if (rc == 0)
        replay_run_move_memory(run, &memory);
    replay_run_release(&memory);
    return rc;
}

// Returns the libraries of the recorded program. A workload may lack them.
static uint64_t find_libraries(const struct replay_session *s)
{
    const uint64_t *calls = plan_facts(s->plan)->by_kind;
    for (unsigned kind = HT_NEW; !s->summary.libraries && kind <= HT_DELETE_ARRAY_ALIGNED_NOTHROW;
         kind++) {
        if (calls[kind])
            return LIBRARIES_CXX;
    }
    return s->summary.libraries;
}

// Sets the program's time between two calls, if the CPU time is known.
static void set_gap(const struct replay_session *s, struct results_task *task)
{
    uint64_t calls = plan_facts(s->plan)->calls,
             other_ns = s->summary.recording_ns + s->summary.calls_min_ns;
    if (!calls || s->summary.cpu_ns <= other_ns)
        return;
    task->gap_ns = (s->summary.cpu_ns - other_ns) / calls;
    task->other_ns = other_ns / calls;
}

static int run_once(struct replay_session *s, struct replay_result *r, enum run_purpose purpose,
                    struct err *e)
{
    const struct replay_settings *set = &s->settings;
    bool is_null = r == &s->null, apart = replay_session_memory_apart(s) && purpose == RUN_MEASURED;
    // Neither the null allocator's runs nor usable sizes depend on the pace, so do not pace them.
    struct replay_run_settings settings = {
        .player = set->player,
        .timeout_ns = set->timeout_ns,
        .task.touch = purpose == RUN_USABLE ? RESULTS_TOUCH_USABLE : set->touch,
        .task.timed = purpose == RUN_TIMED,
        .task.libraries = find_libraries(s),
        .task.stats = purpose == RUN_STATS,
        .task.trim_step = r->trim_step,
        .task.coupled = !apart && purpose != RUN_TIMED &&
                        replay_session_memory_threads(s) == REPLAY_THREADS_COUPLED,
        .task.paced = set->speed > 0 && !is_null && purpose != RUN_USABLE,
        .task.idle_wait_ns = is_null || apart || purpose != RUN_MEASURED ? 0 : set->idle_ns,
    };
    // The null allocator's times are the replay overhead.
    if (purpose == RUN_TIMED && !is_null)
        set_gap(s, &settings.task);
    if (purpose == RUN_MEASURED && HT_GROW(&r->runs, &r->runs_capacity, r->n_runs + 1) < 0)
        return err_no_memory(e, NULL);
    struct replay_run *const to[] = {[RUN_MEASURED] = r->runs + r->n_runs,
                                     [RUN_TIMED] = &r->latency,
                                     [RUN_USABLE] = &r->usable,
                                     [RUN_STATS] = &r->stats},
                             *run = to[purpose];
    int rc = replay_run(s->plan, &r->allocator, &settings, run, e);
    if (rc == 0 && apart && !is_null)
        rc = run_for_memory(s, r, settings, run, e);
    if (rc == 0 && purpose == RUN_MEASURED && r->n_runs++ == 0)
        machine_build_id(run->library, r->build_id, sizeof r->build_id);
    if (rc == -EBADMSG)
        cache_drop(&s->cache);
    progress_update(&s->progress, ++s->runs_done);
    return rc;
}

void replay_session_drop_failed(struct replay_session *s)
{
    for (size_t i = 0; i < s->n_results;) {
        struct replay_result failed = s->results[i];
        if (!failed.failure) {
            i++;
            continue;
        }
        s->n_results--;
        s->n_failed++;
        memmove(&s->results[i], &s->results[i + 1], (s->n_results - i) * sizeof failed);
        s->results[s->n_results] = failed;
    }
}

// Marks and drops a failed result. Returns 0, -ENOMEM, or `rc` if it was the last one.
static int set_failed(struct replay_session *s, size_t i, int rc, struct err *e)
{
    s->results[i].failure = strdup(e->text[0] ? e->text : strerror(-rc));
    if (!s->results[i].failure)
        return err_no_memory(e, NULL);
    replay_session_drop_failed(s);
    if (!s->n_results)
        return rc;
    *e = (struct err){0};
    return 0;
}

static int run_batch(struct replay_session *s, enum run_purpose purpose, struct err *e)
{
    bool needs_null = !s->settings.verify && (purpose == RUN_MEASURED || purpose == RUN_TIMED);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_results;) {
        rc = run_once(s, &s->results[i], purpose, e);
        // A damaged plan fails on all allocators.
        if (rc == 0 || rc == -EBADMSG || !s->settings.keep_going)
            i++;
        else
            rc = set_failed(s, i, rc, e);
    }
    return rc < 0 || !needs_null ? rc : run_once(s, &s->null, purpose, e);
}

// Finds the recorded allocator, if the first round shows that the predictions lack it.
static int add_recorded(struct replay_session *s, struct err *e)
{
    const char *recorded = s->recorded_allocator ? s->recorded_allocator : "";
    bool has_use = s->settings.add_recorded && (s->summary.cpu_ns || s->has_samples);
    // Without a library, the allocator is part of the program.
    if (s->settings.verify || !has_use || !strstr(basename(recorded), ".so") ||
        process_rss_recorded(s))
        return 0;
    s->added.trim_step = 0; // as in the recorded program
    s->progress.total += s->settings.runs;
    return allocator_parse(&s->added.allocator, trace_is_glibc(recorded) ? "glibc" : recorded, e);
}

// Replays the recorded allocator in a round, if it was added. If the replay fails, or the installed
// allocator is not the recorded one, the predictions stay unknown.
static void run_recorded(struct replay_session *s, uint64_t round)
{
    struct err e = {0};
    int rc = round ? 0 : add_recorded(s, &e);
    if (rc == 0 && s->added.allocator.name)
        rc = run_once(s, &s->added, RUN_MEASURED, &e);
    if (rc == 0 && process_rss_recorded(s))
        return;
    result_release(&s->added);
    s->added = (struct replay_result){0};
}

static size_t values_of(const struct replay_result *r, size_t figure, double *out)
{
    for (size_t i = 0; i < r->n_runs; i++)
        out[i] = r->runs[i].figures.values[figure];
    return r->n_runs;
}

struct measure_ratio replay_session_ratio(const struct replay_session *s,
                                          const struct replay_result *r, size_t figure)
{
    double of[MEASURE_MAX_RUNS], to[MEASURE_MAX_RUNS];
    if (isnan(r->figures.values[figure]) || isnan(s->results[0].figures.values[figure]))
        return (struct measure_ratio){NAN, NAN, NAN, NAN};
    size_t n = values_of(r, figure, of), n_to = values_of(&s->results[0], figure, to);
    return measure_ratio(of, n, to, n_to);
}

// Finds the typical runs. Sets each run's replay overhead to the null allocator's time per event in
// the same round.
static void find_typical(struct replay_result *r, const struct replay_result *null)
{
    double walls[MEASURE_MAX_RUNS], peaks[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < r->n_runs; i++)
        r->runs[i].figures.overhead_ns_per_event =
            i < null->n_runs ? null->runs[i].figures.ns_per_event : NAN;
    r->typical = measure_median_index(walls, values_of(r, FIGURE_wall_ns, walls));
    r->typical_memory = measure_median_index(peaks, values_of(r, FIGURE_peak_rss_bytes, peaks));
}

int replay_session_run_one(struct replay_session *s, size_t i, struct err *e)
{
    return run_once(s, &s->results[i], RUN_MEASURED, e);
}

static int prepare_null(struct replay_session *s, struct err *e)
{
    s->null.allocator.name = strdup("replay overhead"); // named only in errors
    s->null.allocator.library = strdup(s->settings.null_library);
    if (!s->null.allocator.name || !s->null.allocator.library)
        return err_no_memory(e, NULL);
    return 0;
}

static bool has_stats(const struct replay_session *s)
{
    return !s->settings.verify && plan_facts(s->plan)->stats_samples > 0;
}

int replay_session_run(struct replay_session *s, struct err *e)
{
    if (s->settings.runs < 1 || s->settings.runs > MEASURE_MAX_RUNS)
        return err_set(e, -EINVAL, "the number of runs must be from 1 to %d", MEASURE_MAX_RUNS);
    const struct replay_settings *set = &s->settings;
    uint64_t extra = set->internal_fragmentation + set->fragmentation + has_stats(s),
             n = (set->runs + set->latency) * (s->n_results + !set->verify) + extra * s->n_results;
    machine_read(&s->machine);
    int rc = prepare_null(s, e);
    progress_init(&s->progress, "replaying", "runs", n, set->quiet);
    for (uint64_t i = 0; rc == 0 && i < s->settings.runs; i++) {
        rc = run_batch(s, RUN_MEASURED, e);
        if (rc == 0)
            run_recorded(s, i);
    }
    if (rc == 0 && s->settings.latency)
        rc = run_batch(s, RUN_TIMED, e);
    if (rc == 0 && s->settings.internal_fragmentation)
        rc = run_batch(s, RUN_USABLE, e);
    if (rc == 0 && has_stats(s))
        rc = run_batch(s, RUN_STATS, e);
    if (rc == 0 && s->settings.fragmentation)
        rc = replay_session_find_fragmentation(s, e);
    progress_clear(&s->progress);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < s->n_results; i++)
        find_typical(&s->results[i], &s->null);
    if (s->added.n_runs)
        find_typical(&s->added, &s->null);
    rc = process_rss_predict(s);
    for (size_t i = 0; i < s->n_results; i++) {
        struct replay_result *r = &s->results[i];
        const union figures *runs[MEASURE_MAX_RUNS];
        for (size_t k = 0; k < r->n_runs; k++)
            runs[k] = &r->runs[k].figures;
        figures_summarize(&r->figures, runs, r->n_runs, r->typical);
    }
    return rc < 0 ? err_no_memory(e, NULL) : 0;
}
