// Raw traces of glibc's dj/malloc branch: an array of records without a header.
// docs/reference/foreign-formats.md, "mtrace".
#include "base/bytes.h"
#include "base/map.h"
#include "formats/export.h"
#include "formats/import.h"

#include <errno.h>

enum mtrace_type {
    MTRACE_UNUSED = 0, // unused record
    MTRACE_MALLOC = 1,
    MTRACE_CALLOC = 2,
    MTRACE_FREE = 3,
    MTRACE_REALLOC = 4,
    MTRACE_MEMALIGN = 5,
    MTRACE_VALLOC = 6,
    MTRACE_PVALLOC = 7,
    MTRACE_POSIX_MEMALIGN = 8,
    MTRACE_MAGIC = 255, // first record
};

// Indexed by type.
static const uint8_t kinds[] = {
    [MTRACE_MALLOC] = HT_MALLOC,
    [MTRACE_CALLOC] = HT_CALLOC,
    [MTRACE_FREE] = HT_FREE,
    [MTRACE_REALLOC] = HT_REALLOC,
    [MTRACE_MEMALIGN] = HT_MEMALIGN,
    [MTRACE_VALLOC] = HT_VALLOC,
    [MTRACE_PVALLOC] = HT_PVALLOC,
    [MTRACE_POSIX_MEMALIGN] = HT_POSIX_MEMALIGN,
    0,
};

enum {
    RECORD_BYTES = 64,
    OLD_RECORD_BYTES = 32, // size of an old record, which lacks size2 and size3
    MAGIC_PTR = 0x1234,
    WORD_BYTES = 8,
    TYPE_BITS = 8,
    CHUNK_STEP = 16,   // chunk sizes are multiples of this
    MALLOC_ALIGN = 16, // assumed for old records, which do not contain an alignment
    PAGE_BYTES = 4096,
    // Offsets within a record.
    AT_TID = 0,
    AT_TYPE = 4, // type in the low byte, path in the other bytes
    AT_PTR1 = 8,
    AT_PTR2 = 16,
    AT_SIZE = 24,
    AT_SIZE2 = 32,
    AT_SIZE3 = 40,
};

static int not_mtrace(struct import *im, const char *what)
{
    return err_set(im->e, -EPROTO, "%s: expected %s at byte 0", im->source.in->name, what);
}

// Checks the MAGIC record and sets the record size. After an old MAGIC record, the next word is a
// thread id. In a new MAGIC record, the word at the same offset is size2, which is 0.
static int read_magic(struct import *im)
{
    ssize_t n = import_source_want(&im->source, RECORD_BYTES, im->e);
    if (n < 0)
        return (int)n;
    const uint8_t *at = im->source.data + im->source.at;
    if (n < OLD_RECORD_BYTES || (get_u32(at + AT_TYPE) & 0xff) != MTRACE_MAGIC ||
        get_u64(at + AT_PTR1) != MAGIC_PTR)
        return not_mtrace(
            im, n >= 7 && memcmp(at, "= Start", 7) == 0
                    ? "a raw trace of glibc's dj/malloc branch (not the text of mtrace(3))"
                    : "the MAGIC record of an mtrace file");
    if (get_u64(at + AT_SIZE) != WORD_BYTES)
        return not_mtrace(im, "a trace of a 64-bit program");
    bool is_new = n >= RECORD_BYTES && get_u64(at + AT_SIZE2) == 0;
    im->record_bytes = is_new ? RECORD_BYTES : OLD_RECORD_BYTES;
    return 0;
}

// Returns glibc's malloc_usable_size for a chunk: the chunk size minus the word before the block,
// or minus two words if the chunk is a mapping, which starts at a page boundary.
static uint64_t usable_bytes(uint64_t chunk, uint64_t block)
{
    bool mapped = chunk % PAGE_BYTES == 0 && block % PAGE_BYTES == 2 * WORD_BYTES;
    uint64_t head = mapped ? 2 * WORD_BYTES : WORD_BYTES;
    return chunk > head ? chunk - head : 0;
}

// Returns the usable size of the block that the record allocates or frees, or 0 if the record does
// not contain the size.
static uint64_t get_usable(const uint8_t *at, size_t record_bytes, const struct event *ev)
{
    if (record_bytes == OLD_RECORD_BYTES)
        return 0;
    if (ev->kind == HT_FREE)
        return usable_bytes(get_u64(at + AT_SIZE2), ev->ptr);
    return ev->result ? usable_bytes(get_u64(at + AT_SIZE3), ev->result) : 0;
}

// Decodes a record. Returns 1, 0 if the record is not an event, or -EBADMSG if its type is unknown.
static int decode_record(const uint8_t *at, size_t record_bytes, struct event *ev)
{
    uint64_t ptr1 = get_u64(at + AT_PTR1);
    unsigned type = at[AT_TYPE];
    if (type == MTRACE_UNUSED || type == MTRACE_MAGIC)
        return 0;
    if (type > MTRACE_POSIX_MEMALIGN)
        return -EBADMSG;
    *ev = (struct event){
        .kind = kinds[type], .result = get_u64(at + AT_PTR2), .size = get_u64(at + AT_SIZE)};
    switch (ev->kind) {
    case HT_CALLOC:
        ev->count = 1;
        break;
    case HT_FREE:
        *ev = (struct event){.kind = HT_FREE, .ptr = ptr1};
        break;
    case HT_REALLOC:
        ev->ptr = ptr1;
        break;
    case HT_POSIX_MEMALIGN:
        ev->error = ptr1 > UINT8_MAX ? ENOMEM : (uint8_t)ptr1;
        ev->result = ev->error ? 0 : ev->result;
    }
    if (event_infos[ev->kind].fields & HT_F_ALIGN)
        ev->align = record_bytes == RECORD_BYTES ? get_u64(at + AT_SIZE2) : MALLOC_ALIGN;
    return 1;
}

static int read_record(struct import *im, const uint8_t *at)
{
    struct event ev;
    int rc = decode_record(at, im->record_bytes, &ev);
    if (rc < 0)
        rc = import_bad(im, import_source_offset(&im->source),
                        "expected a record of type 0 to 8 or 255, found %u", at[AT_TYPE]);
    if (rc > 0) {
        ev.notes[HT_NOTE_USABLE] = get_usable(at, im->record_bytes, &ev);
        ev.notes[HT_NOTE_PATH] = get_u32(at + AT_TYPE) >> TYPE_BITS;
        for (unsigned i = 0; i < HT_PATHS; i++)
            im->paths[i] += ev.notes[HT_NOTE_PATH] >> i & 1;
    }
    if (rc > 0)
        rc = import_put(im, 1, get_u32(at + AT_TID), &ev);
    return rc;
}

// Flag in a chunk size, as in glibc's malloc_chunk: the chunk is a mapping.
#define CHUNK_IS_MAPPED 2ull

struct mtrace_export {
    // Maps each block to the size of the chunk that glibc's malloc used or would have used,
    // including CHUNK_IS_MAPPED.
    struct map chunks;
    bool glibc; // the trace was recorded on glibc's malloc
};

// Returns the size of glibc's chunk for a request: the requested size plus one word, rounded up to
// a multiple of 16 bytes, and at least 32 bytes.
static uint64_t chunk_bytes(uint64_t size)
{
    return size < 24 ? 32 : size > UINT64_MAX - 32 ? size : (size + 8 + 15) & ~15ull;
}

// Returns the size of a block's chunk, given the block's usable size. A glibc chunk uses the first
// word of the next chunk, so the usable size is not a multiple of CHUNK_STEP unless the chunk is a
// mapping.
static uint64_t chunk_of_usable(uint64_t usable)
{
    return usable % CHUNK_STEP ? usable + WORD_BYTES : (usable + 2 * WORD_BYTES) | CHUNK_IS_MAPPED;
}

static uint64_t chunk_of_result(const struct export_call *c, bool glibc)
{
    uint64_t usable = c->ev.notes[HT_NOTE_USABLE];
    if (!c->ev.result)
        return 0;
    if (usable && glibc)
        return chunk_of_usable(usable);
    return chunk_bytes(event_requested(c->ev.kind, c->ev.size, c->ev.count));
}

// Derives malloc's path from the chunks before and after the call: whether they are mappings, and
// whether a realloc moved the block. Works only for glibc with usable sizes.
static uint64_t derive_path(const struct export_call *c, bool glibc, uint64_t before,
                            uint64_t after)
{
    const struct event *ev = &c->ev;
    bool was_mapped = before & CHUNK_IS_MAPPED, is_mapped = after & CHUNK_IS_MAPPED;
    bool moved = ev->ptr && ev->result && ev->ptr != ev->result;
    if (ev->notes[HT_NOTE_PATH] || !glibc)
        return ev->notes[HT_NOTE_PATH];
    // mremap resized the mapping.
    if (was_mapped && is_mapped)
        return 0;
    return (uint64_t)is_mapped << HT_PATH_MMAP | (uint64_t)was_mapped << HT_PATH_MUNMAP |
           (uint64_t)(moved && ev->notes[HT_NOTE_USABLE]) << HT_PATH_MALLOC_FREE;
}

static void put_record(struct export *x, uint32_t tid, uint32_t type, const uint64_t words[5])
{
    uint8_t *to = export_buffer_reserve(&x->out, RECORD_BYTES);
    memset(to, 0, RECORD_BYTES);
    put_u32(to + AT_TID, tid);
    put_u32(to + AT_TYPE, type);
    for (int i = 0; i < 5; i++)
        put_u64(to + AT_PTR1 + 8 * i, words[i]);
    export_buffer_commit(&x->out, to + RECORD_BYTES);
}

static int mtrace_begin(struct export *x)
{
    put_record(x, 1 << 3, MTRACE_MAGIC, (const uint64_t[5]){MAGIC_PTR, 0, WORD_BYTES});
    return 0;
}

static enum mtrace_type mtrace_type_of(const struct event *ev)
{
    unsigned kind = ev->kind == HT_REALLOC && !ev->ptr ? HT_MALLOC : ev->kind;
    enum mtrace_type type = MTRACE_MALLOC;
    while (kinds[type] != kind)
        type++;
    return type;
}

static int mtrace_put(struct export *x, const struct export_call *c)
{
    struct mtrace_export *m = x->state;
    const struct event *ev = &c->ev;
    bool glibc = m->glibc |= c->glibc;
    uint64_t size = event_requested(ev->kind, ev->size, ev->count), before = 0,
             after = chunk_of_result(c, glibc);
    uint64_t words[5] = {export_address(x, ev->ptr), export_address(x, ev->result), size, ev->align,
                         after & ~CHUNK_IS_MAPPED};
    enum mtrace_type type = mtrace_type_of(ev);
    if (type == MTRACE_FREE || (type == MTRACE_REALLOC && !c->failed)) {
        before = map_get(&m->chunks, ev->ptr);
        map_remove(&m->chunks, ev->ptr);
        if (type == MTRACE_FREE && !before && glibc && ev->notes[HT_NOTE_USABLE])
            before = chunk_of_usable(ev->notes[HT_NOTE_USABLE]);
        words[3] = before & ~CHUNK_IS_MAPPED;
    }
    if (type == MTRACE_POSIX_MEMALIGN)
        words[0] = c->failed ? ev->error : 0;
    if (type == MTRACE_VALLOC)
        words[3] = PAGE_BYTES;
    // trace2wl ignores the low 3 bits of thread numbers.
    put_record(x, (c->thread + 1) << 3,
               type | (uint32_t)derive_path(c, glibc, before, after) << TYPE_BITS, words);
    bool failed = ev->result && map_put(&m->chunks, ev->result, after) < 0;
    return failed ? export_no_memory(x) : 0;
}

static void mtrace_release(void *state)
{
    struct mtrace_export *m = state;
    map_release(&m->chunks);
}

const struct format format_mtrace = {
    .name = "mtrace",
    .import =
        {
            .record = read_record,
            .record_name = "a record",
            .begin = read_magic,
            .window = 1 << 16,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED |
                     FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES | FORMAT_HOLDS_EARLIER |
                     FORMAT_ALTERNATES,
            .notes = 1 << HT_NOTE_USABLE | 1 << HT_NOTE_PATH,
            .kinds = kinds + MTRACE_MALLOC,
            .state_bytes = sizeof(struct mtrace_export),
            .begin = mtrace_begin,
            .put = mtrace_put,
            .release = mtrace_release,
        },
};
