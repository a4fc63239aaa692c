// Variable-length integers: LEB128 with 7 bits per byte, least significant first, and zigzag
// encoding of signed values.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX_BYTES = 10 };

// Encodes `v` at `out`, which has space for VARINT_MAX_BYTES bytes. Returns the length, 1 to 10.
static inline size_t varint_put(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        out[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    out[n++] = (uint8_t)v;
    return n;
}

// Decodes the number at `in`, without reading past `end`. Returns its length in bytes, or 0 if the
// number is truncated or overlong.
static inline size_t varint_get(const uint8_t *in, const uint8_t *end, uint64_t *v)
{
    uint64_t r = 0;
    for (size_t n = 0; n < VARINT_MAX_BYTES && in + n < end; n++) {
        r |= (uint64_t)(in[n] & 0x7f) << (7 * n);
        if (!(in[n] & 0x80)) {
            if (n == VARINT_MAX_BYTES - 1 && in[n] > 1)
                return 0;
            *v = r;
            return n + 1;
        }
    }
    return 0;
}

// Decodes the number at *at and advances *at. Returns false if the number is invalid.
static inline bool varint_next(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
    size_t n = varint_get(*at, end, v);
    *at += n;
    return n > 0;
}

// Sequential decoder. Callers need not check `bad` after each read, only after the last read or
// before using a number.
struct varint_source {
    const uint8_t *at, *end;
    bool bad; // a number or string was truncated or too long
};

// Decodes a number and returns it. If the number is invalid, sets `bad`. If `bad` is set, returns
// 0.
static inline uint64_t varint_source_number(struct varint_source *from)
{
    uint64_t v = 0;
    size_t n = from->bad ? 0 : varint_get(from->at, from->end, &v);
    from->bad |= n == 0;
    from->at += n;
    return v;
}

// Decodes a string, which is stored as a varint with its length, then its bytes. Returns the bytes,
// which are borrowed and not NUL-terminated, and stores their number in *n. If the string is
// truncated or longer than `most` bytes, sets `bad`. If `bad` is set, *n is 0.
static inline const char *varint_source_text(struct varint_source *from, size_t most, size_t *n)
{
    uint64_t bytes = varint_source_number(from);
    from->bad |= bytes > most || bytes > (size_t)(from->end - from->at);
    const char *text = (const char *)from->at;
    *n = from->bad ? 0 : (size_t)bytes;
    from->at += *n;
    return text;
}

static inline uint64_t zigzag_put(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t zigzag_get(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}
