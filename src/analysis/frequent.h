// The most frequent values in a stream, found in constant memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    FREQUENT_SLOTS = 4096, // a power of two
    FREQUENT_MAX = 3072,   // number of values kept
};

struct frequent_entry {
    uint64_t value, count; // a count of 0 means that the entry is empty
};

// Misra-Gries summary (1982). When the summary is full, all counts are reduced by the median count
// (Anderson et al. 2017). An all-zero struct is empty. Counts may be too low by up to `missed`,
// which is 0 for up to FREQUENT_MAX distinct values.
struct frequent {
    size_t n;
    uint64_t missed;
    struct frequent_entry slots[FREQUENT_SLOTS];
};

void frequent_add(struct frequent *f, uint64_t value);

// Copies all entries, in no particular order, to to[FREQUENT_MAX]. Returns the number of entries.
size_t frequent_entries(const struct frequent *f, struct frequent_entry *to);
