// The most frequent of a stream of numbers, in constant memory.
#ifndef HEAPTAPE_ANALYSIS_FREQUENT_H
#define HEAPTAPE_ANALYSIS_FREQUENT_H

#include <stddef.h>
#include <stdint.h>

enum {
    FREQUENT_SLOTS = 4096, // a power of two
    FREQUENT_MAX = 3072,   // numbers kept
};

struct frequent_entry {
    uint64_t value, count; // count 0: empty
};

// Misra and Gries' summary (1982), made smaller by the median of its counts when it is full (Anderson et al. 2017). All
// zero is an empty one. A count is too low by at most `missed`, which stays 0 up to FREQUENT_MAX different numbers.
struct frequent {
    size_t n;
    uint64_t missed;
    struct frequent_entry slots[FREQUENT_SLOTS];
};

void frequent_add(struct frequent *f, uint64_t value);

// Copies all entries, in no order, into to[FREQUENT_MAX]. Returns how many.
size_t frequent_entries(const struct frequent *f, struct frequent_entry *to);

#endif
