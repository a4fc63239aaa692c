// The part of Thrift's compact protocol that Parquet headers use.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
#pragma once

#include "base/buf.h"
#include "base/varint.h"

#include <stdbool.h>

enum parquet_thrift_type {
    PARQUET_THRIFT_I32 = 5,
    PARQUET_THRIFT_I64 = 6,
    PARQUET_THRIFT_BINARY = 8,
    PARQUET_THRIFT_LIST = 9,
    PARQUET_THRIFT_STRUCT = 12,
};

// Writer of a struct. Set `to` and zero the other members. `failed` is set if memory runs out.
struct parquet_thrift {
    struct buf *to;
    int last_field; // number of the last field in the current struct
    bool failed;
};

static inline void parquet_thrift_bytes(struct parquet_thrift *t, const void *bytes, size_t n)
{
    t->failed |= buf_put(t->to, bytes, n) < 0;
}

static inline void parquet_thrift_varint(struct parquet_thrift *t, uint64_t v)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    parquet_thrift_bytes(t, bytes, varint_put(bytes, v));
}

// Fields must be written in ascending order, at most 15 apart.
static inline void parquet_thrift_field(struct parquet_thrift *t, int field,
                                        enum parquet_thrift_type type)
{
    uint8_t head = (uint8_t)((field - t->last_field) << 4 | (int)type);
    parquet_thrift_bytes(t, &head, 1);
    t->last_field = field;
}

static inline void parquet_thrift_i32(struct parquet_thrift *t, int field, int64_t v)
{
    parquet_thrift_field(t, field, PARQUET_THRIFT_I32);
    parquet_thrift_varint(t, zigzag_put(v));
}

static inline void parquet_thrift_i64(struct parquet_thrift *t, int field, uint64_t v)
{
    parquet_thrift_field(t, field, PARQUET_THRIFT_I64);
    parquet_thrift_varint(t, zigzag_put((int64_t)v));
}

static inline void parquet_thrift_element(struct parquet_thrift *t, const void *bytes, size_t n)
{
    parquet_thrift_varint(t, n);
    parquet_thrift_bytes(t, bytes, n);
}

static inline void parquet_thrift_binary(struct parquet_thrift *t, int field, const void *bytes,
                                         size_t n)
{
    parquet_thrift_field(t, field, PARQUET_THRIFT_BINARY);
    parquet_thrift_element(t, bytes, n);
}

// Begins a list. Its elements must follow. An element that is a struct must be written between
// parquet_thrift_begin and parquet_thrift_end.
static inline void parquet_thrift_list(struct parquet_thrift *t, int field,
                                       enum parquet_thrift_type of, size_t n)
{
    parquet_thrift_field(t, field, PARQUET_THRIFT_LIST);
    uint8_t head = (uint8_t)((n < 15 ? n : 15) << 4 | of);
    parquet_thrift_bytes(t, &head, 1);
    if (n >= 15)
        parquet_thrift_varint(t, n);
}

// Begins a nested struct. The result must be passed to parquet_thrift_end.
static inline int parquet_thrift_begin(struct parquet_thrift *t)
{
    int outer = t->last_field;
    t->last_field = 0;
    return outer;
}

static inline void parquet_thrift_end(struct parquet_thrift *t, int outer)
{
    parquet_thrift_bytes(t, "", 1);
    t->last_field = outer;
}
