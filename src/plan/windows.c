// Plans that are fed to the player while it plays.
#include "plan/build.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LEAST_WINDOW_WORDS = 2048,
    // Big enough that a thread far ahead of the others seldom has to wait for them.
    MOST_WINDOW_WORDS = 4 << 20,
    WINDOW_STEP_WORDS = 512,
};

// Half of the memory allowed is for the ring.
static uint64_t window_words(uint64_t memory_bytes)
{
    uint64_t words = memory_bytes / 2 / PLAN_WINDOWS / 8 / WINDOW_STEP_WORDS * WINDOW_STEP_WORDS;
    if (words > MOST_WINDOW_WORDS)
        return MOST_WINDOW_WORDS;
    return words < LEAST_WINDOW_WORDS ? LEAST_WINDOW_WORDS : words;
}

int plan_ring_new(struct plan *p, struct err *e)
{
    uint64_t words = window_words(p->how.memory_bytes);
    p->facts.window_bytes = words * 8;
    if (p->scanned)
        return 0;
    p->scratch = calloc(words, 8);
    if (!p->scratch)
        return plan_no_memory(e);
    plan_memory_init_ring(&p->ring, p->scratch, 1, words, 1);
    return 0;
}

int plan_turn_window(struct plan *p, struct err *e)
{
    int rc = 0;
    plan_memory_close_window(&p->ring);
    if (p->sink) {
        p->sink->hand_over(p->sink->context, &p->ring);
        rc = p->sink->wait_for_room(p->sink->context, &p->ring);
    }
    if (rc < 0)
        return err_set(e, rc, "the player is gone");
    plan_memory_next_window(&p->ring);
    return 0;
}

int plan_stop_if_over(struct plan *p, struct plan_stream *s, struct err *e)
{
    const struct plan *was = p->scanned;
    if (s->number >= was->n_streams || !was->streams[s->number] || s->ops > was->streams[s->number]->ops)
        return err_set(e, -EBADMSG, "%s: has changed while it was replayed", p->name);
    return s->ops == was->streams[s->number]->ops ? plan_stop_stream(p, s, e) : 0;
}

int plan_new_feeding(struct plan **out, const struct plan *scanned, uint64_t *ring, const struct plan_sink *sink,
                     struct err *e)
{
    int rc = plan_new_as(out, scanned->name, &scanned->how, scanned, e);
    if (rc < 0)
        return rc;
    (*out)->sink = sink;
    plan_memory_init_ring(&(*out)->ring, ring, plan_ring_at(scanned), scanned->facts.window_bytes / 8, PLAN_WINDOWS);
    return 0;
}

int plan_finish_feeding(struct plan *p, struct err *e)
{
    for (size_t i = 0; i < p->scanned->n_streams; i++) {
        const struct plan_stream *was = p->scanned->streams[i];
        const struct plan_stream *is = i < p->n_streams ? p->streams[i] : NULL;
        if (was && was->ops && (!is || !is->stopped))
            return err_set(e, -EBADMSG, "%s: has changed while it was replayed", p->name);
    }
    plan_memory_close_window(&p->ring);
    p->sink->hand_over(p->sink->context, &p->ring);
    return 0;
}
