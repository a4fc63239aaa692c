#include "replay/run.h"
#include "base/clock.h"
#include "replay/run_explain.h"

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
};

static void shared_release(struct shared *s)
{
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

static uint64_t ticks_per_second(void)
{
    static uint64_t hz; // measured only once, because measuring takes 20 ms
    if (!hz)
        hz = clock_hz(clock_best());
    return hz;
}

void replay_run_calibrate(void)
{
    ticks_per_second();
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

static int check_end(const struct run_explained *w, const struct allocator *a,
                     const struct results *r, const struct launch_outcome *s, struct err *e)
{
    uint32_t status = atomic_load_explicit(&r->status, memory_order_acquire);
    if (status > RESULTS_DONE && !s->stuck)
        return run_explain_failure(w, a, r, e);
    if (status != RESULTS_DONE || s->status != 0)
        return run_explain_death(w, a, s, e);
    if (w->plan && r->calls_made != plan_facts(w->plan)->calls)
        return run_explain_miscount(w, a, r, e);
    return 0;
}

// Stops the decoder and returns its error, if any. Call before other checks, because an error of
// the decoder may have caused other errors.
static int stop_streaming(struct streaming *streaming, struct results *r, struct err *e)
{
    if (!streaming)
        return 0;
    int rc = streaming_stop(streaming, e);
    r->figures.idle_ns = streaming_idle_ns(streaming);
    return rc;
}

// Starts the player and waits until it exits. The results are in `shared`.
static int run_player(const struct plan *p, const struct allocator *a,
                      const struct replay_run_settings *set, struct shared *shared,
                      struct streaming *streaming, struct err *e)
{
    struct launch_outcome s;
    struct watchdog watchdog;
    struct run_explained w = {p, &watchdog};
    struct results *r = shared->results;
    const uint64_t n[] = {r->max_samples, r->max_stats, r->n_spans, r->snapshot_entries};
    struct launch_files files = {p ? plan_fd(p) : -1, shared->fd,
                                 streaming ? streaming_fd(streaming) : -1, &watchdog};
    watchdog_init(&watchdog, p, streaming, r, set->timeout_ns);
    int rc = set_library(shared->results, a, e);
    if (rc == 0)
        rc = launch_player(set->player, a, &files, &s, e);
    if (rc < 0)
        return rc;
    shared->wait_status = s.status;
    set_lengths(r, n); // an allocator may have overwritten the lengths
    rc = stop_streaming(streaming, shared->results, e);
    if (rc == 0)
        rc = check_end(&w, a, r, &s, e);
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

static int copy_samples(struct replay_run *run, const struct results *r, struct err *e)
{
    uint64_t n = atomic_load(&r->n_samples);
    run->n_samples = n < r->max_samples ? n : r->max_samples;
    run->samples = calloc(run->n_samples + 1, sizeof *run->samples);
    if (!run->samples)
        return err_no_memory(e, NULL);
    memcpy(run->samples, r->samples, run->n_samples * sizeof *run->samples);
    qsort(run->samples, run->n_samples, sizeof *run->samples, by_time);
    return 0;
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
    double ns_per_tick = 1e9 / (double)ticks_per_second();
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

static int copy_stats(struct replay_run *run, struct results *r, struct err *e)
{
    uint64_t n = atomic_load(&r->n_stats);
    run->n_stats = n < r->max_stats ? n : r->max_stats;
    run->stats = calloc(run->n_stats + 1, sizeof *run->stats);
    if (!run->stats)
        return err_no_memory(e, NULL);
    memcpy(run->stats, results_all_stats(r), run->n_stats * sizeof *run->stats);
    return 0;
}

static int copy_spans(struct replay_run *run, struct results *r, struct err *e)
{
    run->spans = calloc(r->n_spans + 1, sizeof *run->spans);
    if (!run->spans)
        return err_no_memory(e, NULL);
    memcpy(run->spans, results_spans(r), r->n_spans * sizeof *run->spans);
    return 0;
}

static int copy_snapshots(struct replay_run *run, struct results *r, struct err *e)
{
    size_t bytes = r->snapshot_entries * RESULTS_SNAPSHOTS * sizeof *run->snapshots;
    if (!bytes)
        return 0;
    run->snapshots = malloc(bytes);
    if (!run->snapshots)
        return err_no_memory(e, NULL);
    memcpy(run->snapshots, results_snapshots(r), bytes);
    run->snapshot_entries = r->snapshot_entries;
    return 0;
}

static int copy_calls(struct replay_run *run, const struct results *r, struct err *e)
{
    run->calls = calloc(HT_KIND_LIMIT, sizeof *run->calls);
    run->sizes = calloc(RESULTS_SIZES, sizeof *run->sizes);
    if (!run->calls || !run->sizes)
        return err_no_memory(e, NULL);
    for (unsigned i = 0; i < RESULTS_SIZES; i++)
        fill_call(&run->sizes[i], &r->calls[RESULTS_KINDS + i]);
    for (unsigned kind = 0; kind < RESULTS_KINDS; kind++)
        fill_call(&run->calls[kind], &r->calls[kind]);
    return 0;
}

static int copy_results(struct replay_run *run, const struct plan *p,
                        const struct replay_run_settings *s, struct results *r, struct err *e)
{
    *run = (struct replay_run){
        .refused = {r->refused_kind % HT_KIND_LIMIT, r->refused_size, r->refused_alignment},
        .counters_errno = (int)r->counters_errno,
        .counters_with_kernel = r->counters_with_kernel,
        .requested_bytes = r->requested_bytes,
        .usable_bytes = r->usable_bytes,
        .checked_blocks = r->checked_blocks,
    };
    figures_set_measured(&run->figures, &r->figures);
    snprintf(run->version, sizeof run->version, "%.*s", RESULTS_VERSION_BYTES - 1, r->version);
    run->library = strndup(r->found_library, RESULTS_PATH_BYTES);
    int rc = run->library ? copy_samples(run, r, e) : err_no_memory(e, NULL);
    snprintf(run->trim_function, sizeof run->trim_function, "%.*s", RESULTS_NAME_BYTES - 1,
             r->trim_function);
    if (rc == 0) {
        find_means(run);
        figures_derive(&run->figures, plan_facts(p), s->paced, s->idle_wait_ns > 0);
    }
    if (rc == 0)
        rc = copy_stats(run, r, e);
    if (rc == 0)
        rc = copy_spans(run, r, e);
    if (rc == 0)
        rc = copy_snapshots(run, r, e);
    return rc == 0 && r->timed ? copy_calls(run, r, e) : rc;
}

static void set_task(struct results *r, const struct replay_run_settings *s)
{
    r->touch = s->touch;
    r->timed = s->timed;
    r->libraries = s->libraries;
    r->paced = s->paced;
    r->coupled = s->coupled;
    r->stats = s->stats;
    r->trim_step = s->trim_step;
    r->idle_wait_ns = s->idle_wait_ns;
    r->clock = clock_best();
    r->spin_ticks = (uint64_t)((double)ticks_per_second() * SPIN_NS / 1e9);
}

int replay_run(const struct plan *p, const struct allocator *a, const struct replay_run_settings *s,
               struct replay_run *run, struct err *e)
{
    struct shared shared;
    struct streaming *streaming = NULL;
    *run = (struct replay_run){0};
    // Two additional samples are taken, at the start and at the end.
    const uint64_t n[] = {plan_facts(p)->samples + 2, s->stats ? plan_facts(p)->stats_samples : 0,
                          plan_threads(p), s->snapshots ? plan_facts(p)->slot_table_entries : 0};
    int rc = shared_init(&shared, n, e);
    if (rc == 0 && plan_facts(p)->streamed)
        rc = streaming_start(&streaming, p, e);
    if (rc == 0) {
        set_task(shared.results, s);
        shared.results->plan_at = plan_file_at(p);
        shared.results->plan_bytes = plan_own_bytes(p);
        rc = run_player(p, a, s, &shared, streaming, e);
    }
    if (rc == 0)
        rc = copy_results(run, p, s, shared.results, e);
    if (rc < 0) {
        replay_run_release(run);
        run->violation = shared.results ? shared.results->failed_violation : 0;
        run->wait_status = shared.wait_status;
    }
    streaming_free(streaming);
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
    free(run->sizes);
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
        rc = run_player(NULL, a, s, &shared, NULL, e);
    }
    if (rc == 0) {
        snprintf(version, 128, "%.127s", shared.results->version);
        *library = strndup(shared.results->found_library, RESULTS_PATH_BYTES);
        rc = *library ? 0 : err_no_memory(e, NULL);
    }
    shared_release(&shared);
    return rc;
}
