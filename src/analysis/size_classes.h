// Internal fragmentation by the size classes of allocators, from counts of sizes.
#ifndef HEAPTAPE_ANALYSIS_SIZE_CLASSES_H
#define HEAPTAPE_ANALYSIS_SIZE_CLASSES_H

#include "analysis/usage.h"

// Sizes over `the class before's` up to max_bytes, which use max_bytes each.
struct size_class {
    uint64_t max_bytes; // UINT64_MAX: no limit
    struct usage_count count;
    uint64_t internal_fragmentation_bytes; // over the requested bytes
};

enum { SIZE_CLASSES_MAX = 256 };

struct size_classes {
    size_t n;
    uint64_t internal_fragmentation_bytes;
    struct size_class classes[SIZE_CLASSES_MAX]; // without empty ones
};

// As glibc's malloc has them on 64 bits: chunks are multiples of 16 bytes, 32 at least, 8 bytes of them the header
// (malloc/malloc.c, request2size). Sizes over 1,032, the largest that its thread cache keeps, are counted in powers of two,
// with the internal fragmentation of multiples of 16 bytes.
void size_classes_glibc(const struct usage_sums *s, struct size_classes *c);

// Four for each power of two, 16 bytes apart below 128 and a first one of 8: as jemalloc has them (jemalloc(3), "Size
// classes").
void size_classes_four(const struct usage_sums *s, struct size_classes *c);

// The largest size of the class of `size`, of these; `size` itself where that is above all numbers.
uint64_t size_classes_four_max(uint64_t size);

// What a request of this size adds to reach its class, if it is above 128 bytes and above the next smaller class by no more
// than 16 bytes and an eighth of the distance between the two; else 0.
uint64_t size_classes_above(uint64_t size);

// Powers of two from 8 on: usage_size_class. Without internal fragmentation; all USAGE_CLASSES.
void size_classes_two(const struct usage_sums *s, struct usage_count counts[USAGE_CLASSES]);

// A size and how often it was requested.
struct size_classes_top_size {
    uint64_t size, count;
};

// The `max` sizes with most requests, or with most requested bytes, in falling order. Returns how many; 0 when out of
// memory.
size_t size_classes_top(const struct usage_sums *s, bool by_bytes, struct size_classes_top_size *to,
                        size_t max);

#endif
