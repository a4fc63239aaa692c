// Appends ops to the plan's streams.
#include "replay/plan/build.h"

#include <errno.h>

int plan_no_memory(struct err *e)
{
    return err_no_memory(e, NULL);
}

// Reserves space like plan_stream_reserve(). If the current window is full, uses the next window.
static int reserve_words(struct plan *p, struct plan_stream *s, unsigned n, uint64_t **w,
                         struct err *e)
{
    int rc = plan_stream_reserve(s, n, w, e);
    if (rc != -EAGAIN)
        return rc;
    rc = plan_next_window(p, e);
    return rc < 0 ? rc : plan_stream_reserve(s, n, w, e);
}

int plan_put_call(struct plan *p, struct plan_stream *s, const struct plan_call *c, struct err *e)
{
    uint64_t *w;
    unsigned n = 0, extra = plan_extra_words(c->op);
    int rc = reserve_words(p, s, PLAN_MAX_OP_WORDS, &w, e);
    if (rc < 0)
        return rc;
    if (c->entry >> PLAN_ENTRY_BITS || c->size >> PLAN_SIZE_BITS) {
        w[n++] = plan_word(PLAN_WIDE, c->op, 0);
        w[n++] = c->entry;
        w[n++] = c->size;
    } else {
        w[n++] = plan_word(c->op, c->entry, c->size);
    }
    for (unsigned i = 0; i < extra; i++)
        w[n++] = c->extra[i];
    return plan_stream_number(s, n) < 0 ? err_no_memory(e, NULL) : 0;
}

// Appends an unnumbered op of two words.
static int put_two_words(struct plan *p, struct plan_stream *s, const uint64_t words[2],
                         struct err *e)
{
    uint64_t *w;
    int rc = reserve_words(p, s, 2, &w, e);
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
    int rc = reserve_words(p, s, 1, &w, e);
    if (rc < 0)
        return rc;
    *w = word;
    s->next++;
    return 0;
}

int plan_put_switch(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e)
{
    uint64_t exited = p->current_exited ? PLAN_SWITCH_EXITED : 0;
    p->current = thread;
    p->current_exited = false;
    p->facts.thread_switches++;
    return put_word(p, s, (uint64_t)PLAN_SWITCH | exited | (uint64_t)thread << 9, e);
}

int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = plan_put_count(p, s, e);
    p->facts.stats_samples++;
    return rc < 0 ? rc : put_word(p, s, PLAN_STATS, e);
}

int plan_put_trim(struct plan *p, struct plan_stream *s, struct err *e)
{
    return put_word(p, s, PLAN_TRIM, e);
}

int plan_put_snapshot(struct plan *p, struct plan_stream *s, struct err *e)
{
    return put_word(p, s, PLAN_SNAPSHOT, e);
}

int plan_put_pace(struct plan *p, struct plan_stream *s, uint64_t ns, struct err *e)
{
    return put_word(p, s, (uint64_t)PLAN_PACE | ns << 8, e);
}

int plan_put_touch(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                   uint64_t *at, struct err *e)
{
    int rc = put_two_words(
        p, s, (uint64_t[]){(uint64_t)PLAN_TOUCH | late->used << 8, late->front_kib}, e);
    *at = s->next - 1;
    return rc;
}

int plan_put_touch_late(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                        uint64_t to, struct err *e)
{
    uint64_t *w;
    int rc = reserve_words(p, s, 3, &w, e);
    if (rc < 0)
        return rc;
    w[0] = plan_word(PLAN_TOUCH_LATE, late->entry, to);
    w[1] = late->touched | late->used << 32 | (uint64_t)late->zeroed << 63;
    w[2] = late->front_kib / WORKLOAD_PAGE_KIB | late->pages << 32;
    s->next += 3;
    return 0;
}

int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                  struct err *e)
{
    p->facts.dependencies++;
    if (!position) // position 0 is always satisfied
        return 0;
    return put_two_words(p, s, (uint64_t[]){plan_word(PLAN_WAIT, 0, thread), position}, e);
}

int plan_put_couple(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                    struct err *e)
{
    if (!position) // position 0 is always satisfied
        return 0;
    return put_two_words(p, s, (uint64_t[]){plan_word(PLAN_COUPLE, 0, thread), position}, e);
}

int plan_put_count(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = put_two_words(
        p, s, (uint64_t[]){(uint64_t)PLAN_COUNT | s->counted_events << 8, (uint64_t)s->live_change},
        e);
    s->counted_events = 0;
    s->live_change = 0;
    return rc;
}
