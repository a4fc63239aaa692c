// Free slots. Each thread has a stack of the slots that it freed, so a reused slot is still in the
// cache, and no other thread competes for it during replay. Surplus slots move in batches to a
// shared pool. A thread that receives a batch depends on the op that freed the last slot of the
// batch.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { POOL_MAX_SLOTS = 4096, POOL_KEPT_SLOTS = POOL_MAX_SLOTS / 2 };

struct pool {
    uint32_t *slots;
    size_t n, capacity;
    // The thread's op after which all of the oldest POOL_KEPT_SLOTS slots had been pushed, or a
    // later op.
    uint64_t lower_op;
};

struct pool_batch {
    struct pool_batch *next;
    uint32_t thread; // thread that freed the slots, no later than in its op `op`
    uint64_t op;
    size_t n;
    uint32_t slots[];
};

// First in, first out: the op of the oldest batch is the most likely to have been replayed already.
struct pool_shared {
    struct pool_batch *first, **last;
};

void pool_shared_init(struct pool_shared *s);
void pool_shared_release(struct pool_shared *s);
void pool_release(struct pool *p);

// Reserves space for one more slot. If the pool is full, moves the older half of its slots to the
// shared pool. `op` is the current op. Returns 0 or -ENOMEM.
int pool_make_room(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves all slots of an ended thread to the shared pool; `op` is the thread's last op. Returns 0 or
// -ENOMEM.
int pool_hand_over(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves a batch from the shared pool to the empty pool. On entry, *op is the current op. On return,
// *thread and *op name the op on which the thread depends. Returns 1, 0 if the shared pool is
// empty, or -ENOMEM.
int pool_adopt(struct pool *p, struct pool_shared *shared, uint32_t *thread, uint64_t *op);

// Pushes a slot that was freed by op `op` of the thread. Call pool_make_room first.
static inline void pool_put(struct pool *p, uint32_t slot, uint64_t op)
{
    p->slots[p->n++] = slot;
    if (p->n == POOL_KEPT_SLOTS)
        p->lower_op = op;
}
