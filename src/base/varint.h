// Variable-length integers: LEB128, 7 bits a byte, least significant first; and zigzag for signed values.
#ifndef HEAPTAPE_BASE_VARINT_H
#define HEAPTAPE_BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX_BYTES = 10 };

// Writes `v` at `out`, which has room for VARINT_MAX_BYTES; returns the bytes written, 1 to 10.
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

// Reads from [in, end); returns the bytes used, or 0 when the input is cut off or over-long.
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

// What is read one after the other: whoever reads asks once, at the end or before a number is used, whether all was well.
struct varint_source {
    const uint8_t *at, *end;
    bool bad; // something was cut off, over-long or longer than it may be
};

// The next number; 0 once something was bad.
static inline uint64_t varint_source_number(struct varint_source *from)
{
    uint64_t v = 0;
    size_t n = from->bad ? 0 : varint_get(from->at, from->end, &v);
    from->bad |= n == 0;
    from->at += n;
    return v;
}

// The next text: its length, at most `most`, then its bytes. Borrowed from the input and not ended by a NUL; *n is 0 once
// something was bad.
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

#endif
