// Splits integers into two planes of bytes, so that the entropy coder sees similar bytes together.
// The first plane holds the first byte of each value, and the second holds the remaining bytes.
// Layout: docs/reference/workload-format.md, "Columns".
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLANES_MAX_REST = 8, // limit on the remaining bytes of a value
    PLANES_SLACK = 8,    // bytes after the second plane that planes_put may overwrite
};

// Returns the number of remaining bytes of `v`. This is the lowest k for which the value fits in
// k bytes and 7 - k bits of the first byte, or 8 if there is no such k.
static inline unsigned planes_rest_bytes(uint64_t v)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), k = (bits - 1) / 7;
    return k > 8 ? 8 : k;
}

// Writes the first byte at *first and the remaining bytes at *rest, and advances both. *rest must
// have PLANES_SLACK bytes of extra space.
static inline __attribute__((always_inline)) void planes_put(uint8_t **first, uint8_t **rest,
                                                             uint64_t v)
{
    // The size cannot be predicted, so values of one and two bytes share branchless code.
    if (__builtin_expect(v < 0x4000, 1)) {
        unsigned two = v >= 0x80;
        *(*first)++ = (uint8_t)(two ? 0x80 | v >> 8 : v);
        **rest = (uint8_t)v;
        *rest += two;
        return;
    }
    unsigned k = planes_rest_bytes(v);
    *(*first)++ = (uint8_t)(0xff00u >> k | (k < 8 ? v >> 8 * k : 0));
    put_u64(*rest, v);
    *rest += k;
}

// Read position in a column.
struct planes {
    const uint8_t *first, *first_end;
    const uint8_t *rest, *rest_end;
};

static inline bool planes_get_rest(struct planes *p, unsigned a, uint64_t *v)
{
    unsigned k = (unsigned)__builtin_clz(~(a << 24));
    size_t left = (size_t)(p->rest_end - p->rest);
    if (left < k)
        return false;
    uint64_t r = 0;
    if (__builtin_expect(left >= 8, 1))
        r = get_u64(p->rest) & ~0ull >> (64 - 8 * k);
    else
        memcpy(&r, p->rest, k);
    if (k < 7)
        r |= (uint64_t)(a & 0x7fu >> k) << 8 * k;
    p->rest += k;
    *v = r;
    return true;
}

// Reads the next value. Returns false at the end of the column.
static inline bool planes_get(struct planes *p, uint64_t *v)
{
    if (p->first == p->first_end)
        return false;
    unsigned a = *p->first++;
    if (__builtin_expect(a < 0x80, 1)) {
        *v = a;
        return true;
    }
    return planes_get_rest(p, a, v);
}

static inline bool planes_at_end(const struct planes *p)
{
    return p->first == p->first_end && p->rest == p->rest_end;
}
