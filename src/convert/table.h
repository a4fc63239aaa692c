// Which slot the live block at an address has: open addressing with cells of 8 bytes, so that a block costs 11 to 17
// bytes here. A cell holds 32 bits of the address's hash; the address itself stands in the slot, where a match is
// verified. An address may be in the table more than once.
#ifndef HEAPTAPE_CONVERT_TABLE_H
#define HEAPTAPE_CONVERT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE SIZE_MAX

// What is known of a slot's block. 16 bytes: it is one of the two things that cost memory by live block.
struct slot {
    uint64_t address; // 0: no live block
    uint64_t last;    // thread << SLOT_OP_BITS | op: its last use
};

enum { SLOT_OP_BITS = 40, SLOT_MAX_THREADS = 1 << 24 };

// Cells are hash << 32 | slot + 1, or 0. In the order of hashes, but for the probing.
struct table {
    uint64_t *cells;
    size_t n, capacity, limit;
};

void table_release(struct table *t);

// 0 or -ENOMEM. Call before table_put.
int table_grow(struct table *t);

static inline uint32_t table_hash(uint64_t address)
{
    return (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32);
}

static inline size_t table_home(const struct table *t, uint32_t hash)
{
    return (size_t)((uint64_t)hash * t->capacity >> 32);
}

static inline size_t table_next(const struct table *t, size_t i)
{
    return i + 1 == t->capacity ? 0 : i + 1;
}

static inline uint32_t table_slot(const struct table *t, size_t i)
{
    return (uint32_t)t->cells[i] - 1;
}

static inline __attribute__((always_inline)) void table_prefetch(const struct table *t, uint64_t address)
{
    __builtin_prefetch(&t->cells[table_home(t, table_hash(address))]);
}

static inline uint64_t table_home_cell(const struct table *t, uint64_t address)
{
    return t->cells[table_home(t, table_hash(address))];
}

// The first cell from `i` on, in probing order, that holds the address; else TABLE_NONE and *empty is the cell where
// it would be put.
static inline size_t table_seek(const struct table *t, const struct slot *slots, uint64_t address, size_t i,
                                size_t *empty)
{
    uint32_t hash = table_hash(address);
    for (;; i = table_next(t, i)) {
        uint64_t cell = t->cells[i];
        if (!cell) {
            *empty = i;
            return TABLE_NONE;
        }
        if (cell >> 32 == hash && slots[(uint32_t)cell - 1].address == address)
            return i;
    }
}

static inline size_t table_find(const struct table *t, const struct slot *slots, uint64_t address)
{
    size_t empty;
    return t->n ? table_seek(t, slots, address, table_home(t, table_hash(address)), &empty) : TABLE_NONE;
}

// `i` is the empty cell that table_seek found.
static inline void table_put(struct table *t, size_t i, uint64_t address, uint32_t slot)
{
    t->cells[i] = (uint64_t)table_hash(address) << 32 | (slot + 1);
    t->n++;
}

// Empties the cell and moves what follows so that no search stops short of what it seeks.
static inline void table_remove(struct table *t, size_t i)
{
    t->n--;
    for (size_t k = table_next(t, i); t->cells[k]; k = table_next(t, k)) {
        size_t home = table_home(t, (uint32_t)(t->cells[k] >> 32));
        // Does the way from home to k lead past i?
        bool past = i <= k ? home <= i || home > k : home <= i && home > k;
        if (past) {
            t->cells[i] = t->cells[k];
            i = k;
        }
    }
    t->cells[i] = 0;
}

#endif
