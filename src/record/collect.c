// A trace of what was recorded without a recorder.
#include "record/drain.h"
#include "record/facts.h"
#include "record/record.h"
#include "trace/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct collector {
    struct drain drain;
    struct trace_writer writer;
    struct record_result *result;
    uint64_t *last_epochs; // by number of the process
    bool in_batch;
};

static int write_session(struct collector *c, struct err *e)
{
    struct trace_session facts;
    const struct spool_session *session = c->drain.session;
    enum clock_kind clock = session->clock_kind <= CLOCK_KIND_CNTVCT ? (enum clock_kind)session->clock_kind : 0;
    if (facts_session(&facts, clock, (char *[]){NULL}) < 0)
        return err_set(e, -ENOMEM, "out of memory");
    facts.clock_hz = clock_hz(clock);
    facts.start_stamp = session->start_stamp;
    facts.stack_sample_bytes = session->depth ? session->sample_bytes : 0;
    facts.realtime_ns = session->realtime_ns;
    int rc = trace_write_session(&c->writer, &facts, e);
    trace_session_release(&facts);
    return rc;
}

static int write_processes(struct collector *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < c->drain.n_spools && rc == 0; i++) {
        struct trace_process p;
        if (facts_process(&p, c->drain.spools[i]) < 0)
            return err_set(e, -ENOMEM, "out of memory");
        rc = trace_write_process(&c->writer, &p, e);
        trace_process_release(&p);
        c->result->processes++;
    }
    return rc;
}

static int write_ends(struct collector *c, struct err *e)
{
    int rc = 0;
    uint64_t end = c->drain.session->start_stamp;
    for (size_t i = 0; i < c->drain.n_spools && rc == 0; i++) {
        struct trace_process p;
        if (facts_process(&p, c->drain.spools[i]) < 0)
            return err_set(e, -ENOMEM, "out of memory");
        // Nobody saw the process end: its last epoch is over at the latest then.
        if (!p.end_stamp)
            p.end_stamp = c->last_epochs[i] ? (c->last_epochs[i] + 1) << CODEC_STAMP_BITS : p.start_stamp;
        facts_window(&p, c->drain.spools[i]);
        end = p.end_stamp > end ? p.end_stamp : end;
        c->result->lost_words += p.lost_records;
        if (p.off_reason && !c->result->off_reason[0])
            snprintf(c->result->off_reason, sizeof c->result->off_reason, "%s", p.off_reason);
        rc = trace_write_process_end(&c->writer, &p, e);
        trace_process_release(&p);
    }
    return rc < 0 ? rc : trace_write_end(&c->writer, end, 0, e);
}

static int take_segment(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct collector *c = ctx;
    int rc = c->in_batch ? 0 : trace_batch_begin(&c->writer, e);
    c->in_batch = true;
    if (rc == 0)
        rc = trace_batch_add(&c->writer, g, e);
    if (rc == 0 && g->epoch_end > c->last_epochs[s->number])
        c->last_epochs[s->number] = g->epoch_end;
    return rc;
}

static int end_batch(void *ctx, uint64_t watermark, struct err *e)
{
    struct collector *c = ctx;
    if (!c->in_batch)
        return 0;
    c->in_batch = false;
    c->result->batches++;
    return trace_batch_end(&c->writer, watermark, e);
}

int record_collect(const char *dir, const struct record_settings *settings, struct output *out,
                   struct record_result *result, struct err *e)
{
    struct collector c = {.result = result};
    const struct drain_sink sink = {.ctx = &c, .segment = take_segment};
    *result = (struct record_result){0};
    int rc = drain_open_finished(&c.drain, dir, e);
    if (rc < 0)
        return rc;
    trace_writer_init(&c.writer, out, settings->codec, settings->level);
    c.last_epochs = calloc(c.drain.n_spools + 1, sizeof *c.last_epochs);
    rc = c.last_epochs ? write_session(&c, e) : err_set(e, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = write_processes(&c, e);
    if (rc == 0)
        rc = drain_finished(&c.drain, &sink, end_batch, e);
    if (rc == 0)
        rc = write_ends(&c, e);
    result->events = c.writer.events;
    trace_writer_release(&c.writer);
    free(c.last_epochs);
    drain_close(&c.drain);
    return rc;
}
