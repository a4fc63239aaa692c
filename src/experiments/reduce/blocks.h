// The blocks of a workload, numbered as struct slice_choice numbers them: what a reduction chooses from.
#ifndef HEAPTAPE_REDUCE_BLOCKS_H
#define HEAPTAPE_REDUCE_BLOCKS_H

#include "workload/reader.h"

#include <stdbool.h>

struct reduce_block {
    uint32_t thread, last_thread; // that allocated it; that used it last
    uint32_t site;                // call site, 0: not known
    uint32_t ops;
    uint64_t last_event; // events of the workload up to its last op, that one included
    uint8_t class;       // usage_size_class of its first size
};

struct reduce_blocks {
    struct reduce_block *items;
    size_t n, capacity;
    uint64_t ops;        // of all kinds, PREEXISTING too
    uint64_t events;     // without these
    uint64_t others;     // without a block, and not of threads
    uint64_t thread_ops; // of threads: creation, start and exit
    uint64_t threads;    // numbers of threads
};

// Reads a workload to its end. 0 or a negative errno with the text set. *b is to be released in any case.
int reduce_blocks_read(struct reduce_blocks *b, struct workload_reader *r, struct err *e);
void reduce_blocks_release(struct reduce_blocks *b);

// What groups of blocks have in common.
enum reduce_dimension {
    REDUCE_BY_THREAD, // that allocates them
    REDUCE_BY_SITE,
    REDUCE_BY_CLASS, // of size
    REDUCE_ALONE,    // each block is a group, in the order of allocation
    REDUCE_DIMENSIONS,
};

// Numbers the groups, those with the most ops first: group_of has room for n. How many there are, 0 when out of memory.
size_t reduce_blocks_group(const struct reduce_blocks *b, enum reduce_dimension d,
                           uint32_t *group_of);

#endif
