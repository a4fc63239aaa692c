// Blocks of the program's own pools. These blocks lie inside blocks and mappings that are recorded
// separately, and they have no slots. Their sizes and call sites are stored here, for the ops that
// free them.
#include "convert/order/order_private.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

// A block of a pool. Index 0 means that there is no block. Free entries are linked through `next`.
struct order_pool_block {
    uint64_t address, size, site;
    uint32_t pool; // number of the pool
    uint32_t next, before;
};

void order_pools_release(struct order_pools *p)
{
    map_release(&p->by_address);
    map_release(&p->numbers);
    free(p->blocks);
    free(p->first);
    *p = (struct order_pools){0};
}

// Returns the number of the pool at this address, counting from 1, or 0 when out of memory.
static uint32_t pool_number(struct order_pools *p, uint64_t address)
{
    uint64_t number = map_get(&p->numbers, address);
    if (number)
        return (uint32_t)number;
    if (HT_EXTEND(&p->first, &p->n_first, &p->first_capacity, p->n_pools + 2) < 0 ||
        map_put(&p->numbers, address, p->n_pools + 1) < 0)
        return 0;
    return (uint32_t)++p->n_pools;
}

static uint32_t new_block(struct order_pools *p)
{
    uint32_t at = p->unused;
    if (at) {
        p->unused = p->blocks[at].next;
        return at;
    }
    size_t n = p->n_blocks ? p->n_blocks : 1;
    if (n > UINT32_MAX - 1 || HT_EXTEND(&p->blocks, &p->n_blocks, &p->blocks_capacity, n + 1) < 0)
        return 0;
    return (uint32_t)n;
}

static int add_block(struct order_pools *p, uint64_t address, uint64_t size, uint32_t pool,
                     uint64_t site)
{
    uint32_t at = new_block(p), next = p->first[pool];
    if (!at || map_put(&p->by_address, address, at) < 0)
        return -ENOMEM;
    p->blocks[at] = (struct order_pool_block){address, size, site, pool, next, 0};
    if (next)
        p->blocks[next].before = at;
    p->first[pool] = at;
    return 0;
}

static void remove_block(struct order_pools *p, uint32_t at)
{
    struct order_pool_block *b = &p->blocks[at];
    map_remove(&p->by_address, b->address);
    if (b->before)
        p->blocks[b->before].next = b->next;
    else
        p->first[b->pool] = b->next;
    if (b->next)
        p->blocks[b->next].before = b->before;
    *b = (struct order_pool_block){.next = p->unused};
    p->unused = at;
}

// Removes the block at this address, if known, and copies its size and call site to the op.
static void release_block(struct order_pools *p, uint64_t address, struct workload_op *op)
{
    uint32_t at = (uint32_t)map_get(&p->by_address, address);
    if (!at)
        return;
    op->size = p->blocks[at].size;
    op->value = p->blocks[at].site;
    op->align = p->blocks[at].pool;
    remove_block(p, at);
}

static int allocate_block(struct order *o, struct order_thread *t, struct workload_op *op,
                          uint64_t address)
{
    struct order_pools *p = &o->pools;
    int rc = 0;
    if (map_get(&p->by_address, address)) {
        // The previous block at this address was freed without a recorded call.
        struct workload_op gone = {
            .kind = HT_POOL_FREE, .stamp = op->stamp, .slot = WORKLOAD_NO_SLOT};
        release_block(p, address, &gone);
        rc = order_emit_apart(o, t, &gone, address);
    }
    if (!address)
        op->flags = WORKLOAD_FAILED;
    else if (rc == 0)
        rc = add_block(p, address, op->size, (uint32_t)op->align, op->value);
    return rc < 0 ? rc : order_emit(o, t, op);
}

int order_pool(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t ptr,
               uint64_t result)
{
    struct order_pools *p = &o->pools;
    op->align = pool_number(p, op->align);
    if (!op->align)
        return -ENOMEM;
    if (op->kind == HT_POOL_ALLOC)
        return allocate_block(o, t, op, result);
    if (op->kind == HT_POOL_FREE)
        release_block(p, ptr, op);
    for (uint32_t at; op->kind == HT_POOL_RESET && (at = p->first[op->align]);) {
        op->size += p->blocks[at].size;
        remove_block(p, at);
    }
    return order_emit(o, t, op);
}
