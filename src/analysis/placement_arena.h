// Address space for placing each block at the lowest address with enough space.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Free runs of granules in the part of the address space that a node of the tree covers.
struct placement_arena_node {
    uint32_t prefix, suffix, longest;
};

// An address space in which blocks are placed. A zeroed struct is an empty arena.
struct placement_arena {
    uint64_t *words; // bit i of word w is set if granule 64 w + i is free
    // Binary tree over the words. The children of node i are nodes 2 i and 2 i + 1. The leaves
    // start at node n_words.
    struct placement_arena_node *nodes;
    size_t n_words;      // a power of two
    uint64_t used_pages; // number of pages that hold part of a block
};

enum {
    PLACEMENT_ARENA_PAGE_GRANULES = 256, // 4 KiB
    PLACEMENT_ARENA_MAX_WORDS = 1 << 25, // 32 GiB
};

void placement_arena_release(struct placement_arena *a);

// Places a block and sets *at to its first granule. Returns 0, -ENOMEM, or -EFBIG if the arena
// would exceed PLACEMENT_ARENA_MAX_WORDS.
int placement_arena_put(struct placement_arena *a, uint32_t granules, uint64_t *at);
void placement_arena_free(struct placement_arena *a, uint64_t at, uint32_t granules);

// If the granules after a block are free, marks them as used and returns true. Otherwise, returns
// false.
bool placement_arena_extend(struct placement_arena *a, uint64_t at, uint32_t granules);

// Returns the end of the last block, in granules.
uint64_t placement_arena_end(const struct placement_arena *a);
