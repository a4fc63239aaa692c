#include "record/aggregate/write.h"

#include "base/clock.h"
#include "base/varint.h"
#include "convert/convert.h"
#include "record/aggregate/format.h"
#include "trace/fields.h"
#include "workload/file.h"
#include "workload/format.h"

#include <errno.h>
#include <stdlib.h>

enum { LEVEL = 3 }; // zstd level

struct job;

// A process that has not ended.
struct counting {
    struct job *job;
    const struct trace_process *of; // owned by the trace reader
    struct buf facts; // payload of the PROCESS frame; fields of PROCESS_END are appended later
    struct aggregate_counts counts;
};

// A process that has ended.
struct finished {
    struct buf frames;
    struct workload_summary summary;
};

struct job {
    const struct aggregate_settings *settings;
    const struct trace_session *session;
    uint64_t period_stamps;
    struct counting **processes;
    size_t n_processes, processes_capacity;
    struct finished ended[AGGREGATE_KEPT + 1];
    size_t n_ended;
    struct workload_summary others;
    uint64_t n_others;
    uint64_t stamp;  // events up to this stamp are counted
    uint64_t due_ns; // time of the next rewrite
    // A rewrite is in progress, and `frames` contains its payloads.
    bool writing;
    struct buf frames;
    bool noted; // a write error has been reported
};

static void process_free(struct counting *p)
{
    aggregate_counts_release(&p->counts);
    buf_release(&p->facts);
    free(p);
}

static void release_job(struct job *j)
{
    for (size_t i = 0; i < j->n_processes; i++)
        process_free(j->processes[i]);
    for (size_t i = 0; i < j->n_ended; i++)
        buf_release(&j->ended[i].frames);
    buf_release(&j->frames);
    free(j->processes);
}

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct counting *p = context;
    return aggregate_counts_ops(&p->counts, ops, n);
}

// Appends the process's frames to `b`. Before the end of the recording, *counts is provisional.
static int put_process(struct counting *p, struct buf *b, const struct order_counts *counts,
                       const struct workload_sites *sites, struct workload_summary *summary)
{
    int rc = aggregate_counts_reach(&p->counts, p->job->stamp);
    *summary = summary_result(&p->counts.summary);
    summary->slots = p->counts.n_slots;
    order_summarise(counts, summary);
    const struct aggregate_process all = {&p->facts, summary, &p->counts, sites};
    return rc < 0 ? rc : aggregate_put_process(b, &all);
}

static int put_so_far(void *context, const struct order_counts *counts,
                      const struct workload_sites *sites)
{
    struct counting *p = context;
    struct workload_summary summary;
    return put_process(p, &p->job->frames, counts, sites, &summary);
}

// Removes the ended process with the lowest peak, and adds its summary to `others`.
static void add_to_others(struct job *j)
{
    struct finished *low = &j->ended[0], *last = &j->ended[j->n_ended - 1];
    for (struct finished *x = low; x <= last; x++)
        low = x->summary.peak_live_bytes < low->summary.peak_live_bytes ? x : low;
    summary_add(&j->others, &low->summary);
    j->n_others++;
    buf_release(&low->frames);
    *low = *last;
    j->n_ended--;
}

static void drop_process(struct counting *p)
{
    struct job *j = p->job;
    size_t i = 0;
    while (j->processes[i] != p)
        i++;
    j->processes[i] = j->processes[--j->n_processes];
    process_free(p);
}

static int end_process(void *context, const struct order_counts *counts,
                       const struct workload_sites *sites)
{
    struct counting *p = context;
    struct job *j = p->job;
    struct finished *to = &j->ended[j->n_ended];
    *to = (struct finished){0};
    int rc = p->of->ended ? fields_put_process_end(&p->facts, p->of) : 0;
    rc = rc ?: aggregate_counts_reach(&p->counts, p->of->end_stamp);
    rc = rc ?: put_process(p, &to->frames, counts, sites, &to->summary);
    to->summary.lost_records = p->of->lost_records > to->summary.lost_records
                                   ? p->of->lost_records
                                   : to->summary.lost_records;
    drop_process(p);
    if (++j->n_ended > AGGREGATE_KEPT)
        add_to_others(j);
    return rc;
}

static int begin_process(void *context, const struct trace_process *of, struct convert_sink *sink)
{
    struct job *j = context;
    struct counting *p = HT_GROW(&j->processes, &j->processes_capacity, j->n_processes + 1) < 0
                             ? NULL
                             : calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    j->processes[j->n_processes++] = p;
    p->job = j;
    p->of = of;
    int rc = aggregate_counts_init(&p->counts, j->session->stack_sample_bytes,
                                   j->session->start_stamp, j->period_stamps);
    *sink = (struct convert_sink){
        .ops = {.context = p, .ops = count_ops}, .done = end_process, .so_far = put_so_far};
    return rc < 0 || fields_put_process(&p->facts, of) < 0 ? -ENOMEM : 1;
}

static int begin_frames(struct job *j)
{
    struct buf session = {0};
    j->frames.size = 0;
    int rc = fields_put_session(&session, j->session);
    rc = rc ?: aggregate_put(&j->frames, AGGREGATE_SESSION, session.data, session.size);
    buf_release(&session);
    for (size_t i = 0; rc == 0 && i < j->n_ended; i++)
        rc = buf_put(&j->frames, j->ended[i].frames.data, j->ended[i].frames.size);
    return rc;
}

static int put_others(struct job *j)
{
    struct buf payload = {0};
    int rc = buf_reserve(&payload, VARINT_MAX_BYTES);
    if (rc == 0)
        payload.size = varint_put(payload.data, j->n_others);
    rc = rc ?: format_put_summary(&payload, &j->others);
    rc = rc ?: aggregate_put(&j->frames, AGGREGATE_OTHERS, payload.data, payload.size);
    buf_release(&payload);
    return rc;
}

static int put_unrecorded(struct job *j, const struct trace_unrecorded *u)
{
    struct buf payload = {0};
    int rc = fields_put_unrecorded(&payload, u);
    rc = rc ?: aggregate_put(&j->frames, AGGREGATE_UNRECORDED, payload.data, payload.size);
    buf_release(&payload);
    return rc;
}

static int write_file(const struct job *j, struct err *e)
{
    struct output out;
    struct frame_writer w;
    int rc = output_open(&out, j->settings->path, OUTPUT_ASIDE | OUTPUT_FORCE, e);
    if (rc < 0)
        return rc;
    frame_writer_init(&w, &out, FRAME_MAGIC_AGGREGATE, AGGREGATE_VERSION, FRAME_CODEC_ZSTD, LEVEL);
    rc = aggregate_write_frames(&w, &j->frames, e);
    frame_writer_release(&w);
    return output_finish(&out, rc, e);
}

// Adds the last frames and writes the file. Call after adding the frames of all processes. Returns
// 0, -ENOMEM, or a negative errno with `e` set if writing failed.
static int end_frames(struct job *j, const struct aggregate_end *end, struct err *e)
{
    int rc = j->n_others ? put_others(j) : 0;
    rc = rc ?: aggregate_put_end(&j->frames, end);
    rc = rc < 0 ? err_no_memory(e, j->settings->path) : write_file(j, e);
    // Release the buffer, because it may be as large as the counts.
    buf_release(&j->frames);
    return rc;
}

// Rewrites the file if it is due. Called after the events of a batch have been counted.
static int rewrite_if_due(void *context, uint64_t stamp)
{
    struct job *j = context;
    j->stamp = stamp > j->stamp ? stamp : j->stamp;
    if (clock_monotonic_ns() < j->due_ns)
        return 0;
    j->writing = true;
    return begin_frames(j) ?: 1;
}

static void end_rewriting(void *context, uint64_t offset)
{
    struct job *j = context;
    struct err e = {0};
    (void)offset;
    if (!j->writing)
        return;
    j->writing = false;
    int rc = end_frames(j, &(struct aggregate_end){.stamp = j->stamp}, &e);
    if (rc < 0 && !j->noted)
        j->settings->note(e.text);
    j->noted |= rc < 0;
    j->due_ns = clock_monotonic_ns() + j->settings->rewrite_ns;
}

static int write_last(struct job *j, const struct trace_reader *r,
                      const struct convert_result *result, struct err *e)
{
    const struct aggregate_end end = {result->end_stamp,
                                      result->cut_off ? AGGREGATE_CUT_OFF : AGGREGATE_ENDED};
    int rc = begin_frames(j);
    if (rc == 0 && r->saw_unrecorded)
        rc = put_unrecorded(j, &r->unrecorded);
    return rc < 0 ? err_no_memory(e, j->settings->path) : end_frames(j, &end, e);
}

static int count_trace(struct job *j, struct trace_file *t, struct err *e)
{
    struct convert_result result;
    const struct convert_options how = {.choose = begin_process,
                                        .advanced = rewrite_if_due,
                                        .progress = end_rewriting,
                                        .context = j};
    j->session = &t->reader.session;
    j->period_stamps = trace_stamps(j->session, j->settings->period_ns);
    j->period_stamps += !j->period_stamps;
    j->due_ns = clock_monotonic_ns() + j->settings->rewrite_ns;
    int rc = convert_run(&t->reader, &how, &result, e);
    uint64_t events = j->others.events;
    for (size_t i = 0; i < j->n_ended; i++)
        events += j->ended[i].summary.events;
    // The recorder reports why nothing was recorded.
    if (rc == 0 && events == 0)
        return err_set(e, -ENODATA, "%s: nothing was recorded", j->settings->path);
    return rc < 0 ? rc : write_last(j, &t->reader, &result, e);
}

int aggregate_write(const struct aggregate_settings *s, struct err *e)
{
    struct job *j = calloc(1, sizeof *j);
    struct file f;
    if (!j)
        return err_no_memory(e, s->path);
    j->settings = s;
    int rc = file_open(&f, "-", FILE_TRACE, e) ?: count_trace(j, &f.trace, e);
    release_job(j);
    free(j);
    file_close(&f);
    return rc;
}

int aggregate_check(const struct aggregate_settings *s, struct err *e)
{
    return output_check_aside(s->path, s->force,
                              "but an aggregate must be, because it is replaced periodically", e);
}
