// Internal fragmentation due to allocators' size classes, computed from size counts.
#pragma once

#include "analysis/usage.h"

// A size class: sizes from just above the previous class up to max_bytes. Each block occupies
// max_bytes.
struct size_class {
    uint64_t max_bytes; // UINT64_MAX if unlimited
    struct usage_count count;
    uint64_t internal_fragmentation_bytes; // bytes beyond the requested bytes
};

enum { SIZE_CLASSES_MAX = 256 };

struct size_classes {
    size_t n;
    uint64_t internal_fragmentation_bytes;
    struct size_class classes[SIZE_CLASSES_MAX]; // classes that contain blocks
};

// glibc malloc's size classes on 64-bit systems. A chunk is a multiple of 16 bytes and at least 32
// bytes, including an 8-byte header (malloc/malloc.c, request2size). Sizes above 1,032 bytes, the
// largest size in the thread cache, are grouped by powers of two. Their internal fragmentation is
// still computed for multiples of 16 bytes.
void size_classes_glibc(const struct usage_sums *s, struct size_classes *c);

// jemalloc's size classes (jemalloc(3), "Size classes"): a class of 8 bytes, multiples of 16 bytes
// up to 128, and four classes per power of two.
void size_classes_four(const struct usage_sums *s, struct size_classes *c);

// Returns the largest size in the jemalloc class of `size`, or `size` if the largest size
// overflows.
uint64_t size_classes_four_max(uint64_t size);

// If a request's size is just above a class, returns the bytes that the request wastes. Just above
// means by at most 16 bytes, and by at most an eighth of the distance to the next class. Otherwise,
// returns 0. Only for sizes above 128 bytes.
uint64_t size_classes_above(uint64_t size);

// Counts the blocks of each power of two from 8 bytes up (usage_size_class). Does not compute
// internal fragmentation.
void size_classes_two(const struct usage_sums *s, struct usage_count counts[USAGE_CLASSES]);

// A size and its number of requests.
struct size_classes_top_size {
    uint64_t size, count;
};

// Stores the `max` sizes with the most requests in descending order. If `by_bytes` is set, stores
// the sizes with the most requested bytes. Returns the number of sizes, or 0 when out of memory.
size_t size_classes_top(const struct usage_sums *s, bool by_bytes, struct size_classes_top_size *to,
                        size_t max);
