#include "analysis/file_stat.h"

#include "base/buf.h"
#include "trace/fields.h"
#include "workload/file.h"
#include "workload/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Configures `b` for s->part. Converts the points of the span to stamps of a clock with `hz` and
// `shift`.
static void init_by_site(const struct file_stat *s, struct by_site *b, uint64_t start_stamp,
                         uint64_t hz, unsigned shift)
{
    b->sample_bytes = s->stack_sample_bytes;
    b->count_uses = s->sums && !s->stack_sample_bytes;
    b->of_pools = s->part == FILE_STAT_POOLS;
    b->detailed = s->part == FILE_STAT_REPORT;
    b->ns_per_stamp = s->ns_per_stamp;
    if (!s->span)
        return;
    b->span = (struct by_site_span){.wanted = true, .from = s->span->from, .to = s->span->to};
    slice_point_resolve(&b->span.from, start_stamp, hz, shift);
    slice_point_resolve(&b->span.to, start_stamp, hz, shift);
}

// Statistics of one process while the file is being read.
struct file_stat_counter {
    struct file_stat *file;
    size_t process; // index of the process in `file`
    struct summary_counter summary;
    struct usage usage;
    struct workload_sample *samples;
    size_t n_samples, samples_capacity;
    struct by_site by_site; // empty until the first op with a call site
    struct workload_sites sites;
    struct big_blocks big_blocks;
    bool has_history; // file->reading reads the history of this process
};

static void counter_free(struct file_stat_counter *c)
{
    if (!c)
        return;
    summary_release(&c->summary);
    usage_release(&c->usage);
    by_site_release(&c->by_site);
    workload_sites_release(&c->sites);
    big_blocks_release(&c->big_blocks);
    free(c->samples);
    free(c);
}

void file_stat_release(struct file_stat *s)
{
    for (size_t i = 0; i < s->n_processes; i++) {
        free(s->processes[i].argv);
        free(s->processes[i].exe);
        counter_free(s->processes[i].counter);
        trace_process_release(&s->processes[i].facts);
    }
    trace_session_release(&s->session);
    trace_unrecorded_release(&s->unrecorded);
    free(s->processes);
    free(s->sums);
    free(s->samples);
    usage_release(&s->usage);
    symbols_free(s->symbols);
    by_site_release(&s->by_site);
    workload_sites_release(&s->sites);
    coverage_release(&s->coverage);
    big_blocks_release(&s->big_blocks);
    rss_history_release(&s->history);
    unexplained_release(&s->unexplained);
    *s = (struct file_stat){0};
}

static int add_process(struct file_stat *s, uint32_t pid, const char *argv, uint32_t argv_bytes,
                       const char *exe)
{
    if (HT_GROW(&s->processes, &s->capacity, s->n_processes + 1) < 0)
        return -ENOMEM;
    struct file_stat_process *p = &s->processes[s->n_processes];
    *p = (struct file_stat_process){.pid = pid, .argv_bytes = argv_bytes};
    p->argv = malloc(argv_bytes + 1u);
    p->exe = exe ? strdup(exe) : NULL;
    s->n_processes++;
    if (!p->argv || (exe && !p->exe))
        return -ENOMEM;
    if (argv_bytes)
        memcpy(p->argv, argv, argv_bytes);
    p->argv[argv_bytes] = 0;
    return 0;
}

// Counts ops that are `stride` bytes apart. Each op is either a workload_op of `thread` or a
// workload_thread_op. Most files have no call sites. Therefore, if `usage` is set, counting starts
// with the first batch that has a call site. All earlier ops are counted from `usage`, which must
// not include this batch yet.
static int count_sites(struct by_site *b, const struct usage *usage, uint32_t thread,
                       const struct workload_op *ops, size_t stride, size_t n)
{
    const char *at = (const char *)ops, *end = at + n * stride;
    if (!b->n_sites && usage) {
        while (at < end && !by_site_known((const struct workload_op *)at))
            at += stride;
        if (at == end)
            return 0;
        at = (const char *)ops;
        if (by_site_begin(b, usage) < 0)
            return -ENOMEM;
    }
    int rc = 0;
    for (; rc == 0 && at < end; at += stride) {
        const struct workload_thread_op *op = (const struct workload_thread_op *)at;
        rc = by_site_op(b, stride == sizeof *op ? op->thread : thread, &op->op);
    }
    return rc;
}

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct file_stat_counter *c = context;
    int rc = summary_ops(&c->summary, ops, n);
    if (rc == 0 && c->file->part != FILE_STAT_BRIEF)
        rc =
            count_sites(&c->by_site, c->file->sums ? &c->usage : NULL, 0, &ops->op, sizeof *ops, n);
    for (size_t i = 0; rc == 0 && c->file->sums && i < n; i++)
        rc = big_blocks_op(&c->big_blocks, ops[i].thread, &ops[i].op);
    return rc < 0 || !c->file->sums ? rc : usage_ops(&c->usage, ops, n);
}

static int count_calls(void *context, const struct workload_thread_op *ops,
                       const struct order_call *calls, size_t n)
{
    struct file_stat_counter *c = context;
    int rc = rss_reading_calls(c->file->reading, ops, calls, n);
    return rc < 0 ? rc : count_ops(context, ops, n);
}

static int count_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct file_stat_counter *c = context;
    if (HT_GROW(&c->samples, &c->samples_capacity, c->n_samples + n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        c->samples[c->n_samples++] =
            (struct workload_sample){samples[i].stamp, samples[i].rss_bytes, samples[i].anon_bytes};
    return 0;
}

// Returns true if the peak of process `p` is higher than the peak of the kept process, as in
// peaks_choose. Inherited blocks do not count.
static bool is_larger(const struct workload_summary *p, const struct workload_summary *kept)
{
    int64_t peak = (int64_t)(p->peak_live_bytes - p->preexisting_bytes),
            other = (int64_t)(kept->peak_live_bytes - kept->preexisting_bytes);
    return peak != other ? peak > other : p->events > kept->events;
}

static void keep_usage(struct file_stat *s, struct file_stat_counter *c)
{
    const struct workload_summary *of = &s->processes[c->process].summary;
    if (s->kept && !is_larger(of, &s->processes[s->of_usage].summary))
        return;
    s->kept = true;
    usage_release(&s->usage);
    free(s->samples);
    s->usage = c->usage;
    s->of_usage = c->process;
    s->samples = c->samples;
    s->n_samples = c->n_samples;
    c->usage = (struct usage){0};
    c->samples = NULL;
    by_site_release(&s->by_site);
    workload_sites_release(&s->sites);
    s->by_site = c->by_site;
    s->sites = c->sites;
    c->by_site = (struct by_site){0};
    c->sites = (struct workload_sites){0};
}

static int count_coverage(struct file_stat *s, const struct file_stat_process *p, struct by_site *b,
                          const struct workload_sites *sites)
{
    const struct coverage_bytes none = {p->summary.requested_bytes, p->summary.peak_live_bytes,
                                        p->summary.live_at_end_bytes};
    // A truncated workload lacks its sites.
    if (s->part == FILE_STAT_BRIEF || (b->n_sites && !sites->n_sites))
        return 0;
    by_site_finish(b);
    return b->n_sites ? coverage_add(&s->coverage, b, sites, p->exe)
                      : coverage_add_unknown(&s->coverage, &none);
}

// Finds the growth of a process's live bytes until its last event or, if it is later, its last
// sample.
static void find_live_growth(struct file_stat_process *p, const struct file_stat_counter *c)
{
    const struct usage *u = &c->usage;
    double span_ns = (double)u->last_stamp * u->ns_per_stamp, until_ns = 0;
    if (!(span_ns > 0) || !u->by_time.n)
        return;
    if (c->n_samples && c->samples[c->n_samples - 1].stamp > u->start_stamp)
        until_ns = (double)(c->samples[c->n_samples - 1].stamp - u->start_stamp) * u->ns_per_stamp;
    growth_of_timeline(&p->live_growth, &u->by_time, u->by_time.n, span_ns, until_ns);
}

static int count_done(void *context, const struct order_counts *counts,
                      const struct workload_sites *sites)
{
    struct file_stat_counter *c = context;
    struct file_stat_process *p = &c->file->processes[c->process];
    struct workload_summary *s = &p->summary;
    *s = summary_result(&c->summary);
    order_summarise(counts, s);
    big_blocks_measure(&c->big_blocks, counts->residency, &c->file->big, &c->by_site.uses);
    int rc = c->file->sums ? usage_finish(&c->usage) : 0;
    for (size_t i = 0; i < c->usage.n_threads && i < counts->threads; i++)
        c->usage.threads[i].tid = counts->tids[i];
    if (rc == 0 && c->by_site.n_sites)
        rc = workload_sites_copy_all(&c->sites, sites);
    if (rc == 0)
        rc = count_coverage(c->file, p, &c->by_site, sites);
    if (rc == 0 && c->has_history)
        rc = rss_reading_done(c->file->reading, counts, sites);
    if (rc == 0 && c->file->sums)
        find_live_growth(p, c);
    if (rc == 0)
        keep_usage(c->file, c);
    p->counter = NULL;
    counter_free(c);
    return rc;
}

static double ns_per_stamp(unsigned shift, uint64_t hz)
{
    return hz ? (double)(1ull << shift) * 1e9 / (double)hz : 0;
}

static int count_process(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct file_stat *s = context;
    int rc = add_process(s, p->pid, p->argv, p->argv_bytes, p->exe);
    struct file_stat_counter *c = rc < 0 ? NULL : calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    summary_init(&c->summary);
    usage_init(&c->usage, s->sums, p->start_stamp, s->ns_per_stamp);
    c->file = s;
    init_by_site(s, &c->by_site, p->start_stamp, s->clock_hz, s->stamp_shift);
    c->process = s->n_processes - 1;
    s->processes[c->process].counter = c;
    c->has_history = s->reading && rss_reading_process(s->reading) == p->number;
    *sink = (struct convert_sink){.ops = {.context = c, .ops = count_ops}, .done = count_done};
    if (s->sums)
        sink->samples = count_samples;
    if (!c->has_history)
        return 1;
    sink->ops.calls = count_calls;
    rc = rss_reading_begin(s->reading, p);
    return rc < 0 ? rc : 1;
}

static void show_progress(void *context, uint64_t offset)
{
    struct file_stat *s = context;
    progress_update(s->progress, offset);
}

// Returns the duration of the recording or, if only part was recorded, of that part.
static uint64_t trace_duration_ns(const struct trace_reader *r, uint64_t end_stamp)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (size_t i = 0; i < r->n_processes; i++) {
        const struct trace_process *p = r->processes[i];
        if (!p->recorded_to)
            return trace_stamp_ns(&r->session, end_stamp);
        from = p->recorded_from < from ? p->recorded_from : from;
        to = p->recorded_to > to ? p->recorded_to : to;
    }
    return to > from ? clock_to_ns((to - from) << r->session.stamp_shift, r->session.clock_hz) : 0;
}

static uint64_t workload_duration_ns(const struct workload_header *h,
                                     const struct workload_summary *s)
{
    uint64_t from =
        h->start_stamp && h->start_stamp < s->first_stamp ? h->start_stamp : s->first_stamp;
    uint64_t to = s->last_stamp;
    if (s->recorded_to) {
        from = s->recorded_from;
        to = s->recorded_to;
    }
    return h->has_stamps && to > from ? clock_to_ns((to - from) << h->stamp_shift, h->clock_hz) : 0;
}

// Moves data out of the reader, because the reader is released before *s.
static void keep_facts(struct file_stat *s, struct trace_reader *r)
{
    s->session = r->session;
    r->session = (struct trace_session){0};
    s->unrecorded = r->unrecorded;
    r->unrecorded = (struct trace_unrecorded){0};
    for (size_t i = 0; i < s->n_processes; i++) {
        s->processes[i].facts = *r->processes[i];
        *r->processes[i] = (struct trace_process){0};
    }
}

// Sets the missing names of threads. The recorder stored the names of the threads that were still
// running or, in old traces, the names of all threads.
static void name_threads(struct file_stat *s)
{
    const struct trace_process *p =
        s->of_usage < s->n_processes ? &s->processes[s->of_usage].facts : NULL;
    const uint8_t *at = p ? p->thread_names : NULL, *end = at ? at + p->thread_names_bytes : NULL;
    uint64_t tid;
    const char *name;
    size_t n;
    while (at < end && fields_next_name(&at, end, &tid, &name, &n)) {
        for (size_t i = 0; i < s->usage.n_threads; i++) {
            struct usage_thread *t = &s->usage.threads[i];
            if (t->tid == tid && !t->name[0])
                usage_name_thread(t, name, n);
        }
    }
}

void file_stat_set_facts(struct workload_summary *s, const struct trace_process *facts,
                         uint64_t clock_hz)
{
    // The recorder's count also includes losses in processes without events.
    s->lost_records = facts->lost_records > s->lost_records ? facts->lost_records : s->lost_records;
    s->cpu_ns = facts->recorded_to ? 0 : facts->cpu_ns;
    s->recording_ns = clock_to_ns(facts->recording_ticks, clock_hz);
    s->calls_min_ns = s->cpu_ns ? clock_to_ns(facts->call_min_ticks, clock_hz) : 0;
    s->calls_max_ns = s->cpu_ns ? clock_to_ns(facts->call_max_ticks, clock_hz) : 0;
    s->early_events = facts->early_events;
    s->early_max_ns = clock_to_ns(facts->early_max_ticks, clock_hz);
    s->early_usual_ns = clock_to_ns(facts->early_usual_ticks, clock_hz);
    s->recording_rss_bytes = trace_process_recording_rss(facts);
    s->peak_rss_bytes = trace_process_peak_rss(facts);
}

// Prepares to read the history. Ignores errors in the file, because the conversion reports them.
static int begin_history(struct file_stat *s, struct trace_file *t, struct err *e)
{
    struct err ignored;
    int rc = s->sums ? rss_history_begin(&s->history, &s->reading, t, &ignored) : 0;
    return rc == -ENOMEM ? err_no_memory(e, s->name) : 0;
}

// Ends reading the history. If the history and the usage describe different processes, which is
// possible if there are several processes, sets *other. Returns 0 or -ENOMEM.
static int end_history(struct file_stat *s, const struct trace_reader *r, bool *other)
{
    bool has_usage = s->reading && s->of_usage < s->n_processes;
    *other = has_usage && rss_reading_process(s->reading) != r->processes[s->of_usage]->number;
    int rc = rss_reading_end(s->reading, has_usage && !*other);
    s->reading = NULL;
    return rc;
}

static int read_history(struct file_stat *s, struct trace_file *t)
{
    struct err ignored; // the conversion has already reported errors in the file
    rss_history_release(&s->history);
    s->history = (struct rss_history){.n = 0};
    int rc = trace_file_rewind(t, &ignored)
                 ?: rss_history_read(&s->history, t, s->processes[s->of_usage].facts.number, NULL,
                                     &ignored);
    s->history.n = rc < 0 ? 0 : s->history.n;
    return rc == -ENOMEM ? rc : 0;
}

static int find_unexplained(struct file_stat *s, struct trace_file *t)
{
    struct err ignored; // the conversion has already reported errors in the file
    return unexplained_find(&s->unexplained, t, NULL, &ignored) == -ENOMEM ? -ENOMEM : 0;
}

static int stat_trace(struct file_stat *s, struct trace_file *t, struct err *e)
{
    struct convert_result result;
    struct trace_forks forks = {0};
    bool reads_again;
    struct convert_options how = {
        .choose = count_process, .forks = &forks, .progress = show_progress, .context = s};
    s->in = &t->in;
    s->ns_per_stamp = ns_per_stamp(t->reader.session.stamp_shift, t->reader.session.clock_hz);
    s->stack_sample_bytes = t->reader.session.stack_sample_bytes;
    s->clock_hz = t->reader.session.clock_hz;
    s->stamp_shift = t->reader.session.stamp_shift;
    int rc = begin_history(s, t, e)
                 ?: trace_forks_find(&forks, t, e)
                 ?: convert_run(&t->reader, &how, &result, e);
    trace_forks_release(&forks);
    if (rc < 0) {
        rss_reading_end(s->reading, false);
        return rc;
    }
    // Call end_history first, because keep_facts moves the session out of the reader.
    rc = end_history(s, &t->reader, &reads_again);
    s->cut = result.cut;
    s->duration_ns = trace_duration_ns(&t->reader, result.end_stamp);
    for (size_t i = 0; i < s->n_processes; i++)
        file_stat_set_facts(&s->processes[i].summary, t->reader.processes[i],
                            t->reader.session.clock_hz);
    keep_facts(s, &t->reader);
    name_threads(s);
    s->file_bytes = t->in.size_bytes ? t->in.size_bytes : t->in.offset;
    if (rc == 0 && reads_again)
        rc = read_history(s, t);
    if (rc == 0 && s->sums)
        rc = find_unexplained(s, t);
    return rc < 0 ? err_no_memory(e, s->name) : 0;
}

static int count_all(struct file_stat *s, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *ops;
    size_t n;
    int rc;
    while ((rc = workload_next_ops(r, &thread, &ops, &n, e)) > 0) {
        int failed =
            s->part == FILE_STAT_BRIEF
                ? 0
                : count_sites(&s->by_site, s->sums ? &s->usage : NULL, thread, ops, sizeof *ops, n);
        for (size_t i = 0; failed == 0 && s->sums && i < n; i++)
            failed = big_blocks_op(&s->big_blocks, thread, &ops[i]);
        if (s->sums && failed == 0)
            failed = usage_run(&s->usage, thread, ops, n);
        if (failed < 0)
            return err_no_memory(e, s->name);
        show_progress(s, s->in->offset);
    }
    return rc;
}

static int keep_samples(struct file_stat *s, const struct workload_reader *r)
{
    const struct workload_sample *samples = workload_reader_samples(r, &s->n_samples);
    s->samples = malloc((s->n_samples + 1) * sizeof *samples);
    if (s->samples && s->n_samples)
        memcpy(s->samples, samples, s->n_samples * sizeof *samples);
    return s->samples ? 0 : -ENOMEM;
}

// Reads all ops. Unless has_summary is set, sets *sum to the summary of the file. If the file is
// truncated, *sum counts only the ops that were read.
static int read_ops(struct file_stat *s, struct workload_reader *r, bool has_summary,
                    struct workload_summary *sum, struct err *e)
{
    const struct workload_header *h = workload_reader_header(r);
    s->ns_per_stamp = h->has_stamps ? ns_per_stamp(h->stamp_shift, h->clock_hz) : 0;
    s->stack_sample_bytes = h->stack_sample_bytes;
    usage_init(&s->usage, s->sums, h->start_stamp, s->ns_per_stamp);
    if (s->span && !h->has_stamps &&
        (s->span->from.at == SLICE_AT_TIME || s->span->to.at == SLICE_AT_TIME))
        return err_set(e, -EINVAL, "%s: has no timestamps; --from and --to need an event or a mark",
                       s->name);
    init_by_site(s, &s->by_site, h->start_stamp, h->clock_hz, h->stamp_shift);
    int rc = count_all(s, r, e);
    if (!has_summary || rc == -ENODATA)
        *sum = rc == 0 ? *workload_reader_summary(r) : workload_reader_counted(r);
    if (rc < 0 && rc != -ENODATA)
        return rc;
    if (rc == -ENODATA) {
        s->cut = *e;
        *e = (struct err){0};
    }
    big_blocks_measure(&s->big_blocks, workload_reader_residency(r), &s->big, &s->by_site.uses);
    rc = s->sums ? usage_finish(&s->usage) : 0;
    if (rc == 0 && s->by_site.n_sites)
        rc = workload_sites_copy_all(&s->sites, workload_reader_sites(r));
    if (rc == 0)
        rc = count_coverage(s, &s->processes[0], &s->by_site, &s->sites);
    return rc < 0 ? rc : keep_samples(s, r);
}

static int stat_workload(struct file_stat *s, struct workload_file *w, struct err *e)
{
    const struct workload_header *h = workload_reader_header(w->reader);
    int rc = add_process(s, h->pid, h->argv, h->argv_bytes, h->exe);
    if (rc == 0 && h->allocator && !(s->processes[0].facts.allocator = strdup(h->allocator)))
        rc = -ENOMEM;
    if (rc < 0)
        return err_no_memory(e, s->name);
    struct workload_summary *sum = &s->processes[0].summary;
    struct err ignored = {0};
    rc = workload_read_summary(w->reader, sum, &ignored);
    bool has_summary = rc == 0;
    s->in = &w->in;
    if (rc < 0 && rc != -ESPIPE && rc != -ENODATA)
        *e = ignored;
    else if (s->part != FILE_STAT_BRIEF || !has_summary)
        rc = read_ops(s, w->reader, has_summary, sum, e);
    else
        s->summary_only = true;
    s->duration_ns = workload_duration_ns(h, sum);
    s->file_bytes = w->in.size_bytes ? w->in.size_bytes : w->in.offset;
    return rc;
}

// Prepares the lookup of names. Names are looked up when they are printed.
static int finish_sites(struct file_stat *s)
{
    by_site_finish(&s->by_site);
    coverage_finish(&s->coverage);
    if (s->by_site.n_sites && s->sites.n_sites)
        s->symbols = symbols_new(&s->sites, s->processes[s->of_usage].exe);
    return s->symbols || !s->by_site.n_sites || !s->sites.n_sites ? 0 : -ENOMEM;
}

int file_stat_add_process(struct file_stat *s, struct trace_process *facts)
{
    int rc = add_process(s, facts->pid, facts->argv, facts->argv_bytes, facts->exe);
    if (rc == 0) {
        s->processes[s->n_processes - 1].facts = *facts;
        *facts = (struct trace_process){0};
    }
    return rc;
}

int file_stat_keep_sites(struct file_stat *s, struct by_site *b, struct workload_sites *sites,
                         bool *kept)
{
    struct file_stat_counter c = {
        .file = s, .process = s->n_processes - 1, .by_site = *b, .sites = *sites};
    int rc = count_coverage(s, &s->processes[c.process], &c.by_site, &c.sites);
    keep_usage(s, &c);
    *b = c.by_site;
    *sites = c.sites;
    *kept = s->of_usage == c.process;
    return rc;
}

int file_stat_finish(struct file_stat *s)
{
    for (size_t i = 0; i < s->n_processes; i++)
        summary_add(&s->total, &s->processes[i].summary),
            s->partial |= s->processes[i].summary.recorded_to != 0;
    s->partial |= s->cut.text[0] != 0;
    return finish_sites(s);
}

const char *file_stat_kind_name(const struct file_stat *s)
{
    static const char *const names[] = {"workload", "trace", "aggregate"};
    return names[s->kind];
}

int file_stat(struct file_stat *s, const char *path, enum file_stat_part part,
              const struct convert_watch *watch, struct err *e)
{
    struct input in;
    const struct file_stat_settings how = {.part = part, .watch = watch};
    int rc = file_open_input(&in, path, e) ?: file_stat_input(s, &in, &how, e);
    if (rc == 0)
        s->name = path;
    return rc;
}

int file_stat_input(struct file_stat *s, struct input *in, const struct file_stat_settings *how,
                    struct err *e)
{
    struct file f;
    const char *path = in->name;
    const struct convert_watch *watch = how->watch;
    *s = (struct file_stat){.name = path,
                            .part = how->part,
                            .span = how->span,
                            .progress = watch ? watch->progress : NULL};
    int rc = file_adopt(&f, in, FILE_TRACE | FILE_WORKLOAD | FILE_TRACE_TWICE, e);
    if (rc == 0 && (s->part == FILE_STAT_ALL || s->part == FILE_STAT_REPORT) &&
        !(s->sums = calloc(1, sizeof *s->sums)))
        rc = err_no_memory(e, path);
    s->kind = f.kind == FILE_TRACE ? FILE_STAT_TRACE : FILE_STAT_WORKLOAD;
    if (rc == 0 && s->progress)
        s->progress->total = file_input(&f)->size_bytes;
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? stat_trace(s, &f.trace, e) : stat_workload(s, &f.workload, e);
    progress_clear(s->progress);
    if (rc == 0 && file_stat_finish(s) < 0)
        rc = err_no_memory(e, path);
    if (rc == 0 && s->cut.text[0] && watch && watch->warn)
        watch->warn(s->cut.text);
    file_close(&f);
    if (rc < 0)
        file_stat_release(s);
    return rc;
}
