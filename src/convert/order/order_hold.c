// Streams that are held until another stream's record arrives, or until their deadline.
#include "base/buf.h"
#include "convert/order/order_private.h"

#include <errno.h>

void order_deadline(struct order *o)
{
    uint64_t d = UINT64_MAX;
    for (size_t i = 0; i < o->n_held; i++)
        d = o->held[i].deadline < d ? o->held[i].deadline : d;
    for (size_t i = 0; i < o->n_duplicates; i++)
        d = o->duplicates[i].deadline < d ? o->duplicates[i].deadline : d;
    o->next_deadline = d;
    o->disturbed = true;
}

// Returns the time for which a stream waits. If the library recorded the usable size of a freed
// block, the block's allocation may be missing from the trace, but it is never late. If an
// allocation is found later, it belongs to another block, so the stream waits for a shorter time.
static uint64_t hold_limit(const struct order *o, enum order_hold why)
{
    enum { SKIDS = 16 };
    bool perhaps_before = why == ORDER_HOLD_RELEASE && o->usable && o->options.skid;
    return perhaps_before && SKIDS * o->options.skid < o->options.window ? SKIDS * o->options.skid
                                                                         : o->options.window;
}

int order_hold(struct order *o, struct merge_stream *s, enum order_hold why, uint64_t stamp,
               uint64_t address)
{
    if (!order_afford(o, o->n_held)) {
        s->forced = true;
        order_count(&o->counts.ambiguous, 1, s->user, stamp,
                    why == ORDER_HOLD_RELEASE ? address : 0);
        merge_put_back(&o->merge, s);
        return ORDER_HELD;
    }
    uint64_t deadline = why == ORDER_HOLD_THREAD ? UINT64_MAX : stamp + hold_limit(o, why);
    struct order_thread *t = s->user;
    const struct order_held held = {s, t, why, address,
                                    deadline < stamp ? UINT64_MAX - 1 : deadline};
    if (HT_APPEND(&o->held, &o->n_held, &o->held_capacity, held) < 0)
        return -ENOMEM;
    if (why != ORDER_HOLD_THREAD)
        t->held++;
    s->held = true;
    merge_put_aside(&o->merge, s);
    order_deadline(o);
    return ORDER_HELD;
}

// Puts one held stream back into the heap.
static void put_back(struct order *o, size_t i)
{
    struct merge_stream *s = o->held[i].stream;
    o->held[i] = o->held[--o->n_held];
    s->held = false;
    merge_put_back(&o->merge, s);
}

// Puts a held stream back into the heap, together with the thread's other streams unless another
// hold remains.
static void unhold(struct order *o, size_t i)
{
    struct order_held h = o->held[i];
    put_back(o, i);
    if (h.why == ORDER_HOLD_THREAD || --h.thread->held)
        return;
    for (size_t k = 0; k < o->n_held;) {
        if (o->held[k].thread == h.thread)
            put_back(o, k);
        else
            k++;
    }
}

void order_unhold_all(struct order *o)
{
    while (o->n_held) {
        struct order_held *h = &o->held[o->n_held - 1];
        h->thread->held = 0;
        h->stream->forced = true;
        order_count(&o->counts.ambiguous, 1, h->thread, h->stream->stamp,
                    h->why == ORDER_HOLD_RELEASE ? h->address : 0);
        put_back(o, o->n_held - 1);
    }
    order_deadline(o);
}

void order_wake(struct order *o, enum order_hold why, uint64_t address)
{
    // Release only the stream with the lowest stamp. Its records determine whether other streams
    // are released.
    if (!order_afford(o, o->n_held)) {
        order_unhold_all(o);
        return;
    }
    size_t best = o->n_held;
    for (size_t i = 0; i < o->n_held; i++) {
        if (o->held[i].why != why || o->held[i].address != address)
            continue;
        if (best == o->n_held || o->held[i].deadline < o->held[best].deadline)
            best = i;
    }
    if (best == o->n_held)
        return;
    unhold(o, best);
    o->counts.repaired++;
    order_deadline(o);
}

void order_expire_held(struct order *o, size_t i)
{
    o->held[i].stream->forced = true;
    unhold(o, i);
    order_deadline(o);
}
