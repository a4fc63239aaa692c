#include "tables/parquet_encode.h"

#include "base/bytes.h"
#include "base/varint.h"

#include <errno.h>

// A block of deltas consists of four miniblocks, each with its own bit width.
enum {
    BLOCK = 128,
    MINIBLOCKS = 4,
    MINIBLOCK = BLOCK / MINIBLOCKS,
    BLOCK_BYTES = VARINT_MAX_BYTES + MINIBLOCKS + BLOCK * 8
};

static unsigned bit_width(uint64_t v)
{
    return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

// Packs 32 values of `width` bits each, least significant bits first. Returns the end of the
// output.
static uint8_t *pack_miniblock(uint8_t *to, const uint64_t *values, unsigned width)
{
    uint64_t word = 0;
    unsigned fill = 0;
    for (unsigned i = 0; width && i < MINIBLOCK; i++) {
        word |= values[i] << fill;
        fill += width;
        if (fill >= 64) {
            put_u64(to, word);
            to += 8;
            fill -= 64;
            word = fill ? values[i] >> (width - fill) : 0;
        }
    }
    // 32 values of equal width fill a multiple of 4 bytes.
    if (fill) {
        put_u32(to, (uint32_t)word);
        to += 4;
    }
    return to;
}

// Encodes up to 128 deltas. Pads the block with the minimum, so that a miniblock of padding has a
// width of 0.
static uint8_t *put_block(uint8_t *to, const int64_t *values, size_t n)
{
    uint64_t deltas[BLOCK];
    int64_t min = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        deltas[i] = (uint64_t)values[i] - (uint64_t)values[i - 1];
        min = (int64_t)deltas[i] < min ? (int64_t)deltas[i] : min;
    }
    for (size_t i = n; i < BLOCK; i++)
        deltas[i] = (uint64_t)min;
    to += varint_put(to, zigzag_put(min));
    uint8_t *widths = to;
    to += MINIBLOCKS;
    for (unsigned m = 0; m < MINIBLOCKS; m++) {
        uint64_t *at = deltas + (size_t)m * MINIBLOCK, all = 0;
        for (unsigned i = 0; i < MINIBLOCK; i++)
            all |= at[i] -= (uint64_t)min;
        widths[m] = (uint8_t)bit_width(all);
        to = pack_miniblock(to, at, widths[m]);
    }
    return to;
}

int parquet_encode_delta(struct buf *to, const int64_t *values, size_t n)
{
    if (buf_reserve(to, 4 * VARINT_MAX_BYTES) < 0)
        return -ENOMEM;
    uint8_t *at = to->data + to->size;
    at += varint_put(at, BLOCK);
    at += varint_put(at, MINIBLOCKS);
    at += varint_put(at, n);
    at += varint_put(at, zigzag_put(n ? values[0] : 0));
    to->size = (size_t)(at - to->data);
    for (size_t i = 1; i < n; i += BLOCK) {
        if (buf_reserve(to, BLOCK_BYTES) < 0)
            return -ENOMEM;
        at = put_block(to->data + to->size, values + i, n - i < BLOCK ? n - i : BLOCK);
        to->size = (size_t)(at - to->data);
    }
    return 0;
}

int parquet_encode_hybrid(struct buf *to, const uint8_t *values, size_t n, unsigned width)
{
    size_t same = 1, groups = (n + 7) / 8;
    while (same < n && values[same] == values[0])
        same++;
    if (buf_reserve(to, VARINT_MAX_BYTES + groups * width + 8) < 0)
        return -ENOMEM;
    uint8_t *at = to->data + to->size;
    at += varint_put(at, same == n ? n << 1 : groups << 1 | 1);
    if (same == n)
        *at++ = values[0];
    for (size_t g = 0; same < n && g < groups; g++) {
        uint64_t word = 0;
        size_t many = n - 8 * g < 8 ? n - 8 * g : 8;
        for (size_t i = 0; i < many; i++)
            word |= (uint64_t)values[8 * g + i] << (i * width);
        put_u64(at, word);
        at += width;
    }
    to->size = (size_t)(at - to->data);
    return 0;
}

int parquet_encode_bits(struct buf *to, const int64_t *values, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i += 8) {
        uint8_t byte = 0;
        for (size_t k = 0; k < 8 && i + k < n; k++)
            byte |= (uint8_t)((values[i + k] != 0) << k);
        rc = buf_put_u8(to, byte);
    }
    return rc;
}
