// Free slots. Each thread has a stack of the slots that it freed: a reused slot is the hottest one,
// and no other thread competes for it during replay. Surplus slots move in batches to a shared
// pool. A thread that receives a batch depends on the op that freed its last slot.
#ifndef HEAPTAPE_CONVERT_POOL_H
#define HEAPTAPE_CONVERT_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { POOL_MAX_SLOTS = 4096, POOL_KEPT_SLOTS = POOL_MAX_SLOTS / 2 };

struct pool {
    uint32_t *slots;
    size_t n, capacity;
    uint64_t lower_op; // op of the thread at or after the last push to the lowest POOL_KEPT_SLOTS
};

struct pool_batch {
    struct pool_batch *next;
    uint32_t thread; // that freed the slots, the last one by `op`
    uint64_t op;
    size_t n;
    uint32_t slots[];
};

// First in, first out: the op of the oldest batch is the most likely to have been replayed.
struct pool_shared {
    struct pool_batch *first, **last;
};

void pool_shared_init(struct pool_shared *s);
void pool_shared_release(struct pool_shared *s);
void pool_release(struct pool *p);

// Reserves room for one more slot. If the pool is full, moves its older half to the shared pool.
// `op` is the current op. Returns 0 or -ENOMEM.
int pool_make_room(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves all slots of a thread that has ended to the shared pool; `op` is the thread's last op.
// Returns 0 or -ENOMEM.
int pool_hand_over(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves a batch from the shared pool to the empty pool. *op is the current op; on return *thread
// and *op name the op to depend on. Returns 1, 0 if the shared pool is empty, or -ENOMEM.
int pool_adopt(struct pool *p, struct pool_shared *shared, uint32_t *thread, uint64_t *op);

// Requires pool_make_room.
static inline void pool_put(struct pool *p, uint32_t slot, uint64_t op)
{
    p->slots[p->n++] = slot;
    if (p->n == POOL_KEPT_SLOTS)
        p->lower_op = op;
}

#endif
