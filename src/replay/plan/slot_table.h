// Assigns entries of the player's slot table to blocks. They differ from the workload's slot numbers for two reasons:
// the entries of one cache line belong to one thread, so that threads do not fight over the line; and an entry that one
// thread has freed is not used by another thread without a dependency between the two.
#ifndef HEAPTAPE_PLAN_SLOT_TABLE_H
#define HEAPTAPE_PLAN_SLOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLOT_TABLE_LINE = 8,    // entries in a cache line
    SLOT_TABLE_BATCH = 256, // entries that pass from one thread to another at once
    SLOT_TABLE_SURPLUS = 4 * SLOT_TABLE_BATCH, // entries of a pool that should share some
};

// The free entries of a thread. All zero: it has none.
struct slot_table_pool {
    uint32_t *free;
    size_t n, capacity;
    uint32_t fresh, fresh_end; // unused entries of its newest cache line
};

// Surplus entries of a thread, for any other thread that waits until `from_thread` has published `position`.
struct slot_table_batch {
    uint32_t from_thread;
    uint64_t position;
    size_t n;
    uint32_t entries[];
};

struct slot_table {
    uint64_t limit; // entries in use: the size of the table
    struct slot_table_batch **shared;
    size_t first, n, capacity; // shared[first..n), oldest first
};

void slot_table_init(struct slot_table *t);
void slot_table_release(struct slot_table *t);
void slot_table_pool_release(struct slot_table_pool *p);

// Allocates an entry > 0. If the pool was empty, it may take over a batch: then *batch is not NULL, and the caller
// makes the thread wait for the batch's position and frees the batch. 0 or -ENOMEM.
int slot_table_allocate(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry,
                        struct slot_table_batch **batch);

// As slot_table_allocate, but an entry that was never used before.
int slot_table_allocate_fresh(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry);

// Returns an entry to the pool. 1 when the pool is now so big that it should share some, 0, or -ENOMEM.
int slot_table_free(struct slot_table_pool *p, uint32_t entry);

// Moves the pool's oldest entries (at most SLOT_TABLE_BATCH) to a batch that other threads may take after `position`.
int slot_table_share(struct slot_table *t, struct slot_table_pool *p, uint32_t from_thread,
                     uint64_t position);

#endif
