// Format of the file with the counts of counted.c.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTS_THREADS = 16, COUNTS_FIRST_SIZE = 100000 };

struct counts {
    _Atomic uint32_t pid;                  // 0 if the program does not run yet
    _Atomic uint64_t done[COUNTS_THREADS]; // number of pairs of malloc and free by each thread
};

static inline size_t counts_size(uint64_t pair)
{
    return 16 + pair % 4093;
}
