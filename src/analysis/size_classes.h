// Internal fragmentation due to allocators' size classes, computed from size counts.
#ifndef HEAPTAPE_ANALYSIS_SIZE_CLASSES_H
#define HEAPTAPE_ANALYSIS_SIZE_CLASSES_H

#include "analysis/usage.h"

// Sizes from just above the previous class up to max_bytes. Each block occupies max_bytes.
struct size_class {
    uint64_t max_bytes; // UINT64_MAX: unlimited
    struct usage_count count;
    uint64_t internal_fragmentation_bytes; // beyond the requested bytes
};

enum { SIZE_CLASSES_MAX = 256 };

struct size_classes {
    size_t n;
    uint64_t internal_fragmentation_bytes;
    struct size_class classes[SIZE_CLASSES_MAX]; // non-empty classes
};

// glibc malloc's size classes on 64-bit systems: a chunk is a multiple of 16 bytes, at least 32,
// including an 8-byte header (malloc/malloc.c, request2size). Sizes above 1,032, the largest in the
// thread cache, are grouped by powers of two, but their internal fragmentation is that of multiples
// of 16 bytes.
void size_classes_glibc(const struct usage_sums *s, struct size_classes *c);

// jemalloc's size classes (jemalloc(3), "Size classes"): four per power of two, multiples of 16
// bytes below 128, and a class of 8 bytes.
void size_classes_four(const struct usage_sums *s, struct size_classes *c);

// Returns the largest size in the jemalloc class that `size` belongs to, or `size` if that
// overflows.
uint64_t size_classes_four_max(uint64_t size);

// Returns the bytes that a request wastes if its size exceeds the next smaller class by at most 16
// bytes and at most an eighth of the distance between classes, otherwise 0. Only for sizes above
// 128 bytes.
uint64_t size_classes_above(uint64_t size);

// Counts the blocks of each power of two from 8 bytes up (usage_size_class). Does not compute
// internal fragmentation.
void size_classes_two(const struct usage_sums *s, struct usage_count counts[USAGE_CLASSES]);

// A size and its number of requests.
struct size_classes_top_size {
    uint64_t size, count;
};

// Stores the `max` sizes with the most requests or, if `by_bytes` is set, the most requested bytes,
// in descending order. Returns the number of sizes, or 0 when out of memory.
size_t size_classes_top(const struct usage_sums *s, bool by_bytes, struct size_classes_top_size *to,
                        size_t max);

#endif
