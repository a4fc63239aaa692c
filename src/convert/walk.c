#include "convert/walk.h"

#include "convert/merge.h"

#include <errno.h>
#include <stdlib.h>

enum { PENDING = 4 };

// The reallocs under way in a lane: addresses of their release halves.
struct pending {
    uint64_t ptr[PENDING];
    unsigned n;
};

struct walk {
    struct trace_reader *reader;
    const struct walk_options *options;
    struct merge merge;
    uint64_t watermark; // of the round before
};

static void begin_resize(struct pending *p, uint64_t ptr)
{
    if (p->n == PENDING)
        memmove(p->ptr, p->ptr + 1, (size_t)--p->n * sizeof *p->ptr);
    p->ptr[p->n++] = ptr;
}

static int take_record(struct walk *w, struct merge_stream *s, struct event *ev)
{
    struct pending *pending = s->user;
    unsigned class = event_infos[ev->kind].class;
    if (class == HT_CLASS_HALF) {
        begin_resize(pending, ev->ptr);
        return 0;
    }
    if (class == HT_CLASS_RESIZE && pending->n) {
        uint64_t ptr = pending->ptr[--pending->n];
        ev->ptr = ev->ptr ? ev->ptr : ptr;
    }
    struct walk_call call = {w->reader->processes[s->process], s->thread, s->tid, ev};
    return w->options->call(w->options->context, &call);
}

static int run(struct walk *w, struct merge_stream *s, uint64_t bound)
{
    while (merge_peek(s) && s->stamp <= bound) {
        struct event ev;
        unsigned words = codec_get(&s->state, s->words + s->head, s->tail - s->head, &ev);
        if (!words)
            return -EBADMSG;
        s->head += words;
        int rc = take_record(w, s, &ev);
        if (rc < 0)
            return rc;
    }
    merge_put_back(&w->merge, s);
    return 0;
}

static int advance(struct walk *w, uint64_t limit)
{
    struct merge_stream *s;
    while ((s = merge_top(&w->merge)) && s->stamp <= limit) {
        uint64_t second = merge_second(&w->merge);
        int rc = run(w, s, second < limit ? second : limit);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int feed(struct walk *w, const struct trace_segment *segment)
{
    struct merge_stream *s;
    const struct trace_process *p = w->reader->processes[segment->process];
    if (w->options->wants && !w->options->wants(w->options->context, p))
        return 0;
    int rc = merge_feed(&w->merge, segment, &s);
    if (rc < 0)
        return rc;
    if (!s->user)
        s->user = calloc(1, sizeof(struct pending));
    if (!s->user)
        return -ENOMEM;
    merge_put_back(&w->merge, s);
    return 0;
}

static int take_events(struct walk *w, const struct trace_item *item)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < item->n_segments; i++)
        rc = feed(w, &item->segments[i]);
    if (rc < 0 || !item->round_ends)
        return rc;
    rc = advance(w, w->watermark);
    w->watermark = item->watermark > w->watermark ? item->watermark : w->watermark;
    return rc;
}

static int walk_items(struct walk *w, struct err *cut, struct err *e)
{
    struct trace_item item;
    int rc;
    while ((rc = trace_next(w->reader, &item, e)) > 0) {
        if (item.type == TRACE_EVENTS && (rc = take_events(w, &item)) < 0)
            return rc;
    }
    if (rc == 0 && !w->reader->saw_end)
        err_set(cut, 0, "%s: the recording was cut off, at byte %llu", w->reader->in->name,
                (unsigned long long)w->reader->in->offset);
    if (rc != -ENODATA)
        return rc;
    *cut = *e;
    *e = (struct err){0};
    return 0;
}

int walk_run(struct trace_reader *r, const struct walk_options *options, struct err *cut, struct err *e)
{
    struct walk w = {.reader = r, .options = options};
    *cut = (struct err){0};
    int rc = walk_items(&w, cut, e);
    if (rc == 0)
        rc = advance(&w, UINT64_MAX);
    for (size_t i = 0; i < w.merge.n_streams; i++)
        free(w.merge.streams[i]->user);
    merge_release(&w.merge);
    if (rc == -ENOMEM)
        err_set(e, rc, "%s: out of memory", r->in->name);
    return rc;
}
