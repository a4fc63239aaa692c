// Free slots. Each thread has a stack of those it freed, so that a slot used again is the hottest one and no other
// thread can race for it when the workload is replayed. What a thread has far too many of goes to a pool that all share,
// in batches; the thread that gets a batch waits for the op that freed the last of it.
#ifndef HEAPTAPE_CONVERT_POOL_H
#define HEAPTAPE_CONVERT_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { POOL_MAX_SLOTS = 4096, POOL_KEPT_SLOTS = POOL_MAX_SLOTS / 2 };

struct pool {
    uint32_t *slots;
    size_t n, capacity;
    uint64_t
        lower_op; // the thread's op that put the uppermost of the POOL_KEPT_SLOTS lowest, or a later one
};

struct pool_batch {
    struct pool_batch *next;
    uint32_t thread; // that freed the slots, the last one with …
    uint64_t op;
    size_t n;
    uint32_t slots[];
};

// First in, first out: the oldest batch is the one whose op has most likely been played.
struct pool_shared {
    struct pool_batch *first, **last;
};

void pool_shared_init(struct pool_shared *s);
void pool_shared_release(struct pool_shared *s);
void pool_release(struct pool *p);

// Makes room for one more slot and moves the older half of a pool that is full to the shared one. `op` is the one under
// work. 0 or -ENOMEM.
int pool_make_room(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves all of an ended thread's pool to the shared one; `op` is the thread's last. 0 or -ENOMEM.
int pool_hand_over(struct pool *p, struct pool_shared *shared, uint32_t thread, uint64_t op);

// Moves a batch from the shared pool to the empty pool. `*op` is the op under work and becomes the one to depend on,
// with *thread. 1; 0 when there is none; -ENOMEM.
int pool_adopt(struct pool *p, struct pool_shared *shared, uint32_t *thread, uint64_t *op);

// There is room: pool_make_room was called.
static inline void pool_put(struct pool *p, uint32_t slot, uint64_t op)
{
    p->slots[p->n++] = slot;
    if (p->n == POOL_KEPT_SLOTS)
        p->lower_op = op;
}

#endif
