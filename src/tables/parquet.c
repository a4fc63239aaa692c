// Writes a table as Parquet. The footer lists the row groups in file order. Each column of a row
// group has a single page, which is compressed with zstd. Unless the column is TABLES_TEXT, the
// footer contains its minimum and maximum, so that query engines can skip row groups.
// https://parquet.apache.org/docs/file-format/
#include "base/bytes.h"
#include "base/printable.h"
#include "tables/export.h"
#include "tables/parquet_encode.h"
#include "tables/parquet_thrift.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    GROUP_ROWS = 122880,         // DuckDB's unit of work
    FIRST_ROWS = 960,            // initial capacity in rows; it doubles up to GROUP_ROWS
    GROUP_TEXT_BYTES = 64 << 20, // limit on a column's strings in a row group
    LEVEL = 1,
    MAX_NAMES = 256,
};

// Values of Parquet enums.
enum { TYPE_BOOLEAN = 0, TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { OPTIONAL = 1, UTF8 = 0, CODEC_ZSTD = 6 };
enum { PLAIN = 0, RLE = 3, DELTA_BINARY_PACKED = 5, RLE_DICTIONARY = 8 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };

// Values of a column in the current row group.
struct parquet_column {
    int64_t *integers; // for TABLES_INTEGER and TABLES_BOOLEAN
    uint8_t *names;    // for TABLES_NAME: indices in `dictionary`
    const char *dictionary[MAX_NAMES];
    unsigned n_names;
    struct buf text; // for TABLES_TEXT, in PLAIN encoding
    size_t n;        // number of non-NULL values
    // Properties of the chunk that was written last.
    size_t raw_bytes, bytes;
    uint64_t data_at, dictionary_at; // file offsets; dictionary_at is 0 if there is no dictionary
    int encoding;
};

struct parquet {
    struct parquet_column columns[TABLES_MAX_COLUMNS];
    uint32_t *present; // indexed by row
    uint32_t integers; // bit set of the columns that use `integers`
    size_t rows;       // rows in the current group
    size_t room;       // capacity of all arrays, in rows
    uint8_t *levels;   // definition levels of one column
    uint64_t all_rows;
    struct buf groups; // row groups, for the footer
    size_t n_groups;
    struct buf page, packed;
    ZSTD_CCtx *zstd;
};

static int parquet_begin(struct tables_output *o)
{
    struct parquet *p = o->state = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    for (unsigned i = 0; i < o->table->n_columns; i++)
        p->integers |= (uint32_t)(o->table->columns[i].type <= TABLES_BOOLEAN) << i;
    return buf_put(&o->text, "PAR1", 4);
}

static int grow_array(void *array, size_t rows, size_t item_bytes)
{
    void **to = array, *bigger = realloc(*to, rows * item_bytes);
    *to = bigger ? bigger : *to;
    return bigger ? 0 : -ENOMEM;
}

// Grows the arrays, up to GROUP_ROWS.
static int grow_arrays(struct tables_output *o)
{
    struct parquet *p = o->state;
    size_t room = p->room ? 2 * p->room : FIRST_ROWS;
    int rc = grow_array(&p->present, room, sizeof *p->present);
    rc = rc < 0 ? rc : grow_array(&p->levels, room, 1);
    for (unsigned i = 0; rc == 0 && i < o->table->n_columns; i++) {
        struct parquet_column *c = &p->columns[i];
        enum tables_type type = o->table->columns[i].type;
        if (type <= TABLES_BOOLEAN)
            rc = grow_array(&c->integers, room, sizeof *c->integers);
        if (type == TABLES_NAME)
            rc = grow_array(&c->names, room, 1);
    }
    p->room = rc == 0 ? room : p->room;
    return rc;
}

static void release_rows(struct parquet *p)
{
    for (unsigned i = 0; i < TABLES_MAX_COLUMNS; i++) {
        free(p->columns[i].integers);
        free(p->columns[i].names);
        p->columns[i].integers = NULL;
        p->columns[i].names = NULL;
        buf_release(&p->columns[i].text);
    }
    free(p->present);
    free(p->levels);
    p->present = NULL;
    p->levels = NULL;
    p->room = 0;
    buf_release(&p->page);
    buf_release(&p->packed);
    ZSTD_freeCCtx(p->zstd);
    p->zstd = NULL;
}

static void parquet_release(struct tables_output *o)
{
    struct parquet *p = o->state;
    if (!p)
        return;
    release_rows(p);
    buf_release(&p->groups);
    free(p);
}

// Returns the index of a name in the dictionary. Compares only addresses, because equal names are
// the same static string. There are few names, so a linear search is fast enough.
static uint8_t name_number(struct parquet_column *c, const char *name)
{
    for (unsigned i = 0; i < c->n_names; i++) {
        if (c->dictionary[i] == name)
            return (uint8_t)i;
    }
    c->dictionary[c->n_names] = name;
    return (uint8_t)c->n_names++;
}

// Appends a string in PLAIN encoding: its length, then its bytes. Replaces invalid UTF-8, which
// query engines reject, with U+FFFD.
static int put_text(struct buf *to, const char *text)
{
    size_t n = strlen(text), from = to->size;
    if (n >= UINT32_MAX / 4 || buf_reserve(to, 4 + 3 * n) < 0)
        return -ENOMEM;
    uint8_t *at = to->data + from + 4;
    while (n) {
        size_t good = printable_utf8(text, n), used = good ? good : 1;
        memcpy(at, good ? text : "\xef\xbf\xbd", good ? good : 3);
        at += good ? good : 3;
        text += used;
        n -= used;
    }
    to->size = (size_t)(at - to->data);
    put_u32(to->data + from, (uint32_t)(to->size - from - 4));
    return 0;
}

// Compresses p->page, and appends the page header and the compressed data to the output.
static int put_page(struct tables_output *o, struct parquet_column *c, int type, size_t values,
                    int encoding)
{
    struct parquet *p = o->state;
    size_t room = ZSTD_compressBound(p->page.size);
    if (!p->zstd) {
        p->zstd = ZSTD_createCCtx();
        if (!p->zstd)
            return -ENOMEM;
        ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
        // Readers verify the checksum when they decompress a page.
        ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    }
    if (buf_resize(&p->packed, room) < 0)
        return -ENOMEM;
    size_t packed = ZSTD_compress2(p->zstd, p->packed.data, room, p->page.data, p->page.size);
    if (ZSTD_isError(packed))
        return -ENOMEM;
    size_t from = o->text.size;
    struct parquet_thrift t = {.to = &o->text};
    parquet_thrift_i32(&t, 1, type);
    parquet_thrift_i32(&t, 2, (int64_t)p->page.size);
    parquet_thrift_i32(&t, 3, (int64_t)packed);
    parquet_thrift_field(&t, type == DATA_PAGE ? 5 : 7, PARQUET_THRIFT_STRUCT);
    int outer = parquet_thrift_begin(&t);
    parquet_thrift_i32(&t, 1, (int64_t)values);
    parquet_thrift_i32(&t, 2, encoding);
    if (type == DATA_PAGE) {
        parquet_thrift_i32(&t, 3, RLE);
        parquet_thrift_i32(&t, 4, RLE);
    }
    parquet_thrift_end(&t, outer);
    parquet_thrift_end(&t, 0);
    c->raw_bytes += o->text.size - from + p->page.size;
    parquet_thrift_bytes(&t, p->packed.data, packed);
    c->bytes += o->text.size - from;
    p->page.size = 0;
    return t.failed ? -ENOMEM : 0;
}

static int put_dictionary(struct tables_output *o, struct parquet_column *c)
{
    struct parquet *p = o->state;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < c->n_names; i++)
        rc = put_text(&p->page, c->dictionary[i]);
    c->dictionary_at = o->out.offset + o->text.size;
    return rc < 0 ? rc : put_page(o, c, DICTIONARY_PAGE, c->n_names, PLAIN);
}

static int encode_values(struct parquet *p, struct parquet_column *c, enum tables_type type)
{
    if (c->encoding == DELTA_BINARY_PACKED)
        return parquet_encode_delta(&p->page, c->integers, c->n);
    if (c->encoding == RLE_DICTIONARY) {
        unsigned width = c->n_names > 1 ? 32 - (unsigned)__builtin_clz(c->n_names - 1) : 1;
        return buf_put_u8(&p->page, (uint8_t)width)
                   ?: parquet_encode_hybrid(&p->page, c->names, c->n, width);
    }
    return type == TABLES_BOOLEAN ? parquet_encode_bits(&p->page, c->integers, c->n)
           : c->text.size         ? buf_put(&p->page, c->text.data, c->text.size)
                                  : 0;
}

// Writes a column of the row group: the definition levels, preceded by their length in bytes, then
// the values.
static int put_column(struct tables_output *o, struct parquet_column *c, enum tables_type type)
{
    struct parquet *p = o->state;
    bool any = c->n != 0;
    c->raw_bytes = c->bytes = 0;
    c->dictionary_at = 0;
    c->encoding = any && type == TABLES_INTEGER ? DELTA_BINARY_PACKED
                  : any && type == TABLES_NAME  ? RLE_DICTIONARY
                                                : PLAIN;
    int rc = c->encoding == RLE_DICTIONARY ? put_dictionary(o, c) : 0;
    c->data_at = o->out.offset + o->text.size;
    rc = rc < 0 ? rc : buf_resize(&p->page, 4);
    unsigned number = (unsigned)(c - p->columns);
    for (size_t i = 0; i < p->rows; i++)
        p->levels[i] = p->present[i] >> number & 1;
    rc = rc < 0 ? rc : parquet_encode_hybrid(&p->page, p->levels, p->rows, 1);
    if (rc < 0)
        return rc;
    put_u32(p->page.data, (uint32_t)p->page.size - 4);
    rc = encode_values(p, c, type);
    return rc < 0 ? rc : put_page(o, c, DATA_PAGE, p->rows, c->encoding);
}

// Writes the number of NULLs, the minimum and the maximum.
static void put_statistics(struct parquet_thrift *t, const struct parquet *p,
                           const struct parquet_column *c, enum tables_type type)
{
    parquet_thrift_field(t, 12, PARQUET_THRIFT_STRUCT);
    int outer = parquet_thrift_begin(t);
    parquet_thrift_i64(t, 3, p->rows - c->n);
    if (c->n && type <= TABLES_BOOLEAN) {
        int64_t min = INT64_MAX, max = INT64_MIN;
        for (size_t i = 0; i < c->n; i++) {
            min = c->integers[i] < min ? c->integers[i] : min;
            max = c->integers[i] > max ? c->integers[i] : max;
        }
        size_t bytes = type == TABLES_BOOLEAN ? 1 : 8;
        parquet_thrift_binary(t, 5, &max, bytes);
        parquet_thrift_binary(t, 6, &min, bytes);
    }
    if (c->n && type == TABLES_NAME) {
        const char *min = c->dictionary[0], *max = min;
        for (unsigned i = 1; i < c->n_names; i++) {
            min = strcmp(c->dictionary[i], min) < 0 ? c->dictionary[i] : min;
            max = strcmp(c->dictionary[i], max) > 0 ? c->dictionary[i] : max;
        }
        parquet_thrift_binary(t, 5, max, strlen(max));
        parquet_thrift_binary(t, 6, min, strlen(min));
    }
    parquet_thrift_end(t, outer);
}

static int physical_type(enum tables_type type)
{
    return type == TABLES_INTEGER   ? TYPE_INT64
           : type == TABLES_BOOLEAN ? TYPE_BOOLEAN
                                    : TYPE_BYTE_ARRAY;
}

// Writes a ColumnChunk entry of the footer.
static void put_chunk(struct parquet_thrift *t, const struct parquet *p,
                      const struct parquet_column *c, const struct tables_column *column)
{
    uint64_t at = c->dictionary_at ? c->dictionary_at : c->data_at;
    bool plain = c->dictionary_at && c->encoding != PLAIN;
    int chunk = parquet_thrift_begin(t);
    parquet_thrift_i64(t, 2, at);
    parquet_thrift_field(t, 3, PARQUET_THRIFT_STRUCT);
    int meta = parquet_thrift_begin(t);
    parquet_thrift_i32(t, 1, physical_type(column->type));
    parquet_thrift_list(t, 2, PARQUET_THRIFT_I32, plain ? 3 : 2);
    parquet_thrift_varint(t, zigzag_put(RLE));
    parquet_thrift_varint(t, zigzag_put(c->encoding));
    if (plain)
        parquet_thrift_varint(t, zigzag_put(PLAIN));
    parquet_thrift_list(t, 3, PARQUET_THRIFT_BINARY, 1);
    parquet_thrift_element(t, column->name, strlen(column->name));
    parquet_thrift_i32(t, 4, CODEC_ZSTD);
    parquet_thrift_i64(t, 5, p->rows);
    parquet_thrift_i64(t, 6, c->raw_bytes);
    parquet_thrift_i64(t, 7, c->bytes);
    parquet_thrift_i64(t, 9, c->data_at);
    if (c->dictionary_at)
        parquet_thrift_i64(t, 11, c->dictionary_at);
    put_statistics(t, p, c, column->type);
    parquet_thrift_end(t, meta);
    parquet_thrift_end(t, chunk);
}

// Writes the row group and adds its footer entry.
static int put_group(struct tables_output *o)
{
    struct parquet *p = o->state;
    struct parquet_thrift t = {.to = &p->groups};
    uint64_t raw = 0;
    int rc = 0;
    if (!p->rows)
        return 0;
    for (unsigned i = 0; rc == 0 && i < o->table->n_columns; i++) {
        rc = put_column(o, &p->columns[i], o->table->columns[i].type);
        raw += p->columns[i].raw_bytes;
    }
    if (rc < 0)
        return rc;
    parquet_thrift_list(&t, 1, PARQUET_THRIFT_STRUCT, o->table->n_columns);
    for (unsigned i = 0; i < o->table->n_columns; i++) {
        struct parquet_column *c = &p->columns[i];
        put_chunk(&t, p, c, &o->table->columns[i]);
        c->n = c->n_names = 0;
        c->text.size = 0;
    }
    parquet_thrift_i64(&t, 2, raw);
    parquet_thrift_i64(&t, 3, p->rows);
    parquet_thrift_end(&t, 0);
    p->n_groups++;
    p->all_rows += p->rows;
    p->rows = o->buffered = 0;
    return t.failed ? -ENOMEM : tables_export_flush(o);
}

// Appends the names and strings of a row. If the row group must end, sets *full.
static int put_texts(struct parquet *p, const struct tables_row *row, bool *full)
{
    for (uint32_t left = row->present & ~p->integers; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        struct parquet_column *c = &p->columns[i];
        if (c->names)
            c->names[c->n] = name_number(c, row->values[i].text);
        else if (put_text(&c->text, row->values[i].text) < 0)
            return -ENOMEM;
        c->n++;
        *full |= c->text.size >= GROUP_TEXT_BYTES;
    }
    return 0;
}

static int parquet_row(struct tables_output *o, const struct tables_row *row)
{
    struct parquet *p = o->state;
    bool full = false;
    if (p->rows == p->room && grow_arrays(o) < 0)
        return -ENOMEM;
    for (uint32_t left = row->present & p->integers; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        struct parquet_column *c = &p->columns[i];
        c->integers[c->n++] = row->values[i].integer;
    }
    p->present[p->rows] = row->present;
    int rc = put_texts(p, row, &full);
    o->buffered = ++p->rows;
    return rc < 0 ? rc : p->rows == GROUP_ROWS || full ? put_group(o) : 0;
}

static int parquet_flush(struct tables_output *o)
{
    int rc = put_group(o);
    release_rows(o->state);
    buf_release(&o->text);
    return rc;
}

static void put_schema(struct parquet_thrift *t, const struct tables_definition *table)
{
    parquet_thrift_list(t, 2, PARQUET_THRIFT_STRUCT, table->n_columns + 1);
    int outer = parquet_thrift_begin(t);
    parquet_thrift_binary(t, 4, table->name, strlen(table->name));
    parquet_thrift_i32(t, 5, table->n_columns);
    parquet_thrift_end(t, outer);
    for (unsigned i = 0; i < table->n_columns; i++) {
        const struct tables_column *c = &table->columns[i];
        outer = parquet_thrift_begin(t);
        parquet_thrift_i32(t, 1, physical_type(c->type));
        parquet_thrift_i32(t, 3, OPTIONAL);
        parquet_thrift_binary(t, 4, c->name, strlen(c->name));
        if (c->type >= TABLES_NAME)
            parquet_thrift_i32(t, 6, UTF8);
        parquet_thrift_end(t, outer);
    }
}

// Writes the footer, which locates all row groups.
static int parquet_end(struct tables_output *o)
{
    struct parquet *p = o->state;
    static const char made_by[] = "heaptape version " HEAPTAPE_VERSION;
    int rc = put_group(o);
    struct parquet_thrift t = {.to = &o->text};
    size_t from = o->text.size;
    parquet_thrift_i32(&t, 1, 2);
    put_schema(&t, o->table);
    parquet_thrift_i64(&t, 3, p->all_rows);
    parquet_thrift_list(&t, 4, PARQUET_THRIFT_STRUCT, p->n_groups);
    if (p->groups.size)
        parquet_thrift_bytes(&t, p->groups.data, p->groups.size);
    parquet_thrift_binary(&t, 6, made_by, sizeof made_by - 1);
    // Field column_orders: every column has the order that its type defines.
    parquet_thrift_list(&t, 7, PARQUET_THRIFT_STRUCT, o->table->n_columns);
    for (unsigned i = 0; i < o->table->n_columns; i++) {
        int order = parquet_thrift_begin(&t);
        parquet_thrift_field(&t, 1, PARQUET_THRIFT_STRUCT);
        int nothing = parquet_thrift_begin(&t);
        parquet_thrift_end(&t, nothing);
        parquet_thrift_end(&t, order);
    }
    parquet_thrift_end(&t, 0);
    uint8_t tail[8];
    put_u32(tail, (uint32_t)(o->text.size - from));
    memcpy(tail + 4, "PAR1", 4);
    parquet_thrift_bytes(&t, tail, sizeof tail);
    return rc < 0 ? rc : t.failed ? -ENOMEM : 0;
}

const struct tables_format tables_parquet = {
    .name = "parquet",
    .begin = parquet_begin,
    .row = parquet_row,
    .end = parquet_end,
    .flush = parquet_flush,
    .release = parquet_release,
};
