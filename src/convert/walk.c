#include "convert/walk.h"

#include "base/buf.h"
#include "convert/merge.h"

#include <errno.h>
#include <stdlib.h>

enum { PENDING = 4 };

// Pending reallocs of a stream: the addresses in their release halves.
struct pending {
    uint64_t ptr[PENDING];
    unsigned n;
    bool ended;                // the thread has exited
    struct merge_stream *next; // next stream of the process
};

// A process that has ended but may still have queued calls.
struct ended {
    uint32_t process;
    unsigned batches; // number of batches since the process ended
};

struct walk {
    struct trace_reader *reader;
    const struct walk_options *options;
    struct merge merge;
    uint64_t watermark; // watermark of the previous batch
    struct ended *ended;
    size_t n_ended, ended_capacity;
    struct merge_stream **first; // indexed by process; entries may be NULL
    size_t n_first, first_capacity;
};

static void begin_resize(struct pending *p, uint64_t ptr)
{
    if (p->n == PENDING)
        memmove(p->ptr, p->ptr + 1, (size_t)--p->n * sizeof *p->ptr);
    p->ptr[p->n++] = ptr;
}

static int handle_call(struct walk *w, struct merge_stream *s, struct event *ev)
{
    struct pending *pending = s->user;
    bool resizes = event_infos[ev->kind].class == HT_CLASS_RESIZE && pending->n;
    if (resizes && !ev->ptr)
        ev->ptr = pending->ptr[pending->n - 1];
    pending->n -= resizes;
    pending->ended |= ev->kind == HT_THREAD_END;
    struct walk_call call = {w->reader->processes[s->process], s->thread, s->tid, ev};
    return w->options->call(w->options->context, &call);
}

static int handle_record(struct walk *w, struct merge_stream *s, struct event *ev)
{
    if (event_infos[ev->kind].class != HT_CLASS_HALF)
        return handle_call(w, s, ev);
    begin_resize(s->user, ev->ptr);
    struct walk_call half = {w->reader->processes[s->process], s->thread, s->tid, ev};
    return w->options->halves ? w->options->call(w->options->context, &half) : 0;
}

static int visit_stream(struct walk *w, struct merge_stream *s, uint64_t bound)
{
    while (merge_peek(s) && s->stamp <= bound) {
        struct event ev;
        unsigned words = codec_get(&s->state, s->words + s->head, s->tail - s->head, &ev);
        if (!words)
            return -EBADMSG;
        int rc = handle_record(w, s, &ev);
        if (rc)
            return rc;
        s->head += words;
    }
    merge_put_back(&w->merge, s);
    const struct pending *pending = s->user;
    if (pending->ended && s->head == s->tail)
        merge_forget(s);
    return 0;
}

static int visit_until(struct walk *w, uint64_t limit)
{
    struct merge_stream *s;
    int rc = 0;
    while (rc == 0 && (s = merge_top(&w->merge)) && s->stamp <= limit) {
        uint64_t bound = merge_second(&w->merge);
        rc = visit_stream(w, s, bound < limit ? bound : limit);
    }
    return rc;
}

// Frees the queues of threads whose exit was not recorded.
static void forget_streams(struct walk *w, uint32_t process)
{
    struct merge_stream *s = process < w->n_first ? w->first[process] : NULL;
    for (; s; s = ((struct pending *)s->user)->next) {
        if (s->head == s->tail)
            merge_forget(s);
    }
}

// Frees the state of processes that ended two batches ago. By then, all their calls have been
// visited.
static int forget_ended(struct walk *w)
{
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < w->n_ended; i++) {
        struct ended *ended = &w->ended[i];
        if (ended->batches++ < 2) {
            w->ended[kept++] = *ended;
            continue;
        }
        forget_streams(w, ended->process);
        if (rc == 0 && w->options->ended)
            rc = w->options->ended(w->options->context, w->reader->processes[ended->process]);
    }
    w->n_ended = kept;
    return rc;
}

static int process_end(struct walk *w, uint32_t process)
{
    return HT_APPEND(&w->ended, &w->n_ended, &w->ended_capacity, (struct ended){process, 0});
}

static int add_stream(struct walk *w, struct merge_stream *s)
{
    struct pending *pending = calloc(1, sizeof *pending);
    s->user = pending;
    if (!pending || HT_EXTEND(&w->first, &w->n_first, &w->first_capacity, s->process + 1u) < 0)
        return -ENOMEM;
    pending->next = w->first[s->process];
    w->first[s->process] = s;
    return 0;
}

static int feed_segment(struct walk *w, const struct trace_segment *segment)
{
    struct merge_stream *s;
    const struct trace_process *p = w->reader->processes[segment->process];
    if (w->options->wants && !w->options->wants(w->options->context, p))
        return 0;
    int rc = merge_feed(&w->merge, segment, &s);
    if (rc < 0)
        return rc;
    if (!s->user && add_stream(w, s) < 0)
        return -ENOMEM;
    merge_put_back(&w->merge, s);
    return 0;
}

static int feed_events(struct walk *w, const struct trace_item *item)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < item->n_segments; i++)
        rc = feed_segment(w, &item->segments[i]);
    if (rc < 0 || !item->batch_ends)
        return rc;
    rc = visit_until(w, w->watermark);
    w->watermark = item->watermark > w->watermark ? item->watermark : w->watermark;
    if (rc == 0)
        rc = forget_ended(w);
    return rc == 0 && w->options->pause ? w->options->pause(w->options->context) : rc;
}

static int hand_on_samples(struct walk *w, const struct trace_item *item)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && w->options->sample && i < item->n_samples; i++)
        rc = w->options->sample(w->options->context, &item->samples[i]);
    return rc;
}

struct walk *walk_new(struct trace_reader *r, const struct walk_options *options)
{
    struct walk *w = calloc(1, sizeof *w);
    if (w)
        *w = (struct walk){.reader = r, .options = options};
    return w;
}

void walk_free(struct walk *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->merge.n_streams; i++)
        free(w->merge.streams[i]->user);
    merge_release(&w->merge);
    free(w->ended);
    free(w->first);
    free(w);
}

int walk_feed(struct walk *w, const struct trace_item *item)
{
    return item->type == TRACE_EVENTS        ? feed_events(w, item)
           : item->type == TRACE_PROCESS_END ? process_end(w, item->process->number)
           : item->type == TRACE_SAMPLES     ? hand_on_samples(w, item)
                                             : 0;
}

int walk_settle(struct walk *w)
{
    return visit_until(w, UINT64_MAX);
}

static int walk_items(struct walk *w, struct err *cut, struct err *e)
{
    struct trace_item item;
    int rc;
    while ((rc = trace_next(w->reader, &item, e)) > 0) {
        rc = walk_feed(w, &item);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && !w->reader->saw_end)
        err_set(cut, 0, "%s: the recording is cut off at byte %llu", w->reader->in->name,
                (unsigned long long)w->reader->in->offset);
    if (rc != -ENODATA)
        return rc;
    *cut = *e;
    *e = (struct err){0};
    return 0;
}

int walk_run(struct trace_reader *r, const struct walk_options *options, struct err *cut,
             struct err *e)
{
    struct walk *w = walk_new(r, options);
    *cut = (struct err){0};
    r->wants = options->wants;
    r->wants_context = options->context;
    int rc = w ? walk_items(w, cut, e) : -ENOMEM;
    r->wants = NULL;
    if (rc == 0)
        rc = walk_settle(w);
    walk_free(w);
    if (rc == -ENOMEM)
        err_no_memory(e, r->in->name);
    return rc;
}
