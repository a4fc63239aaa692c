#include "commands/replay_session.h"
#include "cli/command.h"
#include "cli/paths.h"
#include "commands/watch.h"
#include "plan/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum sort_of_run { RUN_MEASURED, RUN_TIMED, RUN_USABLE, RUN_STATS };

static int find_own(const char *name, char path[PATH_MAX], struct err *e)
{
    int rc = paths_find(name, path, PATH_MAX);
    return rc < 0 ? err_set(e, rc, "%s: not found where heaptape was installed: %s", name, strerror(-rc)) : 0;
}

int session_init(struct replay_session *s, struct err *e)
{
    s->input.in.fd = -1;
    int rc = find_own("heaptape-replay", s->player, e);
    s->settings.player = s->player;
    return rc < 0 ? rc : find_own("libheaptape-null.so", s->null_library, e);
}

static void figures_release(struct replay_figures *f)
{
    for (size_t i = 0; i < f->n_runs; i++)
        replay_run_release(&f->runs[i]);
    free(f->runs);
    replay_run_release(&f->latency);
    replay_run_release(&f->usable);
    replay_run_release(&f->stats);
    for (unsigned i = 0; i < PLAN_SNAPSHOTS; i++)
        fragmentation_release(&f->fragmentation[i]);
    allocator_release(&f->allocator);
}

void session_release(struct replay_session *s)
{
    progress_clear(&s->progress);
    for (size_t i = 0; i < s->n_figures; i++)
        figures_release(&s->figures[i]);
    figures_release(&s->null);
    free(s->figures);
    symbols_free(s->symbols);
    workload_sites_release(&s->sites);
    free(s->recorded_allocator);
    plan_free(s->plan);
    workload_file_close(&s->input);
}

int session_add_allocator(struct replay_session *s, const char *spec, struct err *e)
{
    struct replay_figures *grown = realloc(s->figures, (s->n_figures + 1) * sizeof *grown);
    if (!grown)
        return err_set(e, -ENOMEM, "out of memory");
    s->figures = grown;
    struct replay_figures *f = &s->figures[s->n_figures];
    *f = (struct replay_figures){0};
    int rc = allocator_parse(&f->allocator, spec, e);
    if (rc == 0)
        s->n_figures++;
    return rc;
}

static void report_read(void *context, uint64_t ops)
{
    progress_update(context, ops);
}

static uint64_t expected_ops(const struct workload_file *w)
{
    struct workload_summary summary;
    return workload_read_summary(w->reader, &summary, NULL) == 0 ? summary.events : 0;
}

// A stamp's length at the speed asked for.
static int set_pace(struct replay_session *s, const struct workload_file *w, struct err *e)
{
    const struct workload_header *h = workload_reader_header(w->reader);
    if (!(s->speed > 0))
        return 0;
    if (!h->has_stamps || !h->clock_hz)
        return err_set(e, -EINVAL, "%s: has no times, so there is no pace to keep", w->in.name);
    s->how_to_plan.ns_per_stamp = s->ns_a_stamp / s->speed;
    s->settings.paced = true;
    return 0;
}

static int rewind_input(void *context, struct workload_reader **r, struct err *e)
{
    struct workload_file *w = context;
    int rc = workload_file_rewind(w, e);
    *r = w->reader;
    return rc;
}

// Samples have stamps even where ops have none, but then they cannot be put between the ops.
static int watch_samples(struct replay_session *s, struct err *e)
{
    const struct workload_sample *samples;
    size_t n;
    if (!workload_reader_header(s->input.reader)->has_stamps)
        return 0;
    // What is wrong with the file will be said when it is read as a whole.
    int rc = workload_read_samples(s->input.reader, &samples, &n, NULL);
    s->has_samples = rc == 0 && n > 0;
    return s->has_samples ? plan_set_samples(s->plan, samples, n, e) : 0;
}

static int make_plan(struct replay_session *s, struct err *e)
{
    int rc = plan_new(&s->plan, s->input.in.name, &s->how_to_plan, e);
    if (rc == 0)
        rc = watch_samples(s, e);
    if (rc == 0)
        rc = plan_read(s->plan, s->input.reader, &(struct plan_progress){report_read, &s->progress}, e);
    return rc;
}

// Keeps the plan whole if the memory allows it.
static int make_fitting_plan(struct replay_session *s, uint64_t expected, struct err *e)
{
    enum { LEAST_OP_BYTES = 8 };
    s->how_to_plan.streamed = expected > s->how_to_plan.memory_bytes / LEAST_OP_BYTES;
    int rc = make_plan(s, e);
    if (rc != -E2BIG || s->how_to_plan.streamed)
        return rc;
    *e = (struct err){0};
    plan_free(s->plan);
    s->plan = NULL;
    s->how_to_plan.streamed = true;
    rc = workload_file_rewind(&s->input, e);
    return rc < 0 ? rc : make_plan(s, e);
}

static void note_recording(struct replay_session *s, const struct workload_header *h)
{
    s->recorded_allocator = h->allocator ? strdup(h->allocator) : NULL;
    if (h->has_stamps && h->clock_hz)
        s->ns_a_stamp = 1e9 / (double)h->clock_hz * (double)(1ull << (h->stamp_shift & 63));
}

int session_read(struct replay_session *s, const char *path, struct err *e)
{
    struct workload_file *w = &s->input;
    uint64_t expected = 0;
    s->workload = path;
    int rc = convert_open(w, path, &(struct convert_open_options){.twice = true, .watch = watch_conversion()}, e);
    if (rc == 0) {
        expected = expected_ops(w);
        progress_init(&s->progress, "reading the workload", "events", expected, cli_common.quiet);
        note_recording(s, workload_reader_header(w->reader));
        rc = set_pace(s, w, e);
    }
    if (!s->how_to_plan.memory_bytes)
        s->how_to_plan.memory_bytes = plan_default_memory();
    if (rc == 0)
        rc = make_fitting_plan(s, expected, e);
    progress_clear(&s->progress);
    if (rc < 0 || (!s->how_to_plan.streamed && !s->fragmentation))
        workload_file_close(w);
    s->source = (struct streaming_source){rewind_input, w};
    s->settings.source = &s->source;
    return rc;
}

// Where the next run of that sort goes.
static struct replay_run *room_for(struct replay_figures *f, enum sort_of_run sort)
{
    switch (sort) {
    case RUN_MEASURED:
        return &f->runs[f->n_runs];
    case RUN_TIMED:
        return &f->latency;
    case RUN_USABLE:
        return &f->usable;
    case RUN_STATS:
        break;
    }
    return &f->stats;
}

static int run_once(struct replay_session *s, struct replay_figures *f, enum sort_of_run sort, struct err *e)
{
    struct replay_settings settings = s->settings;
    settings.timed = sort == RUN_TIMED;
    settings.stats = sort == RUN_STATS;
    if (sort == RUN_USABLE)
        settings.touch = RESULTS_TOUCH_USABLE;
    // What the player itself takes does not hang on the pace, nor do sizes.
    if (f == &s->null || sort == RUN_USABLE)
        settings.paced = false;
    if (f == &s->null || sort != RUN_MEASURED)
        settings.idle_wait_ns = 0;
    int rc = replay_run(s->plan, &f->allocator, &settings, room_for(f, sort), e);
    if (rc == 0 && sort == RUN_MEASURED)
        f->n_runs++;
    progress_update(&s->progress, ++s->runs_done);
    return rc;
}

static int run_round(struct replay_session *s, enum sort_of_run sort, struct err *e)
{
    bool needs_null = !s->verify && (sort == RUN_MEASURED || sort == RUN_TIMED);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_figures; i++)
        rc = run_once(s, &s->figures[i], sort, e);
    return rc < 0 || !needs_null ? rc : run_once(s, &s->null, sort, e);
}

static size_t values_of(const struct replay_figures *f, size_t figure, double *out)
{
    for (size_t i = 0; i < f->n_runs; i++)
        out[i] = f->runs[i].figures.values[figure];
    return f->n_runs;
}

struct measure_ratio session_ratio(const struct replay_session *s, const struct replay_figures *f, size_t figure)
{
    double of[MEASURE_MAX_RUNS], to[MEASURE_MAX_RUNS];
    size_t n = values_of(f, figure, of), n_to = values_of(&s->figures[0], figure, to);
    return measure_ratio(of, n, to, n_to);
}

// Each run's replay overhead is that of the null allocator's run in the same round.
static void sum_up(struct replay_figures *f, const struct replay_figures *null)
{
    const union figures *runs[MEASURE_MAX_RUNS];
    double walls[MEASURE_MAX_RUNS];
    for (size_t i = 0; i < f->n_runs; i++) {
        f->runs[i].figures.overhead_ns_per_event = i < null->n_runs ? null->runs[i].figures.ns_per_event : NAN;
        runs[i] = &f->runs[i].figures;
    }
    f->typical = measure_median_index(walls, values_of(f, FIGURE_wall_ns, walls));
    figures_summarize(&f->figures, runs, f->n_runs, f->typical);
}

static int make_room(struct replay_session *s, struct replay_figures *f, struct err *e)
{
    f->runs = calloc(s->n_runs, sizeof *f->runs);
    return f->runs ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int prepare_null(struct replay_session *s, struct err *e)
{
    s->null.allocator.name = strdup("null");
    s->null.allocator.library = strdup(s->null_library);
    if (!s->null.allocator.name || !s->null.allocator.library)
        return err_set(e, -ENOMEM, "out of memory");
    return make_room(s, &s->null, e);
}

static uint64_t count_runs(const struct replay_session *s)
{
    uint64_t extra = s->internal_fragmentation + s->fragmentation + (s->how_to_plan.stats_every != 0);
    return (s->n_runs + s->latency) * (s->n_figures + !s->verify) + extra * s->n_figures;
}

int session_run(struct replay_session *s, struct err *e)
{
    machine_look(&s->machine);
    int rc = prepare_null(s, e);
    for (size_t i = 0; rc == 0 && i < s->n_figures; i++)
        rc = make_room(s, &s->figures[i], e);
    progress_init(&s->progress, "replaying", "runs", count_runs(s), cli_common.quiet);
    for (uint64_t i = 0; rc == 0 && i < s->n_runs; i++)
        rc = run_round(s, RUN_MEASURED, e);
    if (rc == 0 && s->latency)
        rc = run_round(s, RUN_TIMED, e);
    if (rc == 0 && s->internal_fragmentation)
        rc = run_round(s, RUN_USABLE, e);
    if (rc == 0 && s->how_to_plan.stats_every)
        rc = run_round(s, RUN_STATS, e);
    if (rc == 0 && s->fragmentation)
        rc = session_find_fragmentation(s, e);
    progress_clear(&s->progress);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < s->n_figures; i++)
        sum_up(&s->figures[i], &s->null);
    return 0;
}

static double less(double ns, double overhead_ns)
{
    return ns > overhead_ns ? ns - overhead_ns : 0;
}

static struct replay_call without_overhead(struct replay_call c, double overhead_ns)
{
    c.mean_ns = less(c.mean_ns, overhead_ns);
    c.p50_ns = less(c.p50_ns, overhead_ns);
    c.p99_ns = less(c.p99_ns, overhead_ns);
    c.p999_ns = less(c.p999_ns, overhead_ns);
    c.max_ns = less(c.max_ns, overhead_ns);
    return c;
}

struct replay_call session_call(const struct replay_session *s, const struct replay_figures *f, unsigned kind)
{
    if (!f->latency.calls || !f->latency.calls[kind].count)
        return (struct replay_call){0};
    return without_overhead(f->latency.calls[kind], s->null.latency.calls[kind].undisturbed_ns);
}

struct replay_call session_size(const struct replay_session *s, const struct replay_figures *f, unsigned class)
{
    if (!f->latency.sizes || !f->latency.sizes[class].count)
        return (struct replay_call){0};
    return without_overhead(f->latency.sizes[class], s->null.latency.sizes[class].undisturbed_ns);
}
