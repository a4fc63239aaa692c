#include "reach.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

static void need(bool ok)
{
    if (!ok) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
}

static struct reach_thread *thread_get(struct reach *r, uint32_t thread)
{
    size_t n = (size_t)thread + 1;
    need(HT_GROW(&r->threads, &r->capacity, n) == 0);
    for (; r->n_threads < n; r->n_threads++)
        r->threads[r->n_threads] = (struct reach_thread){0};
    return &r->threads[thread];
}

// Returns the last view of the thread at op `op`, or NULL if the thread had no dependency before.
static const struct reach_view *view_at(const struct reach_thread *t, uint64_t op)
{
    size_t below = 0, above = t->n_views;
    while (below < above) {
        size_t mid = below + (above - below) / 2;
        if (t->views[mid].op <= op)
            below = mid + 1;
        else
            above = mid;
    }
    return below ? &t->views[below - 1] : NULL;
}

static void see(struct reach_view *v, const struct reach_view *other)
{
    for (uint32_t i = 0; i < other->n_below; i++)
        v->below[i] = v->below[i] > other->below[i] ? v->below[i] : other->below[i];
}

// Adds the view after the op, over all known threads.
static bool add_view(struct reach *r, struct reach_thread *t, const struct workload_op *op)
{
    struct reach_view v = {.op = t->next_op, .n_below = (uint32_t)r->n_threads};
    v.below = calloc(r->n_threads, sizeof *v.below);
    need(v.below != NULL);
    if (t->n_views)
        see(&v, &t->views[t->n_views - 1]);
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        const struct workload_dependency *w = &op->dependencies[i];
        if (w->thread >= r->n_threads || w->op >= r->threads[w->thread].next_op) {
            free(v.below);
            return false;
        }
        const struct reach_view *other = view_at(&r->threads[w->thread], w->op);
        if (other)
            see(&v, other);
        v.below[w->thread] = v.below[w->thread] > w->op ? v.below[w->thread] : w->op + 1;
    }
    need(HT_GROW(&t->views, &t->capacity, t->n_views + 1) == 0);
    t->views[t->n_views++] = v;
    return true;
}

bool reach_add(struct reach *r, uint32_t thread, const struct workload_op *op)
{
    struct reach_thread *t = thread_get(r, thread);
    bool ok = !op->n_dependencies || add_view(r, t, op);
    t->next_op++;
    t->last_stamp = op->stamp;
    return ok;
}

bool reach_before(const struct reach *r, uint32_t first, uint64_t op, uint32_t thread)
{
    const struct reach_thread *t = &r->threads[thread];
    if (first == thread)
        return op < t->next_op;
    const struct reach_view *v = t->n_views ? &t->views[t->n_views - 1] : NULL;
    return v && first < v->n_below && op < v->below[first];
}

void reach_release(struct reach *r)
{
    for (size_t i = 0; i < r->n_threads; i++) {
        for (size_t k = 0; k < r->threads[i].n_views; k++)
            free(r->threads[i].views[k].below);
        free(r->threads[i].views);
    }
    free(r->threads);
    *r = (struct reach){0};
}
