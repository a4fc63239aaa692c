// Hash table from the address of a live block to its slot. A bucket is a cache line, so a lookup
// costs one cache miss for the bucket and one for the slot, with hardly any mispredicted branches.
// A cell holds 16 bits of the hash; a match is verified against the address in the slot. Each block
// takes 11 to 15 bytes. An address may appear in the table more than once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

// Block of a slot. The struct has only 16 bytes, because memory use grows with the number of live
// blocks.
struct table_block {
    uint64_t address; // 0 if the slot has no live block
    uint64_t last;    // last use: thread << TABLE_OP_BITS | op
};

enum { TABLE_OP_BITS = 40, TABLE_MAX_THREADS = 1 << 24 };

enum { TABLE_CELLS = 8, TABLE_BUCKET_BYTES = 64 };

struct table_bucket {
    // 0 if the cell is empty. The array is always stored as a whole. An address is often used again
    // by the next events, which load the whole array, and a CPU cannot forward a store to a wider
    // load.
    _Alignas(TABLE_BUCKET_BYTES) uint16_t tags[TABLE_CELLS];
    // Number of cells that are in later buckets although their home is this bucket or an earlier
    // bucket.
    uint32_t passed;
    uint32_t slots[TABLE_CELLS];
};
_Static_assert(sizeof(struct table_bucket) == TABLE_BUCKET_BYTES, "a bucket is a cache line");

// A cell is a pointer to an element of table_bucket.slots.
struct table {
    struct table_bucket *buckets;
    // Number of used cells, number of buckets, and number of used cells at which the table must
    // grow.
    size_t n, n_buckets, limit;
    uint64_t seed; // secret number from base/seed.h, because a file may contain colliding addresses
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

// Home bucket and tag of an address.
struct table_place {
    struct table_bucket *home;
    uint16_t tag;
};

static inline __attribute__((always_inline)) struct table_place
table_place_of(const struct table *t, uint64_t address)
{
    uint64_t hash = table_hash(t, address);
    return (struct table_place){&t->buckets[table_home(t, hash)], table_tag(hash)};
}

static inline struct table_bucket *table_next(const struct table *t, struct table_bucket *b)
{
    return b + 1 == t->buckets + t->n_buckets ? t->buckets : b + 1;
}

static inline struct table_bucket *table_bucket_of(const uint32_t *cell)
{
    return (struct table_bucket *)((uintptr_t)cell / TABLE_BUCKET_BYTES * TABLE_BUCKET_BYTES);
}

// Returns a mask of the cells that have the tag.
static inline unsigned table_match(const struct table_bucket *b, uint16_t tag)
{
#ifdef __SSE2__
    __m128i equal = _mm_cmpeq_epi16(*(const __m128i *)(const void *)b, _mm_set1_epi16((short)tag));
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
#else
    unsigned m = 0;
    for (unsigned i = 0; i < TABLE_CELLS; i++)
        m |= (unsigned)(b->tags[i] == tag) << i;
    return m;
#endif
}

static inline void table_set_tag(struct table_bucket *b, size_t cell, uint16_t tag)
{
#ifdef __SSE2__
    static const uint16_t cells[2 * TABLE_CELLS] = {[TABLE_CELLS] = 0xffff};
    __m128i *tags = (__m128i *)(void *)b;
    __m128i mask = _mm_loadu_si128((const __m128i *)(const void *)(cells + TABLE_CELLS - cell));
    __m128i others = _mm_andnot_si128(mask, *tags);
    *tags = _mm_or_si128(others, _mm_and_si128(mask, _mm_set1_epi16((short)tag)));
#else
    b->tags[cell] = tag;
#endif
}

// Returns the next cell that holds the address, or NULL. Searches the cells of `b` selected by
// `mask`, then the following buckets.
static inline uint32_t *table_seek(const struct table *t, const struct table_block *slots,
                                   uint64_t address, uint16_t tag, struct table_bucket *b,
                                   unsigned mask)
{
    for (size_t left = t->n_buckets;; mask = ~0u) {
        for (unsigned m = table_match(b, tag) & mask; m; m &= m - 1) {
            uint32_t *cell = &b->slots[__builtin_ctz(m)];
            if (__builtin_expect(slots[*cell].address == address, 1))
                return cell;
        }
        if (__builtin_expect(!b->passed, 1) || --left == 0)
            return NULL;
        b = table_next(t, b);
    }
}

static inline uint32_t *table_find(const struct table *t, const struct table_block *slots,
                                   uint64_t address)
{
    struct table_place at = table_place_of(t, address);
    return table_seek(t, slots, address, at.tag, at.home, ~0u);
}

// Returns the next cell after `cell` that holds the address, or NULL.
static inline uint32_t *table_find_next(const struct table *t, const struct table_block *slots,
                                        uint64_t address, const uint32_t *cell)
{
    struct table_bucket *b = table_bucket_of(cell);
    uint16_t tag = table_tag(table_hash(t, address));
    return table_seek(t, slots, address, tag, b, ~0u << (cell - b->slots) << 1);
}

// Inserts a slot at the place of its address. Requires n < limit.
static inline __attribute__((always_inline)) void
table_put_at(struct table *t, const struct table_place *at, uint32_t slot)
{
    struct table_bucket *b = at->home;
    unsigned empty = table_match(b, 0);
    while (__builtin_expect(!empty, 0)) {
        b->passed++;
        b = table_next(t, b);
        empty = table_match(b, 0);
    }
    unsigned k = (unsigned)__builtin_ctz(empty);
    table_set_tag(b, k, at->tag);
    b->slots[k] = slot;
    t->n++;
}

static inline void table_put(struct table *t, uint64_t address, uint32_t slot)
{
    struct table_place at = table_place_of(t, address);
    table_put_at(t, &at, slot);
}

// Empties a cell. `home` is the home bucket of the cell's address.
static inline __attribute__((always_inline)) void
table_remove_at(struct table *t, struct table_bucket *home, const uint32_t *cell)
{
    struct table_bucket *b = table_bucket_of(cell);
    table_set_tag(b, (size_t)(cell - b->slots), 0);
    t->n--;
    for (; __builtin_expect(home != b, 0); home = table_next(t, home))
        home->passed--;
}

static inline void table_remove(struct table *t, uint64_t address, const uint32_t *cell)
{
    table_remove_at(t, table_place_of(t, address).home, cell);
}
