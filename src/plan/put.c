#include "plan/build.h"

#include <errno.h>

int plan_no_memory(struct err *e)
{
    return err_set(e, -ENOMEM, "out of memory");
}

// As plan_stream_room, in the next window if need be.
static int room(struct plan *p, struct plan_stream *s, unsigned n, uint64_t **w, struct err *e)
{
    int rc = plan_stream_room(s, n, w, e);
    if (rc != -EAGAIN)
        return rc;
    rc = plan_turn_window(p, e);
    return rc < 0 ? rc : plan_stream_room(s, n, w, e);
}

int plan_put_call(struct plan *p, struct plan_stream *s, const struct call *c, struct err *e)
{
    uint64_t *w;
    unsigned n = 0, extra = plan_extra_words(c->op);
    int rc = room(p, s, PLAN_MAX_OP_WORDS, &w, e);
    if (rc < 0)
        return rc;
    if (c->place >> PLAN_PLACE_BITS || c->size >> PLAN_SIZE_BITS) {
        w[n++] = plan_word(PLAN_WIDE, c->op, 0);
        w[n++] = c->place;
        w[n++] = c->size;
    } else {
        w[n++] = plan_word(c->op, c->place, c->size);
    }
    for (unsigned i = 0; i < extra; i++)
        w[n++] = c->extra[i];
    return plan_stream_number(s, n) < 0 ? plan_no_memory(e) : 0;
}

// What the plan says between two ops: two words that have no number.
static int put_aside(struct plan *p, struct plan_stream *s, const uint64_t words[2], struct err *e)
{
    uint64_t *w;
    int rc = room(p, s, 2, &w, e);
    if (rc < 0)
        return rc;
    w[0] = words[0];
    w[1] = words[1];
    s->next += 2;
    return 0;
}

static int put_word(struct plan *p, struct plan_stream *s, uint64_t word, struct err *e)
{
    uint64_t *w;
    int rc = room(p, s, 1, &w, e);
    if (rc < 0)
        return rc;
    *w = word;
    s->next++;
    return 0;
}

int plan_put_switch(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e)
{
    uint64_t over = p->current_over ? PLAN_SWITCH_OVER : 0;
    p->current = thread;
    p->current_over = false;
    p->facts.switches++;
    return put_word(p, s, (uint64_t)PLAN_SWITCH | over | (uint64_t)thread << 9, e);
}

int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = plan_put_count(p, s, PLAN_COUNT, e);
    p->facts.stats++;
    return rc < 0 ? rc : put_word(p, s, PLAN_STATS, e);
}

int plan_put_trim(struct plan *p, struct plan_stream *s, struct err *e)
{
    return put_word(p, s, PLAN_TRIM, e);
}

int plan_put_hold(struct plan *p, struct plan_stream *s, struct err *e)
{
    return put_word(p, s, PLAN_HOLD, e);
}

int plan_put_pace(struct plan *p, struct plan_stream *s, uint64_t ns, struct err *e)
{
    s->paced_ns = ns;
    return put_word(p, s, (uint64_t)PLAN_PACE | ns << 8, e);
}

int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position, struct err *e)
{
    p->facts.waits++;
    if (!position) // met for sure
        return 0;
    return put_aside(p, s, (uint64_t[]){plan_word(PLAN_WAIT, 0, thread), position}, e);
}

int plan_put_count(struct plan *p, struct plan_stream *s, enum plan_op op, struct err *e)
{
    int rc = put_aside(p, s, (uint64_t[]){(uint64_t)op | s->counted_events << 8, (uint64_t)s->live_change}, e);
    s->counted_events = 0;
    s->live_change = 0;
    return rc;
}
