// Recordings of WebKit's MallocBench, which consist of records of 24 bytes in a total order.
// docs/reference/foreign-formats.md, "mallocbench".
#include "base/bytes.h"
#include "formats/import.h"

enum op { OP_MALLOC = 0, OP_FREE = 1, OP_REALLOC = 2, OP_ALIGN_MALLOC = 3 };

enum { OP_BYTES = 24, MAX_ALIGN_BITS = 47 };

#define MAX_SLOTS (1ull << 32)

static int read_op(struct import *im, const uint8_t *at)
{
    uint32_t op = get_u32(at), thread = get_u32(at + 4) & 0xffff,
             align_bits = get_u32(at + 4) >> 16;
    uint64_t slot = get_u64(at + 8), size = get_u64(at + 16), block = (slot + 1) << 4;
    uint64_t offset = import_source_offset(&im->source);
    struct event ev = {.kind = HT_MALLOC, .size = size, .result = block};
    if (slot >= MAX_SLOTS)
        return import_bad(im, offset, "expected a slot below 2^32");
    switch (op) {
    case OP_MALLOC:
        break;
    case OP_FREE:
        ev = (struct event){.kind = HT_FREE, .ptr = block};
        break;
    case OP_REALLOC:
        ev = (struct event){.kind = HT_REALLOC, .size = size, .ptr = block, .result = block};
        break;
    case OP_ALIGN_MALLOC:
        if (align_bits > MAX_ALIGN_BITS)
            return import_bad(im, offset, "expected an alignment of at most 2^%d", MAX_ALIGN_BITS);
        ev.kind = HT_MEMALIGN;
        ev.align = 1ull << align_bits;
        break;
    default:
        return import_bad(im, offset, "expected an opcode of 0 to 3, found %u", op);
    }
    return import_put(im, 1, thread, &ev);
}

const struct format format_mallocbench = {
    .name = "mallocbench",
    .import = {.record = read_op, .record_bytes = OP_BYTES, .record_name = "a record", .window = 1},
};
