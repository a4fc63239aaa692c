// Numbers for the live blocks of a process, as a munged log has them: from 1 on, and the number that has been free longest
// is given out first.
#ifndef HEAPTAPE_FORMATS_SLOTS_H
#define HEAPTAPE_FORMATS_SLOTS_H

#include "base/map.h"

#include <stdint.h>

// All zero has no blocks.
struct slots {
    struct map by_block;
    uint64_t *free; // a ring
    size_t first, n_free, capacity;
    uint64_t next; // numbers given out so far
};

void slots_release(struct slots *s);

// The block's number, 0 when it has none.
static inline uint64_t slots_get(const struct slots *s, uint64_t block)
{
    return map_get(&s->by_block, block);
}

// Gives the block a number, which is no longer that of another one. 0 when out of memory.
uint64_t slots_take(struct slots *s, uint64_t block);

// The block's number is free again. 0 or -ENOMEM.
int slots_give(struct slots *s, uint64_t block);

#endif
