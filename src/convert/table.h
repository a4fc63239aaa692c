// Hash table from the address of a live block to its slot. A bucket is a cache line, so a lookup
// costs one cache miss for the bucket and one for the slot, with hardly any mispredicted branches.
// A cell holds 16 bits of the hash; a match is verified against the address in the slot. Each block
// takes 8 to 12 bytes. An address may appear in the table more than once.
#ifndef HEAPTAPE_CONVERT_TABLE_H
#define HEAPTAPE_CONVERT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define TABLE_NONE SIZE_MAX

// Block of a slot. The struct has only 16 bytes, because memory use grows with the number of live
// blocks.
struct table_block {
    uint64_t address; // 0 if the slot has no live block
    uint64_t last;    // last use: thread << TABLE_OP_BITS | op
};

enum { TABLE_OP_BITS = 40, TABLE_MAX_THREADS = 1 << 24 };

enum { TABLE_CELLS = 10, TABLE_BUCKET_BYTES = 64 };

struct table_bucket {
    uint16_t tags[TABLE_CELLS]; // 0 if the cell is empty
    // Number of cells in later buckets whose home is this bucket or an earlier bucket.
    uint32_t passed;
    uint32_t slots[TABLE_CELLS];
};
_Static_assert(sizeof(struct table_bucket) == TABLE_BUCKET_BYTES, "a bucket is a cache line");

// Cells are numbered bucket * TABLE_CELLS + index in the bucket.
struct table {
    struct table_bucket *buckets;
    // Number of used cells, number of buckets, and number of used cells at which the table must
    // grow.
    size_t n, n_buckets, limit;
    uint64_t seed; // secret number from base/seed.h, because a file may choose colliding addresses
};

void table_release(struct table *t);

// Enlarges the table, using the addresses in `slots`. Call before table_put if `n` has reached
// `limit`. Returns 0 or -ENOMEM.
int table_grow(struct table *t, const struct table_block *slots);

static inline uint64_t table_hash(const struct table *t, uint64_t address)
{
    return address * t->seed;
}

static inline size_t table_home(const struct table *t, uint64_t hash)
{
    return (size_t)((hash >> 32) * t->n_buckets >> 32);
}

static inline uint16_t table_tag(uint64_t hash)
{
    uint16_t tag = (uint16_t)(hash >> 16);
    return tag ? tag : 1;
}

static inline size_t table_next(const struct table *t, size_t bucket)
{
    return bucket + 1 == t->n_buckets ? 0 : bucket + 1;
}

static inline uint32_t table_slot(const struct table *t, size_t cell)
{
    return t->buckets[cell / TABLE_CELLS].slots[cell % TABLE_CELLS];
}

static inline __attribute__((always_inline)) void table_prefetch(const struct table *t,
                                                                 uint64_t address)
{
    __builtin_prefetch(&t->buckets[table_home(t, table_hash(t, address))], 1);
}

// Returns a mask of the cells that have the tag.
static inline unsigned table_match(const struct table_bucket *b, uint16_t tag)
{
    const unsigned all = (1u << TABLE_CELLS) - 1;
#ifdef __SSE2__
    const __m128i *at = (const __m128i *)(const void *)b;
    __m128i want = _mm_set1_epi16((short)tag);
    __m128i low = _mm_cmpeq_epi16(_mm_load_si128(at), want),
            high = _mm_cmpeq_epi16(_mm_load_si128(at + 1), want);
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high)) & all;
#else
    unsigned m = 0;
    for (unsigned i = 0; i < TABLE_CELLS; i++)
        m |= (unsigned)(b->tags[i] == tag) << i;
    return m & all;
#endif
}

// Returns the next cell that holds the address, or TABLE_NONE. Searches the cells of `bucket`
// selected by `mask`, then the following buckets.
static inline size_t table_seek(const struct table *t, const struct table_block *slots,
                                uint64_t address, size_t bucket, unsigned mask)
{
    uint16_t tag = table_tag(table_hash(t, address));
    for (size_t left = t->n_buckets;; mask = ~0u) {
        const struct table_bucket *b = &t->buckets[bucket];
        for (unsigned m = table_match(b, tag) & mask; m; m &= m - 1) {
            unsigned k = (unsigned)__builtin_ctz(m);
            if (__builtin_expect(slots[b->slots[k]].address == address, 1))
                return bucket * TABLE_CELLS + k;
        }
        if (__builtin_expect(!b->passed, 1) || --left == 0)
            return TABLE_NONE;
        bucket = table_next(t, bucket);
    }
}

static inline size_t table_find(const struct table *t, const struct table_block *slots,
                                uint64_t address)
{
    return table_seek(t, slots, address, table_home(t, table_hash(t, address)), ~0u);
}

// Returns the next cell after `cell` that holds the address, or TABLE_NONE.
static inline size_t table_find_next(const struct table *t, const struct table_block *slots,
                                     uint64_t address, size_t cell)
{
    return table_seek(t, slots, address, cell / TABLE_CELLS, ~0u << (cell % TABLE_CELLS) << 1);
}

// Inserts the address. Requires n < limit.
static inline void table_put(struct table *t, uint64_t address, uint32_t slot)
{
    uint64_t hash = table_hash(t, address);
    struct table_bucket *b = &t->buckets[table_home(t, hash)];
    unsigned empty = table_match(b, 0);
    while (__builtin_expect(!empty, 0)) {
        b->passed++;
        b = &t->buckets[table_next(t, (size_t)(b - t->buckets))];
        empty = table_match(b, 0);
    }
    unsigned k = (unsigned)__builtin_ctz(empty);
    b->tags[k] = table_tag(hash);
    b->slots[k] = slot;
    t->n++;
}

// Empties a cell, which must hold the address.
static inline void table_remove(struct table *t, uint64_t address, size_t cell)
{
    size_t bucket = cell / TABLE_CELLS;
    t->buckets[bucket].tags[cell % TABLE_CELLS] = 0;
    t->n--;
    for (size_t i = table_home(t, table_hash(t, address)); __builtin_expect(i != bucket, 0);
         i = table_next(t, i))
        t->buckets[i].passed--;
}

#endif
