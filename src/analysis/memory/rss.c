#include "analysis/memory/rss.h"

#include "analysis/memory/rss_heap.h"
#include "base/buf.h"
#include "base/sort.h"
#include "convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A point in time at which RSS is known.
struct moment {
    uint64_t stamp, rss_bytes;
    uint32_t process;
    uint32_t frame; // index of the frame among the frames of the same type
};

struct rss_reading {
    struct rss *to;
    struct trace_file *file;
    const struct rss_options *options;
    struct rss_heap heap;
    struct moment *moments;
    size_t n, capacity;
    uint32_t process;         // chosen process
    struct slice_point point; // time points are converted to stamps
    // Chosen moment, or NULL if the point has not been reached.
    const struct moment *at;
    bool over;                            // an op after the chosen moment has been read
    uint64_t start_stamp;                 // stamp at which the process started
    const struct rss_moments *wanted;     // NULL if `options` chooses one moment
    struct rss_moments copied;            // copy of the argument of rss_reading_new
    struct trace_pages kept[RSS_MOMENTS]; // maps for `wanted`
    size_t n_kept, visited;
    struct progress *progress; // may be NULL
};

void rss_release(struct rss *r)
{
    free(r->exe);
    free(r->arenas);
    trace_pages_release(&r->pages);
    fragmentation_release(&r->pinned);
    symbols_free(r->symbols);
    workload_sites_release(&r->sites);
    *r = (struct rss){0};
}

static int add_moment(struct rss_reading *r, struct moment m)
{
    return HT_APPEND(&r->moments, &r->n, &r->capacity, m);
}

static uint64_t middle_of(const struct trace_pages *p)
{
    return p->stamp + (p->end_stamp - p->stamp) / 2;
}

static int add_map_moment(void *context, struct trace_pages *p, uint32_t frame)
{
    struct rss_reading *r = context;
    r->heap.page_bytes = p->page_bytes;
    return add_moment(r, (struct moment){middle_of(p), p->rss_bytes, p->process, frame});
}

static int keep_chosen(void *context, struct trace_pages *p, uint32_t frame)
{
    struct rss_reading *r = context;
    if (frame != r->at->frame)
        return 0;
    r->to->pages = *p;
    *p = (struct trace_pages){0};
    return 1;
}

static const struct moment *highest_moment(const struct rss_reading *r)
{
    const struct moment *most = r->moments;
    for (size_t i = 0; i < r->n; i++)
        most = r->moments[i].rss_bytes > most->rss_bytes ? &r->moments[i] : most;
    return most;
}

// Returns true if the frame has the highest RSS, or if it is one of the frames spread evenly over
// the run.
static bool is_spread(const struct rss_reading *r, uint32_t frame)
{
    size_t n = r->n < r->wanted->max ? r->n : r->wanted->max - 1;
    for (size_t i = 0; i < n; i++) {
        if (r->moments[n == r->n ? i : i * (r->n - 1) / (n - 1)].frame == frame)
            return true;
    }
    return highest_moment(r)->frame == frame;
}

static int keep_spread(void *context, struct trace_pages *p, uint32_t frame)
{
    struct rss_reading *r = context;
    if (p->process != r->process || !is_spread(r, frame) || r->n_kept == RSS_MOMENTS)
        return 0;
    r->kept[r->n_kept++] = *p;
    *p = (struct trace_pages){0};
    return 0;
}

// Reads RSS samples, for traces and processes without maps. Old versions wrote traces without maps,
// and a process may end before its first map.
static int read_samples(struct rss_reading *r, struct err *e)
{
    struct trace_item item;
    struct err ignored;
    int rc;
    while ((rc = trace_next(&r->file->reader, &item, &ignored)) > 0) {
        for (size_t i = 0; item.type == TRACE_SAMPLES && i < item.n_samples; i++) {
            const struct trace_sample *s = &item.samples[i];
            if (add_moment(r, (struct moment){s->stamp, s->rss_bytes, s->process, 0}) < 0)
                return err_no_memory(e, r->file->in.name);
        }
    }
    return rc == -ENOMEM ? err_no_memory(e, r->file->in.name) : trace_file_rewind(r->file, e);
}

// Keeps only the moments of the chosen process, or of the process with the highest RSS, sorted by
// stamp.
static void choose_process(struct rss_reading *r)
{
    size_t kept = 0;
    HT_SORT(r->moments, r->n, SORT_UP(struct moment, process), SORT_UP(struct moment, stamp));
    for (size_t i = 0; i < r->n; i++)
        r->to->n_processes += i == 0 || r->moments[i].process != r->moments[i - 1].process;
    r->process =
        r->wanted && r->wanted->process ? r->wanted->process - 1 : highest_moment(r)->process;
    for (size_t i = 0; i < r->n; i++) {
        if (r->moments[i].process == r->process)
            r->moments[kept++] = r->moments[i];
    }
    r->n = kept;
}

// Returns the first moment at or after the stamp. If there is no such moment, returns the last
// moment.
static const struct moment *first_moment_from(struct rss_reading *r, uint64_t stamp)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->moments[i].stamp >= stamp)
            return &r->moments[i];
    }
    r->to->is_last = true;
    return &r->moments[r->n - 1];
}

static const struct moment *choose_moment(struct rss_reading *r)
{
    if (r->options->at == RSS_AT_END ||
        (r->options->at == RSS_AT_POINT && r->point.at == SLICE_AT_EDGE))
        return &r->moments[r->n - 1];
    if (r->options->at == RSS_AT_POINT)
        return r->point.at == SLICE_AT_STAMP ? first_moment_from(r, r->point.number) : NULL;
    return highest_moment(r);
}

static uint64_t since_start_ns(const struct rss_reading *r, uint64_t stamp)
{
    const struct trace_session *s = &r->file->reader.session;
    uint64_t since = stamp > r->start_stamp ? stamp - r->start_stamp : 0;
    return clock_to_ns(since << s->stamp_shift, s->clock_hz);
}

// Passes the chosen moments before the stamp to the caller.
static int pass_moments(struct rss_reading *r, uint64_t stamp)
{
    int rc = 0;
    for (; rc == 0 && r->visited < r->n_kept && middle_of(&r->kept[r->visited]) < stamp;
         r->visited++) {
        struct trace_pages *p = &r->kept[r->visited];
        trace_pages_release(&r->to->pages);
        r->to->pages = *p;
        *p = (struct trace_pages){0};
        rc = r->wanted->visit(r->wanted->context, r->to, &r->heap,
                              since_start_ns(r, middle_of(&r->to->pages)));
    }
    return rc;
}

int rss_reading_calls(void *reading, const struct workload_thread_op *ops,
                      const struct order_call *calls, size_t n)
{
    struct rss_reading *r = reading;
    for (size_t i = 0; i < n && !r->over; i++) {
        if (!r->at && slice_point_reached(&r->point, &ops[i].op, r->heap.events))
            r->at = first_moment_from(r, ops[i].op.stamp);
        r->over = r->at && ops[i].op.stamp > r->at->stamp;
        r->to->has_usable |= calls[i].notes[HT_NOTE_USABLE] != 0;
        if (pass_moments(r, ops[i].op.stamp) < 0)
            return -ENOMEM;
        if (!r->over && rss_heap_op(&r->heap, &ops[i], &calls[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

int rss_reading_done(void *reading, const struct order_counts *counts,
                     const struct workload_sites *sites)
{
    struct rss_reading *r = reading;
    (void)counts;
    return workload_sites_copy_all(&r->to->sites, sites);
}

int rss_reading_begin(struct rss_reading *r, const struct trace_process *p)
{
    const struct trace_session *s = &r->file->reader.session;
    r->to->pid = p->pid;
    r->to->exe = p->exe ? strdup(p->exe) : NULL;
    r->to->is_glibc = trace_is_glibc(p->allocator);
    r->start_stamp = p->start_stamp;
    slice_point_resolve(&r->point, p->start_stamp, s->clock_hz, s->stamp_shift);
    r->at = choose_moment(r);
    return p->exe && !r->to->exe ? -ENOMEM : 0;
}

static int choose_sink(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct rss_reading *r = context;
    if (p->number != r->process)
        return 0;
    *sink = (struct convert_sink){.ops = {.context = r, .calls = rss_reading_calls},
                                  .done = rss_reading_done};
    int rc = rss_reading_begin(r, p);
    return rc < 0 ? rc : 1;
}

static void show_progress(void *context, uint64_t offset)
{
    struct rss_reading *r = context;
    progress_update(r->progress, offset);
}

static int read_blocks(struct rss_reading *r, struct convert_result *result, struct err *e)
{
    struct trace_forks forks;
    const struct convert_options how = {
        .choose = choose_sink, .forks = &forks, .progress = show_progress, .context = r};
    int rc = trace_forks_find(&forks, r->file, e);
    if (rc == 0)
        trace_forks_keep(&forks, r->process);
    if (rc == 0)
        rc = convert_run(&r->file->reader, &how, result, e);
    trace_forks_release(&forks);
    if (rc == 0 && pass_moments(r, UINT64_MAX) < 0)
        rc = err_no_memory(e, r->file->in.name);
    if (rc == 0 && !r->at)
        rc = err_set(e, -ENODATA, "%s: the recording ends before this point", r->file->in.name);
    return rc;
}

static int keep_moments(struct rss_reading *r, struct err *e)
{
    int rc = trace_file_each_map(r->file, keep_spread, r, e);
    if (rc == 0 && r->wanted->begin && r->wanted->begin(r->wanted->context, r->kept, r->n_kept) < 0)
        rc = err_no_memory(e, r->file->in.name);
    return rc;
}

static int find_moments(struct rss_reading *r, struct err *e)
{
    *r->to = (struct rss){.name = r->file->in.name};
    int rc = trace_file_each_map(r->file, add_map_moment, r, e);
    bool has_maps = r->n > 0;
    if (rc == 0 && !has_maps && r->wanted)
        return 0;
    if (rc == 0 && !has_maps)
        rc = read_samples(r, e);
    if (rc == 0 && !r->n)
        rc = err_set(e, -ENODATA, "%s: contains no samples of resident memory", r->file->in.name);
    if (rc < 0)
        return rc;
    choose_process(r);
    if (!r->n)
        return err_set(e, -ENODATA, "%s: contains no samples of the process", r->file->in.name);
    r->to->maps = has_maps ? r->n : 0;
    if (!r->heap.page_bytes)
        r->heap.page_bytes = 4096;
    return r->wanted && has_maps ? keep_moments(r, e) : 0;
}

static int read_all(struct rss_reading *r, struct convert_result *result, struct err *e)
{
    int rc = find_moments(r, e);
    if (rc < 0 || (r->wanted && !r->to->maps))
        return rc;
    rc = read_blocks(r, result, e);
    if (r->wanted)
        return rc;
    if (rc == 0 && r->to->maps)
        rc = trace_file_each_map(r->file, keep_chosen, r, e);
    else if (rc == 0)
        r->to->pages = (struct trace_pages){.stamp = r->at->stamp,
                                            .end_stamp = r->at->stamp,
                                            .page_bytes = r->heap.page_bytes,
                                            .rss_bytes = r->at->rss_bytes,
                                            .cgroup_bytes = TRACE_PAGES_UNKNOWN,
                                            .cgroup_limit_bytes = TRACE_PAGES_UNKNOWN};
    return rc;
}

static int name_sites(struct rss_reading *r, struct err *e)
{
    struct rss *to = r->to;
    if (to->sites.n_sites && !(to->symbols = symbols_new(&to->sites, to->exe)))
        return err_no_memory(e, r->file->in.name);
    return 0;
}

static int finish_reading(struct rss_reading *r, struct err *e)
{
    struct rss *to = r->to;
    to->time_ns = since_start_ns(r, r->at->stamp);
    if (rss_find(to, &r->heap) < 0)
        return err_no_memory(e, r->file->in.name);
    return fragmentation_has_sites(&to->pinned.by[FRAGMENTATION_BY_SITE]) ? name_sites(r, e) : 0;
}

static void release_reading(struct rss_reading *r)
{
    for (size_t i = 0; i < r->n_kept; i++)
        trace_pages_release(&r->kept[i]);
    rss_heap_release(&r->heap);
    free(r->moments);
}

static int read_rss(struct rss_reading *r, const struct convert_watch *watch, struct err *e)
{
    struct convert_result result = {0};
    r->progress = watch ? watch->progress : NULL;
    if (r->progress)
        r->progress->total = r->file->in.size_bytes;
    int rc = read_all(r, &result, e);
    if (rc == 0)
        rc = r->wanted ? name_sites(r, e) : finish_reading(r, e);
    progress_clear(r->progress);
    if (rc == 0 && result.cut.text[0] && watch && watch->warn)
        watch->warn(result.cut.text);
    release_reading(r);
    return rc;
}

int rss_read(struct rss *to, struct trace_file *t, const struct rss_options *o,
             const struct convert_watch *watch, struct err *e)
{
    struct rss_reading r = {.to = to, .file = t, .options = o, .point = o->point};
    return read_rss(&r, watch, e);
}

static const struct rss_options to_the_end = {.at = RSS_AT_END};

int rss_read_moments(struct rss *to, struct trace_file *t, const struct rss_moments *m,
                     const struct convert_watch *watch, struct err *e)
{
    struct rss_reading r = {.to = to, .file = t, .options = &to_the_end, .wanted = m};
    return read_rss(&r, watch, e);
}

int rss_reading_new(struct rss_reading **reading, struct rss *to, struct trace_file *t,
                    const struct rss_moments *m, struct err *e)
{
    struct rss_reading *r = calloc(1, sizeof *r);
    *reading = NULL;
    *to = (struct rss){.name = t->in.name};
    if (!r)
        return err_no_memory(e, t->in.name);
    *r = (struct rss_reading){.to = to, .file = t, .options = &to_the_end, .copied = *m};
    r->wanted = &r->copied;
    int rc = find_moments(r, e);
    if (rc == 0 && to->maps) {
        *reading = r;
        return 0;
    }
    release_reading(r);
    free(r);
    return rc == -ENODATA ? 0 : rc;
}

uint32_t rss_reading_process(const struct rss_reading *r)
{
    return r->process;
}

int rss_reading_end(struct rss_reading *r, bool whole)
{
    int rc = 0;
    if (!r)
        return 0;
    if (whole)
        rc = pass_moments(r, UINT64_MAX);
    if (rc == 0 && whole)
        rc = name_sites(r, NULL);
    release_reading(r);
    free(r);
    return rc;
}
