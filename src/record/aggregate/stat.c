#include "record/aggregate/stat.h"

#include "record/aggregate/format.h"
#include "trace/fields.h"
#include "workload/file.h"
#include "workload/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// State of the reader, including the current process.
struct stat_reading {
    struct file_stat *s;
    struct frame_reader frames;
    bool open; // inside the frames of a process
    struct by_site by_site;
    struct workload_sites sites;
    uint64_t levels[BY_SITE_BINS];
    uint64_t n_others;
    struct workload_summary others;
    struct aggregate_end end;
    bool over; // END has been read
};

static uint64_t to_ns(const struct file_stat *s, uint64_t stamps)
{
    return clock_to_ns(stamps << s->session.stamp_shift, s->session.clock_hz);
}

static void keep_periods(struct stat_reading *r)
{
    struct file_stat_periods *p = &r->s->periods;
    p->n = r->s->by_site.n_bins;
    p->period_ns = to_ns(r->s, r->s->by_site.bin_events);
    memcpy(p->live_bytes, r->levels, sizeof p->live_bytes);
}

// Adds the current process to the result, after its last frame has been read.
static int end_process(struct stat_reading *r)
{
    bool kept = false;
    if (!r->open)
        return 0;
    r->open = false;
    int rc = file_stat_keep_sites(r->s, &r->by_site, &r->sites, &kept);
    if (kept)
        keep_periods(r);
    by_site_release(&r->by_site);
    workload_sites_release(&r->sites);
    return rc;
}

static int begin_process(struct stat_reading *r, const struct frame *f)
{
    struct trace_process facts = {0};
    int rc = end_process(r) ?: fields_get_process(f->data, f->size, &facts);
    facts.ended = facts.end_stamp != 0;
    rc = rc ?: file_stat_add_process(r->s, &facts);
    trace_process_release(&facts);
    r->open = rc == 0;
    r->by_site.sample_bytes = r->s->session.stack_sample_bytes;
    return rc;
}

static int get_summary(const struct frame *f, struct workload_summary *s)
{
    int rc = format_get_summary(f->data, f->size, s);
    return rc == 0 && format_unknown_kind(s) ? -EPROTO : rc;
}

static int get_frame(struct stat_reading *r, const struct frame *f)
{
    uint32_t process;
    int rc;
    bool of_process = f->type >= AGGREGATE_SUMMARY && f->type <= AGGREGATE_NAMES;
    if (of_process && !r->open)
        return -EBADMSG;
    switch ((enum aggregate_frame)f->type) {
    case AGGREGATE_SESSION:
        return -EBADMSG;
    case AGGREGATE_PROCESS:
        return begin_process(r, f);
    case AGGREGATE_SUMMARY:
        return get_summary(f, &r->s->processes[r->s->n_processes - 1].summary);
    case AGGREGATE_PERIODS:
        // No sites may precede this frame, because they would have a different number of levels.
        return r->by_site.n_sites ? -EBADMSG
                                  : aggregate_get_periods(f->data, f->size, &r->by_site, r->levels);
    case AGGREGATE_TOTALS:
        return aggregate_get_totals(f->data, f->size, &r->by_site);
    case AGGREGATE_SITES:
        return workload_sites_get(f->data, f->size, &r->sites);
    case AGGREGATE_NAMES:
        return names_get(f->data, f->size, &r->sites.names, &process);
    case AGGREGATE_OTHERS:
        rc = aggregate_get_others(f->data, f->size, &r->n_others, &r->others);
        return rc == 0 && format_unknown_kind(&r->others) ? -EPROTO : rc;
    case AGGREGATE_UNRECORDED:
        return fields_get_unrecorded(f->data, f->size, &r->s->unrecorded);
    case AGGREGATE_END:
        r->over = true;
        rc = end_process(r);
        return rc < 0 ? rc : aggregate_get_end(f->data, f->size, &r->end);
    }
    return 0; // the frame type is from a later version
}

// Sets an error that describes why the frame could not be read. Returns `rc`; -EPROTO means an
// unknown event kind.
static int refuse_frame(const struct stat_reading *r, const struct frame *f, int rc, struct err *e)
{
    const struct file_stat *s = r->s;
    const char *writer = s->session.heaptape;
    char what[64];
    unsigned kind = format_unknown_kind(&r->others);
    if (!kind && s->n_processes)
        kind = format_unknown_kind(&s->processes[s->n_processes - 1].summary);
    if (rc == -ENOMEM)
        return err_no_memory(e, s->name);
    snprintf(what, sizeof what, "event kind %u is not known", kind);
    if (rc == -EPROTO)
        return frame_newer(s->name, f->offset, writer, what, e);
    if (writer && strverscmp(writer, HEAPTAPE_VERSION) > 0)
        return frame_newer(s->name, f->offset, writer, "is not understood", e);
    return err_set(e, rc, "%s: is damaged in frame %llu at byte %llu", s->name,
                   (unsigned long long)f->sequence, (unsigned long long)f->offset);
}

static int get_frames(struct stat_reading *r, struct err *e)
{
    struct frame f;
    int rc = frame_next(&r->frames, &f, e);
    int got = rc > 0 ? fields_get_session(f.data, f.size, &r->s->session) : 0;
    if (got == -EPROTO)
        return frame_newer(r->s->name, f.offset, r->s->session.heaptape,
                           "the clock of the session is not known", e);
    if (rc > 0 && (f.type != AGGREGATE_SESSION || got < 0 || !r->s->session.clock_hz))
        return err_set(e, -EBADMSG, "%s: the first frame is not a SESSION frame", r->s->name);
    r->s->stack_sample_bytes = r->s->session.stack_sample_bytes;
    while (rc > 0 && !r->over && (rc = frame_next(&r->frames, &f, e)) > 0) {
        rc = get_frame(r, &f);
        if (rc < 0)
            return refuse_frame(r, &f, rc, e);
        rc = 1;
    }
    if (rc == 0)
        return err_set(e, -ENODATA, "%s: is cut off: the END frame is missing", r->s->name);
    return rc < 0 ? rc : 0;
}

static int finish_stat(struct stat_reading *r, const struct input *in)
{
    struct file_stat *s = r->s;
    for (size_t i = 0; i < s->n_processes; i++)
        file_stat_set_facts(&s->processes[i].summary, &s->processes[i].facts, s->session.clock_hz);
    s->others = r->n_others;
    summary_add(&s->total, &r->others);
    s->duration_ns = trace_stamp_ns(&s->session, r->end.stamp);
    s->under_way = r->end.state == AGGREGATE_UNDER_WAY;
    if (r->end.state == AGGREGATE_CUT_OFF)
        err_set(&s->cut, 0, "%s: the recorder was killed before the recording ended", s->name);
    s->partial = s->under_way;
    s->file_bytes = in->size_bytes ? in->size_bytes : in->offset;
    return file_stat_finish(s);
}

int aggregate_input_stat(struct file_stat *s, struct input *in, struct err *e)
{
    struct stat_reading *r = calloc(1, sizeof *r);
    *s = (struct file_stat){.name = in->name, .kind = FILE_STAT_AGGREGATE, .part = FILE_STAT_SITES};
    if (!r)
        return err_no_memory(e, s->name);
    r->s = s;
    frame_reader_init(&r->frames, in, FRAME_MAGIC_AGGREGATE, AGGREGATE_VERSION);
    int rc = get_frames(r, e);
    if (rc == 0 && finish_stat(r, in) < 0)
        rc = err_no_memory(e, s->name);
    frame_reader_release(&r->frames);
    by_site_release(&r->by_site);
    workload_sites_release(&r->sites);
    free(r);
    if (rc < 0)
        file_stat_release(s);
    return rc;
}

int aggregate_file_stat(struct file_stat *s, const char *path, const struct file_stat_settings *how,
                        struct err *e)
{
    struct input in;
    int rc = file_open_input(&in, path, e);
    if (rc < 0)
        return rc;
    int kind = file_sniff(&in, FILE_TRACE | FILE_WORKLOAD | FILE_AGGREGATE, e);
    if (kind != FILE_AGGREGATE) {
        rc = file_stat_input(s, &in, how, e);
        if (rc == 0)
            s->name = path;
        return rc;
    }
    rc = how->span
             ? err_set(e, -EINVAL,
                       "%s: is an aggregate, which has no events: --from and --to need a trace",
                       path)
         : how->part == FILE_STAT_POOLS
             ? err_set(
                   e, -EINVAL,
                   "%s: is an aggregate, which has no pools: --by pool needs a trace or a workload",
                   path)
             : aggregate_input_stat(s, &in, e);
    s->name = path;
    input_close(&in);
    if (rc == 0 && s->cut.text[0] && how->watch && how->watch->warn)
        how->watch->warn(s->cut.text);
    return rc;
}
