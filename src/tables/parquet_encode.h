// Parquet encodings. https://parquet.apache.org/docs/file-format/data-pages/encodings/
#pragma once

#include "base/buf.h"

// Appends the values in the encoding DELTA_BINARY_PACKED. Returns 0 or -ENOMEM.
int parquet_encode_delta(struct buf *to, const int64_t *values, size_t n);

// Appends the values in the RLE/bit-packing hybrid encoding, as a single run. Requires n ≥ 1, 1 ≤
// width ≤ 8, and values below 2^width. Returns 0 or -ENOMEM.
int parquet_encode_hybrid(struct buf *to, const uint8_t *values, size_t n, unsigned width);

// Appends one bit for each value, least significant bit first. Returns 0 or -ENOMEM.
int parquet_encode_bits(struct buf *to, const int64_t *values, size_t n);
