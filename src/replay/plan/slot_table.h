// Assigns entries of the player's slot table to blocks. Entries differ from the workload's slots
// for two reasons. First, all entries in a cache line belong to one thread, which avoids false
// sharing. Second, a thread uses an entry freed by another thread only after a dependency on that
// thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    SLOT_TABLE_LINE = 8,    // number of entries in a cache line
    SLOT_TABLE_BATCH = 256, // number of entries that move from one thread to another at a time
    SLOT_TABLE_SURPLUS = 4 * SLOT_TABLE_BATCH, // minimum size of a pool that shares entries
};

// A thread's free entries. A zeroed struct is valid.
struct slot_table_pool {
    uint32_t *free;
    size_t n, capacity;
    uint32_t fresh, fresh_end; // unused entries in the newest cache line
};

// Surplus entries of `from_thread`. The entries are available to a thread that waits until
// `from_thread` has published `position`.
struct slot_table_batch {
    uint32_t from_thread;
    uint64_t position;
    size_t n;
    uint32_t entries[];
};

struct slot_table {
    uint64_t limit; // size of the table
    struct slot_table_batch **shared;
    size_t first, n, capacity; // the shared batches are shared[first..n), oldest first
};

void slot_table_init(struct slot_table *t);
void slot_table_release(struct slot_table *t);
void slot_table_pool_release(struct slot_table_pool *p);

// Allocates an entry, which is above 0. If the pool is empty, it may receive a batch from another
// thread. In that case, *batch is not NULL, and the caller must make the thread wait for the
// batch's position, and free the batch. Returns 0, or -ENOMEM.
int slot_table_allocate(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry,
                        struct slot_table_batch **batch);

// Allocates an entry that has never been used. Returns 0, or -ENOMEM.
int slot_table_allocate_fresh(struct slot_table *t, struct slot_table_pool *p, uint32_t *entry);

// Returns an entry to the pool. Returns 1 if the pool should share entries, 0 if it should not, or
// -ENOMEM.
int slot_table_free(struct slot_table_pool *p, uint32_t entry);

// Moves up to SLOT_TABLE_BATCH of the pool's oldest entries to a batch that other threads may use
// after `position`. Returns 0, or -ENOMEM.
int slot_table_share(struct slot_table *t, struct slot_table_pool *p, uint32_t from_thread,
                     uint64_t position);
