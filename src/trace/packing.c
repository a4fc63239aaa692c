#include "trace/packing.h"

#include "trace/wide.h"

#include <stdbool.h>

enum {
    BLOCK = 1024, // items that are packed at once
    UNKNOWN = PACKING_VALUES,
};
_Static_assert((int)BLOCK <= (int)PACKING_SLACK, "a block of indices fits in the slack");

struct values {
    unsigned n;
    uint8_t value[PACKING_VALUES];
    uint8_t index[256]; // by value; UNKNOWN if the value is not in the list
};

static bool add_value(struct values *v, uint8_t value)
{
    if (v->n == PACKING_VALUES)
        return false;
    v->index[value] = (uint8_t)v->n;
    v->value[v->n++] = value;
    return true;
}

// Writes the indices of BLOCK items. Returns false if the list lacks a value. The compiler
// vectorizes the loops, so for a few values they are faster than a lookup in v->index.
static bool find_indices(const struct values *v, const uint8_t *restrict items,
                         uint8_t *restrict to)
{
    uint8_t all = 0;
    memset(to, UNKNOWN, BLOCK);
    for (unsigned k = 0; k < v->n; k++) {
        for (unsigned i = 0; i < BLOCK; i++)
            to[i] = items[i] == v->value[k] ? (uint8_t)k : to[i];
    }
    for (unsigned i = 0; i < BLOCK; i++)
        all |= to[i];
    return all < UNKNOWN;
}

// Writes the indices of n items. Adds values that are not in the list yet. Returns false if the
// list is full.
static bool put_indices(struct values *v, const uint8_t *items, size_t n, uint8_t *to)
{
    to[n] = 0;
    if (n == BLOCK && find_indices(v, items, to))
        return true;
    for (size_t i = 0; i < n; i++) {
        if (v->index[items[i]] == UNKNOWN && !add_value(v, items[i]))
            return false;
        to[i] = v->index[items[i]];
    }
    return true;
}

// Packs n 4-bit items, two per byte. If n is odd, items[n] must be 0.
static void join_pairs(const uint8_t *restrict items, size_t n, uint8_t *restrict to)
{
    for (size_t i = 0; i < (n + 1) / 2; i++)
        to[i] = (uint8_t)(items[2 * i] | items[2 * i + 1] << 4);
}

// Halves the bits per packed item. The upper half of each item must be 0.
static void halve(unsigned packing, uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        uint8_t joined[BLOCK + 1];
        size_t left = n - at < BLOCK ? n - at : BLOCK;
        joined[left] = 0;
        for (size_t i = 0; i < left; i++) {
            unsigned b = bytes[at + i];
            joined[i] =
                (uint8_t)(packing == 1 ? (b & 3) | (b >> 2 & 12)
                                       : (b & 1) | (b >> 1 & 2) | (b >> 2 & 4) | (b >> 3 & 8));
        }
        join_pairs(joined, left, bytes + at / 2);
    }
}

static unsigned pack(const uint8_t *items, size_t n, uint8_t *to)
{
    struct values v;
    if (n < BLOCK || memcmp(items, items + 1, n - 1) == 0)
        return 0;
    v.n = 0;
    memset(v.index, UNKNOWN, sizeof v.index);
    for (size_t at = 0; at < n; at += BLOCK) {
        uint8_t indices[BLOCK + 1];
        size_t left = n - at < BLOCK ? n - at : BLOCK;
        if (!put_indices(&v, items + at, left, indices))
            return 0;
        join_pairs(indices, left, to + at / 2);
    }
    unsigned packing = 1;
    for (; packing < PACKING_MAX && v.n <= 1u << (8 >> (packing + 1)); packing++)
        halve(packing, to, packing_bytes(packing, n) - (1u << (8 >> packing)));
    uint8_t *list = to + packing_bytes(packing, n) - (1u << (8 >> packing));
    for (unsigned k = 0; k < 1u << (8 >> packing); k++)
        list[k] = k < v.n ? v.value[k] : 0;
    return packing;
}

// Like `pack`, but compiled with AVX-512, including all functions that `pack` calls.
WIDE __attribute__((flatten)) static unsigned pack_wide(const uint8_t *items, size_t n, uint8_t *to)
{
    return pack(items, n, to);
}

unsigned packing_put(const uint8_t *items, size_t n, uint8_t *to)
{
    return wide_is_supported() ? pack_wide(items, n, to) : pack(items, n, to);
}

void packing_get(unsigned packing, const uint8_t *from, size_t n, uint8_t *items)
{
    uint8_t table[256][8];
    unsigned bits = 8u >> packing, per_byte = 1u << packing;
    size_t bytes = packing_bytes(packing, n) - (1u << bits);
    for (unsigned b = 0; b < 256; b++) {
        for (unsigned k = 0; k < per_byte; k++)
            table[b][k] = from[bytes + (b >> (k * bits) & ((1u << bits) - 1))];
    }
    for (size_t i = 0; i < bytes; i++)
        memcpy(items + i * per_byte, table[from[i]], sizeof table[0]);
}
