// What a truth program says it has done: struct truth_call after struct truth_call, thread by thread. Which block a call
// meant the program knows itself: from numbers that it writes into its blocks, and hands over with them.
#ifndef HEAPTAPE_TESTS_TRUTH_LOG_H
#define HEAPTAPE_TESTS_TRUTH_LOG_H

#include <stdint.h>

enum {
    // Sizes that nothing but the programs' own calls have: the first one is the thread's name.
    TRUTH_NAME_SIZE = 700001, // + number of the thread
    // One size class of all allocators in question, so that addresses are used again at once.
    TRUTH_MIN_SIZE = 1001,
    TRUTH_SIZES = 16,
    TRUTH_BIG_MIN_SIZE = 2601, // the class to which reallocs move
};

struct truth_call {
    uint32_t thread;
    uint32_t kind;  // of the event table
    uint64_t block; // number of the block used
    uint64_t size;  // asked for
};

// A thread's first call takes a block of TRUTH_NAME_SIZE + its number.
#endif
