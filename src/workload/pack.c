// Encodes the payload of an OPS frame, column by column.
#include "base/varint.h"
#include "workload/encode.h"
#include "workload/planes.h"

#include <errno.h>

// Write position in the payload, which has space for the whole frame.
struct pack {
    uint8_t *start, *at;
    uint8_t *first, *rest; // planes of the current column
    uint8_t *rest_start;
    uint64_t base_stamp;
    struct encode_payload *payload;
    uint8_t *part; // start of the current part
};

static void end_part(struct pack *p, uint8_t *at, struct frame_hint *hint)
{
    if (at > p->part)
        p->payload->parts[p->payload->n_parts++] =
            (struct frame_part){.bytes = p->part, .size = (size_t)(at - p->part), .hint = hint};
    p->part = at;
}

static void column_begin(struct pack *p, enum format_column column, size_t n_values)
{
    put_u32(p->start + FORMAT_AT_COLUMNS + 8 * column, (uint32_t)n_values);
    p->first = p->at;
    p->rest = p->rest_start = p->at + n_values;
}

static void column_end(struct pack *p, enum format_column column)
{
    put_u32(p->start + FORMAT_AT_COLUMNS + 8 * column + 4, (uint32_t)(p->rest - p->rest_start));
    p->at = p->rest;
    end_part(p, p->rest_start, &p->payload->hints[2 * column]);
    end_part(p, p->rest, &p->payload->hints[2 * column + 1]);
}

static inline void put_value(struct pack *p, uint64_t v)
{
    planes_put(&p->first, &p->rest, v);
}

static void put_values(struct pack *p, const uint64_t *values, size_t n)
{
    uint8_t *first = p->first, *rest = p->rest;
    for (size_t i = 0; i < n; i++)
        planes_put(&first, &rest, values[i]);
    p->first = first;
    p->rest = rest;
}

static void pack_blocks(struct pack *p, const struct encode_frame *f)
{
    column_begin(p, FORMAT_COLUMN_BLOCKS, (size_t)f->n_blocks * FORMAT_BLOCK_VALUES);
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct encode_block *b = &f->blocks[i];
        put_value(p, b->thread);
        put_value(p, b->first_op);
        put_value(p, b->n_ops);
        put_value(p, f->has_stamps ? b->stamps[0].stamp - p->base_stamp : 0);
    }
    column_end(p, FORMAT_COLUMN_BLOCKS);
}

static void pack_shapes(struct pack *p, const struct encode_frame *f)
{
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        memcpy(p->at, f->blocks[i].shapes, f->blocks[i].n_ops);
        p->at += f->blocks[i].n_ops;
    }
    end_part(p, p->at, &p->payload->hints[2 * FORMAT_COLUMNS]);
}

// Returns the code of a slot that has no age. The code is the slot's number or, with `relative`,
// its distance from the previous slot that was coded in this way.
static inline uint64_t code_by_number(uint64_t slot, uint64_t *last, bool relative)
{
    uint64_t code = relative ? zigzag_put((int64_t)(slot - *last)) : slot;
    *last = slot;
    return ENCODE_AGE_CODES + code;
}

static inline unsigned bits_of(uint64_t v)
{
    return 64 - (unsigned)__builtin_clzll(v | 1);
}

// Returns true if distances between slots are shorter than slot numbers. This is typical if blocks
// are freed in an order related to the order of allocation, but not if frees are random.
static bool relative_is_shorter(const struct encode_frame *f)
{
    uint64_t by_number = 0, by_distance = 0;
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct encode_block *b = &f->blocks[i];
        uint64_t last = 0;
        for (uint32_t k = 0; k < b->at.n_used; k++) {
            if (!(b->at.used[k] & ENCODE_BY_NUMBER))
                continue;
            uint64_t slot = b->at.used[k] & ~ENCODE_BY_NUMBER;
            by_number += bits_of(slot);
            by_distance += bits_of(code_by_number(slot, &last, true) - ENCODE_AGE_CODES);
        }
    }
    return by_distance < by_number;
}

// Appends a column whose values the blocks already hold in their final form.
static void pack_column(struct pack *p, const struct encode_frame *f, enum format_column column,
                        unsigned from)
{
    size_t n = 0;
    for (uint32_t i = 0; i < f->n_blocks; i++)
        n += encode_values(&f->blocks[i].columns[from]);
    column_begin(p, column, n);
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct encode_column *c = &f->blocks[i].columns[from];
        size_t rest = (size_t)(c->rest_at - c->rest);
        if (encode_values(c))
            p->first = mempcpy(p->first, c->first, encode_values(c));
        if (rest)
            p->rest = mempcpy(p->rest, c->rest, rest);
    }
    column_end(p, column);
}

static void pack_block_used(struct pack *p, const struct encode_block *b, bool relative)
{
    uint8_t *first = p->first, *rest = p->rest;
    uint64_t last = 0;
    for (uint32_t k = 0; k < b->at.n_used; k++) {
        uint64_t v = b->at.used[k];
        if (v & ENCODE_BY_NUMBER)
            v = code_by_number(v & ~ENCODE_BY_NUMBER, &last, relative);
        planes_put(&first, &rest, v);
    }
    p->first = first;
    p->rest = rest;
}

static void pack_used(struct pack *p, const struct encode_frame *f)
{
    size_t n = 0;
    bool relative = relative_is_shorter(f);
    for (uint32_t i = 0; i < f->n_blocks; i++)
        n += f->blocks[i].at.n_used;
    put_u32(p->start + FORMAT_AT_FLAGS, relative ? FORMAT_FLAG_RELATIVE_SLOTS : 0);
    column_begin(p, FORMAT_COLUMN_USED, n);
    for (uint32_t i = 0; i < f->n_blocks; i++)
        pack_block_used(p, &f->blocks[i], relative);
    column_end(p, FORMAT_COLUMN_USED);
}

static const struct encode_words *words_of(const struct encode_block *b, size_t member)
{
    return (const struct encode_words *)(const void *)((const uint8_t *)b + member);
}

// Appends a column of numbers.
static void pack_words(struct pack *p, const struct encode_frame *f, enum format_column column,
                       size_t member)
{
    size_t n = 0;
    for (uint32_t i = 0; i < f->n_blocks; i++)
        n += words_of(&f->blocks[i], member)->n;
    column_begin(p, column, n);
    for (uint32_t i = 0; i < f->n_blocks; i++)
        put_values(p, words_of(&f->blocks[i], member)->at, words_of(&f->blocks[i], member)->n);
    column_end(p, column);
}

static void pack_switches(struct pack *p, const struct encode_frame *f)
{
    column_begin(p, FORMAT_COLUMN_TIME, f->switches.n);
    put_values(p, f->switches.at, f->switches.n);
    column_end(p, FORMAT_COLUMN_TIME);
}

static void pack_texts(struct pack *p, const struct encode_frame *f)
{
    pack_words(p, f, FORMAT_COLUMN_TEXT, offsetof(struct encode_block, texts));
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct buf *text = &f->blocks[i].text;
        if (text->size)
            memcpy(p->at, text->data, text->size);
        p->at += text->size;
    }
    end_part(p, p->at, NULL);
}

static void pack_head(struct pack *p, const struct encode_frame *f)
{
    memset(p->start, 0, FORMAT_HEAD_BYTES);
    put_u64(p->start + FORMAT_AT_FIRST_OP, f->first_op);
    put_u64(p->start + FORMAT_AT_BASE_STAMP, p->base_stamp);
    put_u32(p->start + FORMAT_AT_OPS, f->n_ops);
    put_u32(p->start + FORMAT_AT_BLOCKS, f->n_blocks);
    put_u32(p->start + FORMAT_AT_SLOT_LIMIT, (uint32_t)f->slot_limit);
    put_u32(p->start + FORMAT_AT_THREAD_LIMIT, (uint32_t)f->thread_limit);
    put_u32(p->start + FORMAT_AT_AGE_CODES, ENCODE_AGE_CODES);
    put_u32(p->start + FORMAT_AT_SHAPES, f->n_shapes);
    put_u32(p->start + FORMAT_AT_TEXT_BYTES, (uint32_t)f->text_bytes);
    p->at = p->start + FORMAT_HEAD_BYTES;
    for (uint32_t i = 0; i < f->n_shapes; i++) {
        *p->at++ = (uint8_t)f->shapes[i].key;
        *p->at++ = (uint8_t)(f->shapes[i].key >> 8);
        *p->at++ = (uint8_t)(f->shapes[i].key >> 16);
    }
    end_part(p, p->at, NULL);
}

// Upper bound on the number of values in all columns.
static size_t values_bound(const struct encode_frame *f)
{
    size_t n = (size_t)f->n_blocks * FORMAT_BLOCK_VALUES + f->dependency_values + f->switches.n;
    for (uint32_t i = 0; i < f->n_blocks; i++) {
        const struct encode_block *b = &f->blocks[i];
        n += b->at.n_used + b->more.n + b->texts.n;
        for (unsigned k = 0; k < ENCODE_COLUMNS; k++)
            n += encode_values(&b->columns[k]);
    }
    return n;
}

int encode_pack(const struct encode_frame *f, struct encode_payload *payload)
{
    size_t bound = FORMAT_HEAD_BYTES + FORMAT_SHAPE_BYTES * f->n_shapes + f->n_ops + f->text_bytes +
                   values_bound(f) * (1 + PLANES_MAX_REST) + PLANES_SLACK;
    payload->bytes.size = payload->n_parts = 0;
    if (buf_reserve(&payload->bytes, bound) < 0)
        return -ENOMEM;
    struct pack p = {.start = payload->bytes.data, .part = payload->bytes.data, .payload = payload};
    uint64_t last_stamp;
    encode_stamps(f, &p.base_stamp, &last_stamp);
    pack_head(&p, f);
    pack_blocks(&p, f);
    pack_shapes(&p, f);
    pack_column(&p, f, FORMAT_COLUMN_ALLOCATED, ENCODE_ALLOCATED);
    pack_used(&p, f);
    pack_column(&p, f, FORMAT_COLUMN_SIZE, ENCODE_SIZES);
    pack_words(&p, f, FORMAT_COLUMN_MORE, offsetof(struct encode_block, more));
    pack_column(&p, f, FORMAT_COLUMN_ALLOCATED_TIME, ENCODE_ALLOCATED_TIMES);
    if (f->has_stamps)
        pack_column(&p, f, FORMAT_COLUMN_TIME, ENCODE_TIMES);
    else
        pack_switches(&p, f);
    pack_words(&p, f, FORMAT_COLUMN_DEPENDENCY, offsetof(struct encode_block, dependencies));
    pack_texts(&p, f);
    payload->bytes.size = (size_t)(p.at - p.start);
    return 0;
}
