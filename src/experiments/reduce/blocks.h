// The blocks of a workload, numbered as in struct slice_choice. A reduction chooses a part of these
// blocks.
#pragma once

#include "workload/reader.h"

#include <stdbool.h>

struct reduce_block {
    uint32_t thread, last_thread; // thread that allocated the block; thread of the last op
    uint32_t site;                // call site, or 0 if unknown
    uint32_t ops;
    // Number of events of the workload up to and including the last op of the block.
    uint64_t last_event;
    uint8_t class; // usage_size_class of the block's first size
};

struct reduce_blocks {
    struct reduce_block *items;
    size_t n, capacity;
    uint64_t ops;        // number of all ops, including PREEXISTING
    uint64_t events;     // number of ops, not counting PREEXISTING
    uint64_t others;     // number of ops without a block, excluding thread ops
    uint64_t thread_ops; // number of thread creations, starts and exits
    uint64_t threads;    // highest thread number plus 1
};

// Reads a whole workload. Returns 0, or a negative errno with the message set. The caller must
// release *b, even after an error.
int reduce_blocks_read(struct reduce_blocks *b, struct workload_reader *r, struct err *e);
void reduce_blocks_release(struct reduce_blocks *b);

// The property that a group's blocks share.
enum reduce_dimension {
    REDUCE_BY_THREAD, // the allocating thread
    REDUCE_BY_SITE,
    REDUCE_BY_CLASS, // the size class
    REDUCE_ALONE,    // each block is a separate group, in the order of allocation
    REDUCE_DIMENSIONS,
};

// Assigns a group number to each block. The group with the most ops has number 0. `group_of` must
// have space for b->n numbers. Returns the number of groups, or 0 when out of memory.
size_t reduce_blocks_group(const struct reduce_blocks *b, enum reduce_dimension d,
                           uint32_t *group_of);
