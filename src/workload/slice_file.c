// Extracts part of a workload file: its ops, samples and call sites, with a new summary.
#include "base/buf.h"
#include "workload/slice.h"
#include "workload/writer.h"

#include <errno.h>
#include <stdlib.h>

// Maps op `from` of the source to op `to` of the part, which gets the residency of `from`.
struct placement {
    struct workload_dependency from, to;
};

enum {
    MAX_PLACEMENTS = 1 << 20
}; // limit on placements, which must be stored because the source's residency follows all ops

struct slicing {
    struct workload_file *in;
    struct slice_options how;
    struct workload_output to;
    struct workload_summary source; // summary of the whole workload
    struct slice *slice;
    struct slice_counts counts;
    struct placement *placements; // at most MAX_PLACEMENTS
    size_t n_placements, placements_capacity;
    struct samples_residency residency;
    struct progress *progress;
    struct err *e;
};

// Times count from the start of the program, as in `dump`.
static int resolve_point(struct slice_point *p, const struct workload_header *h, const char *name,
                         struct err *e)
{
    if (p->at != SLICE_AT_TIME)
        return 0;
    if (!h->has_stamps)
        return err_set(e, -EINVAL,
                       "%s: the workload has no timestamps and cannot be sliced by time", name);
    slice_point_resolve(p, h->start_stamp, h->clock_hz, h->stamp_shift);
    return 0;
}

static int put_op(void *context, uint32_t thread, const struct workload_op *op)
{
    struct slicing *j = context;
    return workload_output_op(&j->to, thread, op, j->e);
}

static int note_placement(void *context, struct workload_dependency from,
                          struct workload_dependency to)
{
    struct slicing *j = context;
    if (j->n_placements == MAX_PLACEMENTS)
        return 0;
    return HT_APPEND(&j->placements, &j->n_placements, &j->placements_capacity,
                     (struct placement){from, to});
}

static int place_steps(struct slicing *j, const struct samples_residency *source,
                       const struct placement *p)
{
    size_t n;
    int rc = 0;
    const struct workload_residency_step *steps =
        samples_residency_steps(source, p->from.thread, p->from.op, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct workload_residency_step step = steps[i];
        step.thread = p->to.thread;
        step.op = p->to.op;
        rc = samples_residency_add_step(&j->residency, &step);
    }
    return rc;
}

static int place_residency(struct slicing *j)
{
    struct samples_residency read = {0};
    bool seekable = j->in->in.size_bytes;
    int rc = seekable ? workload_read_residency(j->in->reader, &read, j->e) : 0;
    const struct samples_residency *source =
        seekable ? &read : workload_reader_residency(j->in->reader);
    for (size_t i = 0; rc == 0 && i < j->n_placements; i++) {
        const struct placement *p = &j->placements[i];
        const struct workload_residency *found =
            samples_residency_find(source, p->from.thread, p->from.op);
        struct workload_residency r = found ? *found : (struct workload_residency){0};
        r.thread = p->to.thread;
        r.op = p->to.op;
        if (found && (rc = samples_residency_add(&j->residency, &r)) == 0)
            rc = place_steps(j, source, p);
        if (rc < 0)
            err_no_memory(j->e, j->in->in.name);
    }
    samples_residency_sort(&j->residency);
    samples_residency_release(&read);
    return rc;
}

static int refuse_op(struct slicing *j, const struct workload_op *op, uint64_t number, int rc)
{
    if (rc == -EBADMSG)
        return err_set(j->e, rc,
                       "%s: op %llu violates the rules of the workload format for slot %u",
                       j->in->in.name, (unsigned long long)number, op->slot);
    return rc == -ENOMEM ? err_no_memory(j->e, j->in->in.name) : rc;
}

// Reads up to the end of the part. If the source is a pipe, reads up to the end of the source,
// where the summary is.
static int read_ops(struct slicing *j)
{
    bool seekable = j->in->in.size_bytes, over = false;
    const struct workload_op *op;
    uint32_t thread;
    int rc = 0;
    for (uint64_t number = 0; (rc = workload_next_op(j->in->reader, &thread, &op, j->e)) > 0;
         number++) {
        if (number % 65536 == 0)
            progress_update(j->progress, j->in->in.offset);
        if (over)
            continue;
        rc = slice_op(j->slice, thread, op);
        if (rc < 0)
            return refuse_op(j, op, number, rc);
        over = rc > 0;
        if (over && seekable)
            return workload_reader_check_part(j->in->reader, j->e);
    }
    return rc < 0 ? rc : 0;
}

static int put_samples(struct slicing *j, const struct slice_counts *c)
{
    const struct workload_sample *s;
    size_t n = 0;
    int rc = 0;
    if (j->in->in.size_bytes)
        rc = workload_read_samples(j->in->reader, &s, &n, j->e);
    else
        s = workload_reader_samples(j->in->reader, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (s[i].stamp < c->first_stamp || s[i].stamp > c->last_stamp)
            continue;
        struct workload_sample one = s[i];
        one.stamp += j->how.rebase ? j->how.rebase_to - c->first_stamp : 0;
        rc = workload_write_samples(j->to.writer, &one, 1, j->e);
    }
    return rc;
}

static int write_end(struct slicing *j, const struct workload_summary *s)
{
    struct workload_sites read = {0};
    int rc = j->in->in.size_bytes ? workload_read_sites(j->in->reader, &read, j->e) : 0;
    workload_write_sites(j->to.writer,
                         j->in->in.size_bytes ? &read : workload_reader_sites(j->in->reader));
    if (rc == 0)
        rc = place_residency(j);
    workload_write_residency(j->to.writer, &j->residency);
    if (rc == 0)
        rc = workload_write_end(j->to.writer, s, j->e);
    workload_sites_release(&read);
    return rc;
}

// Sets the recorded interval of the part. If the part omits ops at one end of the source, the bound
// at that end is the part's first or last stamp. Otherwise, it is the source's bound.
static void set_recorded(const struct slicing *j, const struct slice_counts *c,
                         struct workload_summary *s)
{
    uint64_t by = j->how.rebase ? j->how.rebase_to - c->first_stamp : 0;
    bool from = j->how.from.at != SLICE_AT_EDGE, to = j->how.to.at != SLICE_AT_EDGE;
    s->recorded_from = j->source.recorded_from;
    s->recorded_to = j->source.recorded_to;
    if (!from && !to && !j->how.n_threads && !j->how.choice)
        return;
    // A recorded_to of 0 means that the whole run was recorded.
    if (from || !j->source.recorded_to)
        s->recorded_from = (from ? c->first_stamp : j->source.first_stamp) + by;
    if (to || !j->source.recorded_to)
        s->recorded_to = (to ? c->last_stamp : j->source.last_stamp) + by;
    s->recorded_to += !s->recorded_to;
}

// Fails if no mark has the text of the start or the end of the part.
static int check_marks(const struct slicing *j, const struct slice_counts *c)
{
    const struct slice_point *p = c->begun ? &j->how.to : &j->how.from;
    if (c->ended || p->at != SLICE_AT_MARK)
        return 0;
    return err_set(j->e, -ENODATA, "%s: contains no mark '%s'%s", j->in->in.name, p->mark,
                   c->begun ? " after the start of the part" : "");
}

static int finish_part(struct slicing *j)
{
    int rc = slice_finish(j->slice);
    const struct slice_counts c = j->counts = slice_counts(j->slice);
    if (rc == 0)
        rc = check_marks(j, &c);
    if (rc == 0 && c.events == 0)
        return err_set(j->e, -ENODATA, "%s: the part contains no events", j->in->in.name);
    if (rc == 0)
        rc = put_samples(j, &c);
    if (rc < 0)
        return rc;
    if (workload_reader_summary(j->in->reader))
        j->source = *workload_reader_summary(j->in->reader);
    struct workload_summary s = workload_output_summary(&j->to);
    // The source has only totals of these figures, so the figures are upper bounds for the part.
    s.order_repaired = j->source.order_repaired;
    s.order_ambiguous = j->source.order_ambiguous;
    s.lost_records = j->source.lost_records;
    summary_add_early(&s, &j->source);
    s.dependencies_needed = c.dependencies_needed;
    set_recorded(j, &c, &s);
    return write_end(j, &s);
}

static int prepare_slice(struct slicing *j)
{
    const struct workload_header *h = workload_reader_header(j->in->reader);
    struct slice_sink sink = {j, put_op, note_placement};
    int rc = resolve_point(&j->how.from, h, j->in->in.name, j->e)
                 ?: resolve_point(&j->how.to, h, j->in->in.name, j->e);
    if (rc == 0 && j->in->in.size_bytes)
        rc = workload_read_summary(j->in->reader, &j->source, j->e);
    if (rc < 0)
        return rc;
    j->how.has_stamps = h->has_stamps;
    j->how.rebase = j->how.rebase && h->has_stamps;
    j->how.rebase_to = h->start_stamp;
    j->slice = slice_new(&j->how, &sink);
    return j->slice ? 0 : err_no_memory(j->e, j->in->in.name);
}

int slice_file(struct workload_file *in, struct output *out, const struct slice_file_options *o,
               struct slice_counts *counts, struct err *e)
{
    struct slicing j = {.in = in, .how = o->part, .progress = o->progress, .e = e};
    int rc = prepare_slice(&j)
                 ?: workload_output_begin(&j.to, out, o->level, workload_reader_header(in->reader),
                                          e)
                 ?: read_ops(&j);
    progress_clear(j.progress);
    if (rc == 0)
        rc = finish_part(&j);
    *counts = j.counts;
    workload_output_release(&j.to);
    samples_residency_release(&j.residency);
    free(j.placements);
    slice_free(j.slice);
    return rc;
}
