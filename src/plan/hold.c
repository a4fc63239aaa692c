// Makes all threads stand still at one point of the total order, and tells which blocks are live there.
#include "base/buf.h"
#include "plan/build.h"

#include <stdlib.h>
#include <string.h>

static bool is_done(const struct plan *p)
{
    return p->added > p->how.hold_ops;
}

static int append(struct plan *p, struct plan_hold *h, uint32_t slot, struct err *e)
{
    if (HT_GROW(&h->blocks, &h->capacity, h->n + 1) < 0)
        return plan_no_memory(e);
    const struct taking *t = &p->takings[slot];
    h->blocks[h->n++] = (struct plan_held){.size = p->slots[slot].size,
                                           .taken = t->taken,
                                           .site = t->site,
                                           .thread = t->thread,
                                           .place = p->slots[slot].place};
    return 0;
}

int plan_note_taking(struct plan *p, uint32_t thread, const struct workload_op *op, struct err *e)
{
    bool before = op->kind == HT_PREEXISTING;
    size_t n = (size_t)op->slot + 1;
    if (p->scanned)
        return 0;
    if (HT_GROW(&p->takings, &p->takings_capacity, n) < 0)
        return plan_no_memory(e);
    if (n > p->n_takings)
        p->n_takings = n;
    p->takings[op->slot] = (struct taking){
        .taken = before ? PLAN_BEFORE : p->facts.events, .site = before ? op->value >> 8 : op->value, .thread = thread};
    // It was there all the time.
    return before && p->is_held ? append(p, &p->holds[PLAN_HOLD_PEAK], op->slot, e) : 0;
}

static int look(struct plan *p, unsigned which, struct err *e)
{
    int rc = 0;
    if (p->scanned)
        return 0;
    p->holds[which].event = p->facts.events;
    for (size_t i = 0; rc == 0 && i < p->n_slots; i++)
        rc = p->slots[i].place ? append(p, &p->holds[which], (uint32_t)i, e) : 0;
    return rc;
}

static int wait_for_op(struct plan *p, struct plan_stream *s, const struct plan_stream *other, uint64_t op,
                       struct err *e)
{
    uint64_t position;
    plan_stream_publish(other, op, &position);
    return plan_put_wait(p, s, other->number, position, e);
}

// All that has been added is done before the HOLD.
static int hold(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = look(p, PLAN_HOLD_PEAK, e);
    for (size_t i = 0; rc == 0 && i < p->n_streams; i++) {
        const struct plan_stream *other = p->streams[i];
        if (other && other != s && other->ops)
            rc = wait_for_op(p, s, other, other->ops - 1, e);
    }
    p->is_held = true;
    p->held_by = s->number;
    p->held_op = s->ops;
    return rc < 0 ? rc : plan_put_hold(p, s, e);
}

int plan_hold_before(struct plan *p, struct plan_stream *s, struct err *e)
{
    if (p->added == p->how.hold_ops)
        return hold(p, s, e);
    // Who begins later might begin too early.
    if (is_done(p) && !s->ops && s->number != p->held_by)
        return wait_for_op(p, s, p->streams[p->held_by], p->held_op, e);
    return 0;
}

int plan_hold_after(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = 0;
    if (p->added != p->how.hold_ops)
        return 0;
    for (size_t i = 0; rc == 0 && i < p->n_streams; i++) {
        struct plan_stream *other = p->streams[i];
        if (other && other != s && other->ops && !other->stopped)
            rc = wait_for_op(p, other, s, p->held_op, e);
    }
    return rc;
}

int plan_finish_holds(struct plan *p, struct err *e)
{
    return p->how.hold ? look(p, PLAN_HOLD_END, e) : 0;
}

const struct plan_hold *plan_holds(const struct plan *p, unsigned which, unsigned *noted_at)
{
    *noted_at = p->is_held ? which : PLAN_HOLD_END;
    return &p->holds[*noted_at];
}

void plan_release_holds(struct plan *p)
{
    for (unsigned i = 0; i < PLAN_HOLDS; i++)
        free(p->holds[i].blocks);
    free(p->takings);
}
