// Loops of columns.c and packing.c with vectors of 64 bytes (AVX-512). Each function handles the
// first items, and the caller handles the rest.
#pragma once

#include "trace/columns.h"

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))
#else
#define WIDE
#endif

// Returns true if the processor supports the other functions.
bool wide_is_supported(void);

// Destinations of wide_split. `sized` and `plain` need space for one more group of words.
struct wide_split {
    uint8_t *tags;
    uint16_t *stamps;
    uint64_t *sized, *plain; // in: destination; out: end of the words
    uint64_t base;           // subtracted from PLAIN words
    uint64_t events;         // increased by the number of counted events
};

// Counts the events of groups of 8 hot records. Stops before a group with another record. Returns
// the number of records.
uint32_t wide_count(const struct columns *c, const uint64_t *w, uint32_t n, uint64_t *events);

// Splits groups of 8 hot records. Stops before a group with another record. Returns the number of
// records.
uint32_t wide_split(const struct columns *c, const uint64_t *w, uint32_t n, struct wide_split *to);

// Writes bits 19 to 63 of words to six planes of bytes, with the bit `at` of these bits moved to
// the top. Returns the number of words.
uint32_t wide_planes(uint8_t *const *to, const uint64_t *w, uint32_t n, unsigned at);

// Restores the bits that wide_planes wrote to six planes. Returns the number of words.
uint32_t wide_words(const uint8_t *const *from, uint64_t *to, uint32_t n, unsigned at);

// Records to merge, and for each form (COLUMNS_SIZED, COLUMNS_PLAIN): the bodies of the next
// records, and a base that is added to each body. A group of words after the last body may be read.
struct wide_bodies {
    const uint64_t *at[2];
    uint64_t base[2];
    uint32_t left; // number of records
};

// Merges groups of 8 hot records into words and advances the bodies. Stops before a group with
// another record. Returns the number of records.
uint32_t wide_merge(const struct columns *c, const uint8_t *tags, const uint16_t *stamps,
                    struct wide_bodies *b, uint64_t *to);
