#include "trace/ahead.h"

#include "base/ring.h"
#include "base/thread.h"

#include <stdlib.h>

// The caller uses one item while another is ready and a third is being read.
enum { PLACES = 3 };

struct place {
    struct trace_item item;
    int rc;
    struct err e;
    struct buf words, segments, samples; // storage of the item
};

struct trace_ahead {
    struct trace_reader *reader;
    struct ring ring;
    pthread_t thread;
    struct place places[PLACES];
    bool in_use; // the caller still uses the item returned last
};

static void swap_buffers(struct buf *a, struct buf *b)
{
    struct buf c = *a;
    *a = *b;
    *b = c;
}

// Swaps the buffers of the reader's item with the buffers of the slot.
static void move_storage(struct place *p, struct trace_reader *r)
{
    swap_buffers(&p->words, &r->words);
    swap_buffers(&p->segments, &r->segments);
    swap_buffers(&p->samples, &r->samples);
}

static void *read_ahead(void *of)
{
    struct trace_ahead *a = of;
    int at;
    while ((at = ring_wait_empty(&a->ring)) >= 0) {
        struct place *p = &a->places[at];
        p->e = (struct err){0};
        p->rc = trace_next(a->reader, &p->item, &p->e);
        move_storage(p, a->reader);
        bool last = p->rc <= 0;
        bool alone = !last && p->item.type != TRACE_EVENTS && p->item.type != TRACE_SAMPLES;
        ring_fill(&a->ring);
        // This item changes the reader's processes, so pause until the caller has used the item.
        if (alone)
            ring_drain(&a->ring);
        if (last)
            break;
    }
    ring_over(&a->ring);
    return NULL;
}

struct trace_ahead *trace_ahead_start(struct trace_reader *r)
{
    if (!r->in->size_bytes || ring_cpus() < 2)
        return NULL;
    struct trace_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->reader = r;
    ring_init(&a->ring, PLACES);
    if (thread_start(&a->thread, 0, read_ahead, a) == 0)
        return a;
    ring_release(&a->ring);
    free(a);
    return NULL;
}

int trace_ahead_next(struct trace_ahead *a, struct trace_item *item, struct err *e)
{
    if (a->in_use)
        ring_empty(&a->ring);
    a->in_use = false;
    int at = ring_wait_full(&a->ring);
    if (at < 0)
        return 0;
    struct place *p = &a->places[at];
    a->in_use = true;
    *item = p->item;
    if (p->rc < 0)
        err_set(e, p->rc, "%s", p->e.text);
    return p->rc;
}

void trace_ahead_stop(struct trace_ahead *a)
{
    if (!a)
        return;
    ring_stop(&a->ring);
    pthread_join(a->thread, NULL);
    for (unsigned i = 0; i < PLACES; i++) {
        buf_release(&a->places[i].words);
        buf_release(&a->places[i].segments);
        buf_release(&a->places[i].samples);
    }
    ring_release(&a->ring);
    free(a);
}
