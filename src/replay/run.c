#include "replay/run.h"
#include "base/clock.h"
#include "replay/launch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SPIN_NS = 3000, // less than the time to go to sleep and wake up, about 5 µs
    OUTLIER_NS = 10000,
};

// Memory shared with the player.
struct shared {
    int fd;
    struct results *results;
    size_t bytes;
    int wait_status;
    struct streaming *streaming; // NULL if the plan is not streamed
};

static void shared_release(struct shared *s)
{
    streaming_free(s->streaming);
    if (s->results)
        munmap(s->results, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
}

static void set_lengths(struct results *r, const uint64_t n[4])
{
    r->max_samples = n[0];
    r->max_stats = n[1];
    r->n_spans = n[2];
    r->snapshot_entries = n[3];
}

// Maps shared memory with arrays for n[0] samples, n[1] statistics, n[2] threads and n[3] slot
// table entries.
static int shared_init(struct shared *s, const uint64_t n[4], struct err *e)
{
    *s = (struct shared){.fd = memfd_create("heaptape-results", MFD_CLOEXEC)};
    // The array of positions is aligned, which may use up one entry.
    s->bytes = sizeof *s->results + n[0] * sizeof *s->results->samples +
               n[1] * sizeof(struct results_stats) + n[2] * sizeof(struct results_span) +
               n[3] * RESULTS_SNAPSHOTS * sizeof(uint64_t) +
               (n[2] + 2) * sizeof(struct results_position);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) < 0)
        return err_set_errno(e, "cannot create shared memory for the results");
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map the results");
    s->results = at;
    s->results->magic = RESULTS_MAGIC;
    set_lengths(s->results, n);
    return 0;
}

uint64_t replay_run_ticks_per_second(void)
{
    static uint64_t hz; // measured only once, because measuring takes 20 ms
    if (!hz)
        hz = clock_hz(clock_best());
    return hz;
}

static int set_library(struct results *r, const struct allocator *a, struct err *e)
{
    struct stat st;
    if (!a->library)
        return 0;
    if (stat(a->library, &st) < 0)
        return err_set_errno(e, "%s: %s", a->name, a->library);
    r->library_dev = st.st_dev;
    r->library_ino = st.st_ino;
    return 0;
}

static void forward_output(int fd)
{
    char bytes[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n) {
        if (write(STDERR_FILENO, bytes, (size_t)n) < 0)
            return;
    }
}

static int check_end(const struct watchdog *w, const struct allocator *a,
                     const struct launch_outcome *s, struct err *e)
{
    const struct results *r = w->results;
    uint32_t status = atomic_load_explicit(&r->status, memory_order_acquire);
    if (status > RESULTS_DONE && !s->stuck)
        return launch_explain_failure(w, a, s->output, e);
    if (status != RESULTS_DONE || s->status != 0)
        return launch_explain_death(w, a, s, e);
    if (!w->plan || r->calls_made == plan_facts(w->plan)->calls)
        return 0;
    return err_set(
        e, -EBADMSG,
        "%s: made %llu of the %llu calls of the plan: the plan is damaged (try again with "
        "--no-cache)",
        a->name, (unsigned long long)r->calls_made, (unsigned long long)plan_facts(w->plan)->calls);
}

// Stops the decoder and returns its error, if any. Call before other checks, because an error of
// the decoder may have caused other errors.
static int stop_streaming(const struct shared *s, struct err *e)
{
    if (!s->streaming)
        return 0;
    int rc = streaming_stop(s->streaming, e);
    s->results->figures.idle_ns = streaming_idle_ns(s->streaming);
    return rc;
}

// Starts the player and waits until it exits. The results are in `shared`.
static int run_player(const struct plan *p, const struct allocator *a,
                      const struct replay_run_settings *set, struct shared *shared, struct err *e)
{
    struct launch_outcome s;
    struct watchdog w;
    struct results *r = shared->results;
    const uint64_t n[] = {r->max_samples, r->max_stats, r->n_spans, r->snapshot_entries};
    struct launch_files files = {p ? plan_fd(p) : -1, shared->fd,
                                 shared->streaming ? streaming_fd(shared->streaming) : -1, &w};
    watchdog_init(&w, p, shared->streaming, r, set->timeout_ns);
    int rc = set_library(shared->results, a, e) ?: launch_player(set->player, a, &files, &s, e);
    if (rc < 0)
        return rc;
    shared->wait_status = s.status;
    set_lengths(r, n); // an allocator may have overwritten the lengths
    rc = stop_streaming(shared, e) ?: check_end(&w, a, &s, e);
    if (rc == 0)
        forward_output(s.output);
    close(s.output);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct results_sample *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

// Sets the means over the calls. Each sample represents the calls up to halfway to the previous and
// the next sample.
static void find_means(struct replay_run *run)
{
    double rss = 0, live = 0, events = 0;
    for (size_t i = 1; i < run->n_samples; i++) {
        const struct results_sample *a = &run->samples[i - 1], *b = &run->samples[i];
        double n = b->event > a->event ? (double)(b->event - a->event) : 0;
        rss += n * ((double)a->rss_bytes + (double)b->rss_bytes) / 2;
        live += n * ((double)a->live_bytes + (double)b->live_bytes) / 2;
        events += n;
    }
    run->figures.mean_rss_bytes = events > 0 ? rss / events : 0;
    run->figures.mean_live_bytes = events > 0 ? live / events : 0;
}

static void fill_call(struct replay_call *c, const struct histogram *h)
{
    double ns_per_tick = 1e9 / (double)replay_run_ticks_per_second();
    c->count = h->count;
    if (!h->count)
        return;
    uint64_t limit = histogram_outlier_limit(h, (uint64_t)(OUTLIER_NS / ns_per_tick));
    c->mean_ns = histogram_mean_up_to(h, limit, &c->outliers) * ns_per_tick;
    c->p50_ns = (double)histogram_quantile(h, 0.5) * ns_per_tick;
    c->p99_ns = (double)histogram_quantile(h, 0.99) * ns_per_tick;
    c->p999_ns = (double)histogram_quantile(h, 0.999) * ns_per_tick;
    c->max_ns = (double)h->max * ns_per_tick;
    c->undisturbed_ns = histogram_trimmed_mean(h, 0.99) * ns_per_tick;
}

// Returns a copy of an array, which may be empty, or NULL when out of memory.
static void *copy_array(const void *array, size_t n, size_t size)
{
    void *copy = calloc(n + 1, size);
    return copy ? memcpy(copy, array, n * size) : NULL;
}

static int copy_arrays(struct replay_run *run, struct results *r, bool timed, struct err *e)
{
    uint64_t n_samples = atomic_load(&r->n_samples), n_stats = atomic_load(&r->n_stats);
    run->n_samples = n_samples < r->max_samples ? n_samples : r->max_samples;
    run->n_stats = n_stats < r->max_stats ? n_stats : r->max_stats;
    run->snapshot_entries = r->snapshot_entries;
    run->samples = copy_array(r->samples, run->n_samples, sizeof *run->samples);
    run->stats = copy_array(results_all_stats(r), run->n_stats, sizeof *run->stats);
    run->spans = copy_array(results_spans(r), r->n_spans, sizeof *run->spans);
    run->snapshots = copy_array(results_snapshots(r), r->snapshot_entries * RESULTS_SNAPSHOTS,
                                sizeof *run->snapshots);
    run->library = strndup(r->found_library, RESULTS_PATH_BYTES);
    run->calls = timed ? calloc(RESULTS_HISTOGRAMS, sizeof *run->calls) : NULL;
    if (!run->samples || !run->stats || !run->spans || !run->snapshots || !run->library ||
        (timed && !run->calls))
        return err_no_memory(e, NULL);
    qsort(run->samples, run->n_samples, sizeof *run->samples, by_time);
    for (unsigned i = 0; run->calls && i < RESULTS_HISTOGRAMS; i++)
        fill_call(&run->calls[i], &r->calls[i]);
    return 0;
}

static int copy_results(struct replay_run *run, const struct plan *p,
                        const struct results_task *task, struct results *r, struct err *e)
{
    *run = (struct replay_run){.report = r->report};
    run->report.refused_kind %= HT_KIND_LIMIT;
    run->report.version[RESULTS_VERSION_BYTES - 1] = 0;
    run->report.trim_function[RESULTS_NAME_BYTES - 1] = 0;
    figures_set_measured(&run->figures, &r->figures);
    int rc = copy_arrays(run, r, task->timed, e);
    if (rc < 0)
        return rc;
    find_means(run);
    figures_derive(&run->figures, plan_facts(p), task->paced, task->idle_wait_ns > 0);
    return 0;
}

int replay_run(const struct plan *p, const struct allocator *a, const struct replay_run_settings *s,
               struct replay_run *run, struct err *e)
{
    struct shared shared;
    *run = (struct replay_run){0};
    // Two additional samples are taken, at the start and at the end.
    const uint64_t n[] = {plan_facts(p)->samples + 2,
                          s->task.stats ? plan_facts(p)->stats_samples : 0, plan_threads(p),
                          s->snapshots ? plan_facts(p)->slot_table_entries : 0};
    int rc = shared_init(&shared, n, e);
    if (rc == 0 && plan_facts(p)->streamed)
        rc = streaming_start(&shared.streaming, p, e);
    if (rc == 0) {
        shared.results->task = s->task;
        shared.results->clock = clock_best();
        shared.results->spin_ticks =
            (uint64_t)((double)replay_run_ticks_per_second() * SPIN_NS / 1e9);
        shared.results->plan_at = plan_facts(p)->file_at;
        shared.results->plan_bytes = plan_facts(p)->own_bytes;
        rc = run_player(p, a, s, &shared, e);
    }
    if (rc == 0)
        rc = copy_results(run, p, &s->task, shared.results, e);
    if (rc < 0) {
        replay_run_release(run);
        run->violation = shared.results ? shared.results->failed_violation : 0;
        run->wait_status = shared.wait_status;
    }
    shared_release(&shared);
    return rc;
}

void replay_run_move_memory(struct replay_run *run, struct replay_run *memory)
{
    struct results_sample *samples = run->samples;
    size_t n = run->n_samples;
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_infos[i].group == FIGURE_MEMORY)
            run->figures.values[i] = memory->figures.values[i];
    }
    run->figures.coupled_waits = memory->figures.coupled_waits;
    run->samples = memory->samples;
    run->n_samples = memory->n_samples;
    memory->samples = samples;
    memory->n_samples = n;
}

void replay_run_release(struct replay_run *run)
{
    free(run->samples);
    free(run->calls);
    free(run->stats);
    free(run->spans);
    free(run->snapshots);
    free(run->library);
    *run = (struct replay_run){0};
}

int replay_probe(const struct allocator *a, const struct replay_run_settings *s, char version[128],
                 char **library, struct err *e)
{
    struct shared shared;
    int rc = shared_init(&shared, (const uint64_t[]){0, 0, 0, 0}, e);
    if (rc == 0) {
        shared.results->probe = 1;
        rc = run_player(NULL, a, s, &shared, e);
    }
    if (rc == 0) {
        snprintf(version, 128, "%.127s", shared.results->report.version);
        *library = strndup(shared.results->found_library, RESULTS_PATH_BYTES);
        rc = *library ? 0 : err_no_memory(e, NULL);
    }
    shared_release(&shared);
    return rc;
}

struct replay_call replay_run_call(const struct replay_run *timed, const struct replay_run *null,
                                   unsigned kind)
{
    if (!timed->calls || !timed->calls[kind].count)
        return (struct replay_call){0};
    struct replay_call c = timed->calls[kind];
    double overhead_ns = null->calls[kind].undisturbed_ns;
    c.mean_ns = fdim(c.mean_ns, overhead_ns);
    c.p50_ns = fdim(c.p50_ns, overhead_ns);
    c.p99_ns = fdim(c.p99_ns, overhead_ns);
    c.p999_ns = fdim(c.p999_ns, overhead_ns);
    c.max_ns = fdim(c.max_ns, overhead_ns);
    return c;
}
