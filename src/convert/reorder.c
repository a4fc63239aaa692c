#include "convert/reorder.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void reorder_release(struct reorder *a)
{
    for (size_t i = 0; i < a->n_live; i++)
        map_release(&a->live[i]);
    free(a->live);
    free(a->held);
    *a = (struct reorder){0};
}

void reorder_forget(struct reorder *a, uint32_t process)
{
    if (process < a->n_live)
        map_release(&a->live[process]);
}

// The process's addresses; NULL when out of memory.
static struct map *live_of(struct reorder *a, uint32_t process)
{
    if (process >= a->n_live) {
        size_t n = a->n_live, want = (size_t)process + 1;
        if (HT_GROW(&a->live, &n, want) < 0)
            return NULL;
        memset(a->live + a->n_live, 0, (n - a->n_live) * sizeof *a->live);
        a->n_live = n;
    }
    return &a->live[process];
}

static bool is_block(const struct event *ev)
{
    unsigned class = event_infos[ev->kind].class;
    return class == HT_CLASS_ALLOC || class == HT_CLASS_FREE || class == HT_CLASS_RESIZE;
}

// The address that the call frees, 0 when it frees none.
static uint64_t given(const struct event *ev)
{
    unsigned class = event_infos[ev->kind].class;
    bool keeps = class == HT_CLASS_RESIZE && !ev->result && ev->error;
    return class == HT_CLASS_ALLOC || keeps ? 0 : ev->ptr;
}

static int hold(struct reorder *a, struct merge *m, struct merge_stream *s, uint64_t address)
{
    if (HT_GROW(&a->held, &a->held_capacity, a->n_held + 1) < 0)
        return -ENOMEM;
    a->held[a->n_held++] = (struct reorder_held){s, address, s->stamp + a->window};
    a->repaired++;
    merge_put_aside(m, s);
    return 1;
}

int reorder_hold(struct reorder *a, struct merge *m, struct merge_stream *s, const struct event *ev)
{
    if (!is_block(ev) || !ev->result || ev->result == given(ev))
        return 0;
    struct map *live = live_of(a, s->process);
    if (!live)
        return -ENOMEM;
    if (!map_get(live, ev->result))
        return 0;
    return s->forced ? 0 : hold(a, m, s, ev->result);
}

static void put_back(struct reorder *a, struct merge *m, size_t i, bool forced)
{
    struct merge_stream *s = a->held[i].stream;
    a->held[i] = a->held[--a->n_held];
    s->forced = forced;
    merge_put_back(m, s);
    a->woken = true;
}

int reorder_done(struct reorder *a, struct merge *m, const struct merge_stream *s, const struct event *ev)
{
    if (!is_block(ev))
        return 0;
    struct map *live = live_of(a, s->process);
    if (!live)
        return -ENOMEM;
    uint64_t gone = given(ev);
    if (gone)
        map_remove(live, gone);
    if (ev->result && map_put(live, ev->result, 1) < 0)
        return -ENOMEM;
    for (size_t i = 0; gone && i < a->n_held;) {
        bool waits = a->held[i].address == gone && a->held[i].stream->process == s->process;
        if (waits)
            put_back(a, m, i, false);
        else
            i++;
    }
    return 0;
}

// The one that has waited longest; there is one.
static size_t oldest(const struct reorder *a)
{
    size_t first = 0;
    for (size_t i = 1; i < a->n_held; i++) {
        if (a->held[i].deadline < a->held[first].deadline)
            first = i;
    }
    return first;
}

uint64_t reorder_deadline(const struct reorder *a)
{
    return a->n_held ? a->held[oldest(a)].deadline : UINT64_MAX;
}

bool reorder_expire(struct reorder *a, struct merge *m, uint64_t now)
{
    if (reorder_deadline(a) >= now)
        return false;
    a->broken++;
    put_back(a, m, oldest(a), true);
    return true;
}

bool reorder_holds(const struct reorder *a, const struct merge_stream *s)
{
    for (size_t i = 0; i < a->n_held; i++) {
        if (a->held[i].stream == s)
            return true;
    }
    return false;
}
