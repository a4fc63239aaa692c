// Verifies files in the subset of Parquet that parquet.c writes: the footer, which lists the
// columns, and the pages, which have checksums.
#include "base/bytes.h"
#include "tables/parquet_thrift.h"
#include "tables/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MAX_DEPTH = 16, TRUE = 1, FALSE = 2, I16 = 4, TAIL_BYTES = 8, SCRATCH_BYTES = 1 << 17 };

struct verify {
    struct input *in;
    uint64_t at, end; // offset of the next chunk, and offset of the footer
    struct buf footer, chunk;
    ZSTD_DCtx *zstd;
    uint8_t *scratch;
    struct err *e;
};

// A column chunk, as described by the footer.
struct verify_chunk {
    uint64_t values, bytes, data_at, dictionary_at, codec;
};

static int set_bad(const struct verify *v, const char *what, uint64_t at)
{
    return err_set(v->e, -EBADMSG, "%s: %s, at byte %llu", v->in->name, what,
                   (unsigned long long)at);
}

// Reads the header of the next field of a struct. Returns false after the last field.
static bool next_field(struct varint_source *s, unsigned *field, unsigned *type)
{
    s->bad |= s->at >= s->end;
    uint8_t head = s->bad ? 0 : *s->at++;
    *type = head & 15;
    if (!head)
        return false;
    *field = head >> 4 ? *field + (head >> 4) : (unsigned)zigzag_get(varint_source_number(s));
    return true;
}

static uint64_t get_list(struct varint_source *s, unsigned *type)
{
    s->bad |= s->at >= s->end;
    uint8_t head = s->bad ? 0 : *s->at++;
    *type = head & 15;
    uint64_t n = head >> 4 < 15 ? head >> 4 : varint_source_number(s);
    // Each element has at least one byte.
    s->bad |= n > (size_t)(s->end - s->at);
    return s->bad ? 0 : n;
}

static void skip_value(struct varint_source *s, unsigned type, unsigned depth)
{
    unsigned field = 0, of;
    size_t n;
    s->bad |= depth > MAX_DEPTH;
    if (s->bad || type == TRUE || type == FALSE)
        return;
    switch (type) {
    case I16:
    case PARQUET_THRIFT_I32:
    case PARQUET_THRIFT_I64:
        varint_source_number(s);
        return;
    case PARQUET_THRIFT_BINARY:
        varint_source_text(s, SIZE_MAX, &n);
        return;
    case PARQUET_THRIFT_LIST:
        for (uint64_t left = get_list(s, &of); left && !s->bad; left--)
            skip_value(s, of, depth + 1);
        return;
    case PARQUET_THRIFT_STRUCT:
        while (next_field(s, &field, &of))
            skip_value(s, of, depth + 1);
        return;
    default:
        s->bad = true;
    }
}

static uint64_t get_number(struct varint_source *s, unsigned type)
{
    bool number = type == PARQUET_THRIFT_I32 || type == PARQUET_THRIFT_I64;
    int64_t value = 0;
    if (number)
        value = zigzag_get(varint_source_number(s));
    s->bad |= !number || value < 0;
    return s->bad ? 0 : (uint64_t)value;
}

// Decompresses a page and checks its length. Decompression also verifies the checksum.
static int check_page(struct verify *v, const uint8_t *packed, size_t n, uint64_t raw_bytes,
                      uint64_t at)
{
    ZSTD_inBuffer from = {packed, n, 0};
    uint64_t bytes = 0;
    size_t left = 1;
    ZSTD_DCtx_reset(v->zstd, ZSTD_reset_session_only);
    while (left) {
        ZSTD_outBuffer to = {v->scratch, SCRATCH_BYTES, 0};
        left = ZSTD_decompressStream(v->zstd, &to, &from);
        if (ZSTD_isError(left))
            return set_bad(v, ZSTD_getErrorName(left), at);
        bytes += to.pos;
        if (bytes > raw_bytes || (left && from.pos == n && to.pos < to.size))
            break;
    }
    return left || from.pos != n || bytes != raw_bytes
               ? set_bad(v, "the length of a page differs from its header", at)
               : 0;
}

static int check_pages(struct verify *v, uint64_t chunk_at)
{
    const uint8_t *begin = v->chunk.data;
    struct varint_source s = {begin, begin + v->chunk.size, false};
    int rc = 0;
    while (rc == 0 && s.at < s.end) {
        unsigned field = 0, type;
        uint64_t numbers[4] = {0}, at = chunk_at + (uint64_t)(s.at - begin);
        while (next_field(&s, &field, &type)) {
            if (field <= 3)
                numbers[field] = get_number(&s, type);
            else
                skip_value(&s, type, 0);
        }
        if (s.bad || numbers[3] > (size_t)(s.end - s.at))
            return set_bad(v, "invalid page header", at);
        rc = check_page(v, s.at, (size_t)numbers[3], numbers[2], at);
        s.at += numbers[3];
    }
    return rc;
}

static int check_chunk(struct verify *v, const struct verify_chunk *c)
{
    uint64_t at = c->dictionary_at ? c->dictionary_at : c->data_at;
    if (c->codec != 6)
        return set_bad(v, "a column is not compressed with zstd: not written by heaptape", at);
    if (at != v->at || c->bytes > v->end - v->at || c->data_at < at || c->data_at - at >= c->bytes)
        return set_bad(v, "the footer contradicts the order of columns", v->at);
    if (buf_resize(&v->chunk, (size_t)c->bytes) < 0)
        return err_no_memory(v->e, v->in->name);
    ssize_t n = input_read(v->in, v->chunk.data, (size_t)c->bytes, v->e);
    if (n < 0 || (uint64_t)n != c->bytes)
        return n < 0 ? (int)n : set_bad(v, "cut off", v->at);
    v->at += c->bytes;
    return check_pages(v, at);
}

static void get_meta(struct varint_source *s, struct verify_chunk *c)
{
    unsigned field = 0, type;
    while (next_field(s, &field, &type)) {
        uint64_t *to = field == 4    ? &c->codec
                       : field == 5  ? &c->values
                       : field == 7  ? &c->bytes
                       : field == 9  ? &c->data_at
                       : field == 11 ? &c->dictionary_at
                                     : NULL;
        if (to)
            *to = get_number(s, type);
        else
            skip_value(s, type, 0);
    }
}

static struct verify_chunk get_chunk(struct varint_source *s)
{
    struct verify_chunk c = {0};
    unsigned field = 0, type;
    while (next_field(s, &field, &type)) {
        if (field == 3 && type == PARQUET_THRIFT_STRUCT)
            get_meta(s, &c);
        else
            skip_value(s, type, 0);
    }
    return c;
}

// Verifies the columns of a row group. Sets *values to the number of values in each column.
static int check_columns(struct verify *v, struct varint_source *s, uint64_t *values)
{
    unsigned of;
    uint64_t n = get_list(s, &of);
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        struct verify_chunk c = get_chunk(s);
        if (s->bad)
            return 0;
        *values = i ? *values : c.values;
        rc = c.values == *values ? check_chunk(v, &c)
                                 : set_bad(v, "columns of different lengths", v->at);
    }
    return rc;
}

static int check_group(struct verify *v, struct varint_source *s, uint64_t *rows)
{
    unsigned field = 0, type;
    uint64_t group_rows = 0, values = 0;
    int rc = 0;
    while (rc == 0 && next_field(s, &field, &type)) {
        if (field == 1 && type == PARQUET_THRIFT_LIST)
            rc = check_columns(v, s, &values);
        else if (field == 3)
            group_rows = get_number(s, type);
        else
            skip_value(s, type, 0);
    }
    *rows += group_rows;
    return rc == 0 && !s->bad && group_rows != values ? set_bad(v, "a wrong number of rows", v->at)
                                                      : rc;
}

static int check_footer(struct verify *v, uint64_t *rows)
{
    struct varint_source s = {v->footer.data, v->footer.data + v->footer.size, false};
    unsigned field = 0, type, of;
    uint64_t all_rows = 0;
    int rc = 0;
    while (rc == 0 && next_field(&s, &field, &type)) {
        if (field == 3) {
            all_rows = get_number(&s, type);
        } else if (field == 4 && type == PARQUET_THRIFT_LIST) {
            uint64_t n = get_list(&s, &of);
            for (; rc == 0 && n && !s.bad; n--)
                rc = check_group(v, &s, rows);
        } else {
            skip_value(&s, type, 0);
        }
    }
    if (rc == 0 && (s.bad || s.at != s.end))
        rc = set_bad(v, "the footer is invalid", v->end + (uint64_t)(s.at - v->footer.data));
    if (rc == 0 && (v->at != v->end || all_rows != *rows))
        rc = set_bad(v, "the footer does not describe all data before it", v->at);
    return rc;
}

// Reads the footer. The last 8 bytes of the file contain the length of the footer.
static int read_footer(struct verify *v)
{
    uint8_t tail[TAIL_BYTES] = {0};
    uint64_t size = v->in->size_bytes;
    int rc = size < 4 + TAIL_BYTES ? set_bad(v, "cut off", size)
                                   : input_seek(v->in, size - TAIL_BYTES, v->e);
    ssize_t n = rc < 0 ? rc : input_read(v->in, tail, sizeof tail, v->e);
    if (n < 0)
        return (int)n;
    uint64_t bytes = get_u32(tail);
    if (memcmp(tail + 4, "PAR1", 4) != 0 || bytes > size - 4 - TAIL_BYTES)
        return set_bad(v, "cut off: it does not end in the length of a footer", size);
    v->at = 4;
    v->end = size - TAIL_BYTES - bytes;
    if (buf_resize(&v->footer, (size_t)bytes) < 0)
        return err_no_memory(v->e, v->in->name);
    rc = input_seek(v->in, v->end, v->e);
    n = rc < 0 ? rc : input_read(v->in, v->footer.data, (size_t)bytes, v->e);
    return n < 0 ? (int)n : input_seek(v->in, v->at, v->e);
}

int tables_verify_parquet(struct input *in, uint64_t *rows, struct err *e)
{
    struct verify v = {
        .in = in, .e = e, .zstd = ZSTD_createDCtx(), .scratch = malloc(SCRATCH_BYTES)};
    *rows = 0;
    int rc = v.zstd && v.scratch ? read_footer(&v) : err_no_memory(e, in->name);
    rc = rc < 0 ? rc : check_footer(&v, rows);
    buf_release(&v.footer);
    buf_release(&v.chunk);
    ZSTD_freeDCtx(v.zstd);
    free(v.scratch);
    return rc;
}
