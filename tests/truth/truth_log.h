// Format of the log of a truth program: an array of struct truth_call, ordered by thread. The
// program identifies blocks by numbers that it writes into them.
#pragma once

#include <stdint.h>

enum {
    // Sizes that no other code uses. The size of a thread's first block is the thread's name.
    TRUTH_NAME_SIZE = 700001, // plus the number of the thread
    // Sizes from here on are in one size class in all tested allocators, so that addresses are soon
    // reused.
    TRUTH_MIN_SIZE = 1001,
    TRUTH_SIZES = 16,
    TRUTH_BIG_MIN_SIZE = 2601, // size class of resized blocks
    // Blocks that glibc maps, and moves with mremap(2).
    TRUTH_MAPPED_MIN_SIZE = 200001,
    TRUTH_GROWN_MIN_SIZE = 400001,
    // Sizes of blocks that may be 16 bytes apart. Only tracked if the log contains such a size.
    TRUTH_SMALL_MIN_SIZE = 9,
    TRUTH_SMALL_SIZES = 8,
};

struct truth_call {
    uint32_t thread;
    uint32_t kind;  // number of the kind in the event table
    uint64_t block; // number of the block
    uint64_t size;  // requested size
};

// A thread first allocates a block of TRUTH_NAME_SIZE plus its number.
