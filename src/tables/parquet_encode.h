// Encodings of Parquet. https://parquet.apache.org/docs/file-format/data-pages/encodings/
#ifndef HEAPTAPE_TABLES_PARQUET_ENCODE_H
#define HEAPTAPE_TABLES_PARQUET_ENCODE_H

#include "base/buf.h"

// DELTA_BINARY_PACKED. 0 or -ENOMEM.
int parquet_encode_delta(struct buf *to, const int64_t *values, size_t n);

// The hybrid of RLE and bit packing, n ≥ 1 values below 2^width, 1 ≤ width ≤ 8: one run. 0 or -ENOMEM.
int parquet_encode_hybrid(struct buf *to, const uint8_t *values, size_t n, unsigned width);

// Bits, the lowest of a byte first. 0 or -ENOMEM.
int parquet_encode_bits(struct buf *to, const int64_t *values, size_t n);

#endif
