// Appends ops to the plan's streams.
#include "replay/plan/build.h"

#include <errno.h>
#include <string.h>

// Reserves space like plan_stream_reserve(). If the current window is full, uses the next window.
static int reserve_words(struct plan *p, struct plan_stream *s, unsigned n, uint64_t **w,
                         struct err *e)
{
    int rc = plan_stream_reserve(s, n, w, e);
    if (rc != -EAGAIN)
        return rc;
    rc = plan_write_window(p, e);
    plan_memory_next_window(&p->ring);
    return rc < 0 ? rc : plan_stream_reserve(s, n, w, e);
}

int plan_put_call(struct plan *p, struct plan_stream *s, const struct plan_call *c, struct err *e)
{
    uint64_t *w;
    unsigned n = 0, extra = plan_op_info(c->op).words;
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

// Appends an unnumbered op of n words.
static int put_words(struct plan *p, struct plan_stream *s, const uint64_t *words, unsigned n,
                     struct err *e)
{
    uint64_t *w;
    int rc = reserve_words(p, s, n, &w, e);
    if (rc < 0)
        return rc;
    memcpy(w, words, n * sizeof *words);
    s->next += n;
    return 0;
}

int plan_put_word(struct plan *p, struct plan_stream *s, uint64_t word, struct err *e)
{
    return put_words(p, s, &word, 1, e);
}

int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = plan_put_count(p, s, e);
    p->facts.stats_samples++;
    return rc < 0 ? rc : plan_put_word(p, s, PLAN_STATS, e);
}

int plan_put_touch(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                   uint64_t *at, struct err *e)
{
    const uint64_t words[] = {(uint64_t)PLAN_TOUCH | late->used << 8, late->front_kib};
    int rc = put_words(p, s, words, 2, e);
    *at = s->next - 1;
    return rc;
}

int plan_put_touch_late(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                        uint64_t to, struct err *e)
{
    const uint64_t words[] = {plan_word(PLAN_TOUCH_LATE, late->entry, to),
                              late->touched | late->used << 32 | (uint64_t)late->zeroed << 63,
                              late->front_kib / WORKLOAD_PAGE_KIB | late->pages << 32};
    return put_words(p, s, words, 3, e);
}

int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                  struct err *e)
{
    const uint64_t words[] = {plan_word(PLAN_WAIT, 0, thread), position};
    p->facts.dependencies++;
    return position ? put_words(p, s, words, 2, e) : 0;
}

int plan_wait_for_op(struct plan *p, struct plan_stream *s, const struct plan_stream *other,
                     uint64_t op, struct err *e)
{
    return other == s ? 0 : plan_put_wait(p, s, other->number, plan_stream_publish(other, op), e);
}

int plan_put_couple(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                    struct err *e)
{
    const uint64_t words[] = {plan_word(PLAN_COUPLE, 0, thread), position};
    return position ? put_words(p, s, words, 2, e) : 0;
}

int plan_put_count(struct plan *p, struct plan_stream *s, struct err *e)
{
    const uint64_t words[] = {(uint64_t)PLAN_COUNT | s->counted_events << 8,
                              (uint64_t)s->live_change};
    int rc = put_words(p, s, words, 2, e);
    s->counted_events = 0;
    s->live_change = 0;
    return rc;
}
