#include "convert/convert.h"

#include "base/buf.h"
#include "trace/ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct process {
    struct convert_sink sink;
    struct order *order; // NULL: left out
    bool ended;
};

struct converter {
    struct trace_reader *reader;
    struct trace_ahead *ahead; // reads it, when that is another thread's work
    const struct convert_options *options;
    struct process *processes;
    size_t n, capacity;
    uint32_t *open; // processes that are converted and have not ended, in the order in which they came
    size_t n_open, open_capacity;
    uint64_t watermark; // of the batch before
};

static uint64_t to_stamps(const struct trace_session *s, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * s->clock_hz / 1000000000u) >> s->stamp_shift;
}

static int process_begin(struct converter *c, const struct trace_process *p)
{
    if (HT_GROW(&c->processes, &c->capacity, c->n + 1) < 0)
        return -ENOMEM;
    struct process *to = &c->processes[c->n++];
    *to = (struct process){0};
    int rc = c->options->choose(c->options->context, p, &to->sink);
    if (rc <= 0)
        return rc;
    uint64_t window_ns = c->options->window_ns ? c->options->window_ns : CONVERT_WINDOW_NS;
    struct order_options options = {
        .window = to_stamps(&c->reader->session, window_ns),
        // Stamps that count events are never reordered.
        .skid = c->reader->session.order_only ? 0 : to_stamps(&c->reader->session, CONVERT_SKID_NS),
    };
    to->order = order_new(&options, &to->sink.ops);
    if (!to->order || HT_GROW(&c->open, &c->open_capacity, c->n_open + 1) < 0)
        return -ENOMEM;
    c->open[c->n_open++] = (uint32_t)(c->n - 1);
    return 0;
}

// All that an event up to the watermark of the batch before depends on has been published before it, so it stands in
// that batch or, where its stream was read earlier than the event's, in this one (docs/design/convert.md).
static int batch_end(struct converter *c, uint64_t watermark)
{
    size_t n = c->n_open;
    int rc = 0;
    c->n_open = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct order *order = c->processes[c->open[i]].order;
        if (!order)
            continue;
        c->open[c->n_open++] = c->open[i];
        rc = order_advance(order, c->watermark);
    }
    c->watermark = watermark > c->watermark ? watermark : c->watermark;
    return rc;
}

static int feed_events(struct converter *c, const struct trace_item *item)
{
    for (size_t i = 0; i < item->n_segments; i++) {
        struct process *p = &c->processes[item->segments[i].process];
        int rc = p->ended ? -EBADMSG : p->order ? order_feed(p->order, &item->segments[i]) : 0;
        if (rc < 0)
            return rc;
    }
    return item->batch_ends ? batch_end(c, item->watermark) : 0;
}

// Runs of samples of one process.
static int feed_samples(struct converter *c, const struct trace_item *item)
{
    for (size_t i = 0, n; i < item->n_samples; i += n) {
        const struct trace_sample *s = &item->samples[i];
        const struct process *p = &c->processes[s->process];
        for (n = 1; i + n < item->n_samples && s[n].process == s->process; n++)
            ;
        int rc = p->order && p->sink.samples ? p->sink.samples(p->sink.ops.context, s, n) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int feed_names(struct process *p, const struct trace_item *item)
{
    return p->order ? order_names(p->order, item->names, item->names_bytes) : 0;
}

// Nothing of an ended process comes after its end.
static int process_end(struct process *p)
{
    p->ended = true;
    if (!p->order)
        return 0;
    int rc = order_finish(p->order);
    struct order_counts counts = order_counts(p->order);
    if (rc == 0 && p->sink.done)
        rc = p->sink.done(p->sink.ops.context, &counts, order_sites(p->order));
    order_free(p->order);
    p->order = NULL;
    return rc;
}

static int handle_item(struct converter *c, const struct trace_item *item, struct convert_result *result)
{
    switch (item->type) {
    case TRACE_PROCESS:
        return process_begin(c, item->process);
    case TRACE_EVENTS:
        return feed_events(c, item);
    case TRACE_SAMPLES:
        return feed_samples(c, item);
    case TRACE_PROCESS_END:
        return process_end(&c->processes[item->process->number]);
    case TRACE_NAMES:
        return feed_names(&c->processes[item->process->number], item);
    case TRACE_END:
        result->end_stamp = item->end_stamp;
        break;
    case TRACE_SESSION:
    case TRACE_UNRECORDED:
        break;
    }
    return 0;
}

static int next_item(struct converter *c, struct trace_item *item, struct err *e)
{
    return c->ahead ? trace_ahead_next(c->ahead, item, e) : trace_next(c->reader, item, e);
}

static int convert_items(struct converter *c, struct convert_result *result, struct err *e)
{
    struct trace_item item;
    int rc;
    while ((rc = next_item(c, &item, e)) > 0) {
        rc = handle_item(c, &item, result);
        if (rc < 0)
            return rc;
        if (c->options->progress)
            c->options->progress(c->options->context, item.offset);
    }
    trace_ahead_stop(c->ahead);
    c->ahead = NULL;
    result->cut_off = rc == -ENODATA || (rc == 0 && !c->reader->saw_end);
    if (rc == 0 && result->cut_off)
        err_set(&result->cut, 0, "%s: the recording is cut off at byte %llu", c->reader->in->name,
                (unsigned long long)c->reader->in->offset);
    if (rc == -ENODATA) {
        result->cut = *e;
        *e = (struct err){0};
    }
    return rc == -ENODATA ? 0 : rc;
}

int convert_run(struct trace_reader *r, const struct convert_options *options, struct convert_result *result,
                struct err *e)
{
    struct converter c = {.reader = r, .options = options};
    *result = (struct convert_result){0};
    c.ahead = trace_ahead_start(r);
    int rc = convert_items(&c, result, e);
    trace_ahead_stop(c.ahead);
    for (size_t i = 0; result->cut_off && i < c.n; i++) {
        if (c.processes[i].order)
            order_cut_off(c.processes[i].order);
    }
    for (size_t i = 0; rc == 0 && i < c.n; i++)
        rc = process_end(&c.processes[i]);
    if (rc == 0 && !result->end_stamp)
        result->end_stamp = c.watermark;
    for (size_t i = 0; i < c.n; i++)
        order_free(c.processes[i].order);
    free(c.processes);
    free(c.open);
    return rc < 0 ? err_set(e, rc, "%s: cannot convert: %s", r->in->name, strerror(-rc)) : 0;
}
