// The workload's wire format, as writer and reader share it. The contract is docs/reference/workload-format.md.
#ifndef HEAPTAPE_WORKLOAD_FORMAT_H
#define HEAPTAPE_WORKLOAD_FORMAT_H

#include "base/buf.h"
#include "base/err.h"
#include "workload/samples.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

// Frame types. Wire values.
enum format_frame {
    FORMAT_HEADER = 1,    // fields; always the first frame
    FORMAT_OPS = 2,       // a window of the total order
    FORMAT_SAMPLES = 3,   // the recorded program's memory
    FORMAT_SUMMARY = 4,   // fields
    FORMAT_SITES = 6,     // call sites
    FORMAT_NAMES = 7,     // of addresses in call sites
    FORMAT_RESIDENCY = 8, // of big blocks
    FORMAT_STEPS = 9,     // of their residency
    FORMAT_INDEX = 5, // where the OPS frames are; always the last frame, followed by the trailer
};

#define FORMAT_TRAILER_MAGIC 0x31646e4577744848ull // "HHtwEnd1"

enum {
    FORMAT_TRAILER_BYTES = 16, // u64 offset of the INDEX frame, u64 FORMAT_TRAILER_MAGIC

    FORMAT_MAX_OPS = 1 << 17,          // of a frame: bounds what a reader allocates
    FORMAT_MAX_DEPENDENCIES = 1 << 20, // values in the column of dependencies
    FORMAT_MAX_SHAPES = 256,           // of a frame
    FORMAT_MAX_TEXT = 4096,            // bytes of one text
};

// Tags of the fields of HEADER and SUMMARY frames. Wire values, one number space, never reused.
enum format_field {
    FORMAT_F_CLOCK_HZ = 1,
    FORMAT_F_STAMP_SHIFT = 2,
    FORMAT_F_HAS_STAMPS = 3,
    FORMAT_F_START_STAMP = 4,
    FORMAT_F_PID = 5,
    FORMAT_F_EXE = 6,
    FORMAT_F_ALLOCATOR = 7,
    FORMAT_F_ARGV = 8,
    FORMAT_F_STACK_SAMPLE_BYTES = 9,
    FORMAT_F_FORKED_FROM = 10,
    FORMAT_F_EVENTS = 20,
    FORMAT_F_BY_KIND = 21, // pairs of varints: kind, count
    FORMAT_F_THREADS = 22,
    FORMAT_F_SLOTS = 23,
    FORMAT_F_FIRST_STAMP = 24,
    FORMAT_F_LAST_STAMP = 25,
    FORMAT_F_REQUESTED_BYTES = 26,
    FORMAT_F_PEAK_LIVE_BYTES = 27,
    FORMAT_F_LIVE_AT_END_BYTES = 28,
    FORMAT_F_LIVE_AT_END_BLOCKS = 29,
    FORMAT_F_CROSS_THREAD_FREES = 30,
    FORMAT_F_UNMATCHED_FREES = 31,
    FORMAT_F_ORDER_REPAIRED = 32,
    FORMAT_F_ORDER_AMBIGUOUS = 33,
    FORMAT_F_EDGES = 34,
    FORMAT_F_EDGES_NEEDED = 35,
    FORMAT_F_LOST_RECORDS = 36,
    FORMAT_F_SAMPLES_AT = 37,
    FORMAT_F_USABLE_BYTES = 38,
    FORMAT_F_USABLE_REQUESTED_BYTES = 39,
    FORMAT_F_RECORDED_FROM = 40,
    FORMAT_F_RECORDED_TO = 41,
    FORMAT_F_SITES_AT = 42,
    FORMAT_F_RESIDENCY_AT = 43,
    FORMAT_F_CPU_NS = 44,
    FORMAT_F_RECORDING_NS = 45,
    FORMAT_F_PREEXISTING_BLOCKS = 46,
    FORMAT_F_PREEXISTING_BYTES = 47,
    FORMAT_F_CALLS_MIN_NS = 48,
    FORMAT_F_CALLS_MAX_NS = 49,
    FORMAT_F_RESIDENCY_STEPS_AT = 50,
    FORMAT_F_LAST_NUMBER = FORMAT_F_RESIDENCY_STEPS_AT,
};

// Columns of an OPS frame, in the order in which they stand there.
enum format_column {
    FORMAT_COLUMN_BLOCKS,
    FORMAT_COLUMN_ALLOCATED, // slots of ops that allocate one
    FORMAT_COLUMN_USED,      // slots of the other ops that have one
    FORMAT_COLUMN_SIZE,
    FORMAT_COLUMN_MORE,
    FORMAT_COLUMN_ALLOCATED_TIME, // stamps of ops that allocate a slot
    FORMAT_COLUMN_TIME,           // of the others; without stamps: the total order
    FORMAT_COLUMN_DEPENDENCY,
    FORMAT_COLUMN_TEXT,
    FORMAT_COLUMNS,
};

// Byte offsets in the head of an OPS frame's payload; numbers are little-endian.
enum {
    FORMAT_AT_FIRST_OP = 0,      // u64: number of the frame's first op in the total order
    FORMAT_AT_BASE_STAMP = 8,    // u64: that the blocks' first stamps count from
    FORMAT_AT_OPS = 16,          // u32
    FORMAT_AT_BLOCKS = 20,       // u32
    FORMAT_AT_SLOT_LIMIT = 24,   // u32: no slot named so far is as high
    FORMAT_AT_THREAD_LIMIT = 28, // u32: no thread named so far is as high
    FORMAT_AT_AGE_CODES = 32,    // u32: codes of freed slots that are ages
    FORMAT_AT_SHAPES = 36,       // u32
    FORMAT_AT_TEXT_BYTES = 40,   // u32
    FORMAT_AT_FLAGS = 44,        // u32: FORMAT_FLAG_*
    FORMAT_AT_COLUMNS = 48,      // for each column u32 values, u32 bytes in the plane of the rest
    FORMAT_HEAD_BYTES = FORMAT_AT_COLUMNS + 8 * FORMAT_COLUMNS,
    FORMAT_SHAPE_BYTES = 3, // kind, flags, error
};

enum {
    FORMAT_FLAG_RELATIVE_SLOTS =
        1,            // slots freed or resized, where no age names them, are differences
    FORMAT_FLAGS = 1, // all there are

    FORMAT_BLOCK_VALUES = 4, // of a row of the table of blocks: thread, first op, ops, first stamp

    // A shape's flags: those of enum workload's ops, and
    FORMAT_SHAPE_SITE = 0x20, // `value` is there, and is the op's call site
    FORMAT_SHAPE_DEPENDENCIES = 0x40,
    FORMAT_SHAPE_NO_SLOT = 0x80,
    FORMAT_OP_FLAGS = 0x1f, // WORKLOAD_*
};

// What an op does with its slot.
enum format_slot_use {
    FORMAT_SLOT_NONE,
    FORMAT_SLOT_ALLOCATED,
    FORMAT_SLOT_FREED,
    FORMAT_SLOT_KEEP, // a realloc of a block that lives on
};

static inline enum format_slot_use format_slot_use(unsigned kind, unsigned flags)
{
    switch (event_infos[kind].class) {
    case HT_CLASS_ALLOC:
        return flags & WORKLOAD_FAILED ? FORMAT_SLOT_NONE : FORMAT_SLOT_ALLOCATED;
    case HT_CLASS_FREE:
        return FORMAT_SLOT_FREED;
    case HT_CLASS_RESIZE:
        if (flags & WORKLOAD_FROM_NULL)
            return flags & WORKLOAD_FAILED ? FORMAT_SLOT_NONE : FORMAT_SLOT_ALLOCATED;
        return flags & WORKLOAD_FREED ? FORMAT_SLOT_FREED : FORMAT_SLOT_KEEP;
    }
    return FORMAT_SLOT_NONE;
}

// As format_slot_use, but FORMAT_SLOT_NONE for an op that failed or has no slot.
static inline enum format_slot_use format_block_use(const struct workload_op *op)
{
    return op->slot == WORKLOAD_NO_SLOT || op->flags & WORKLOAD_FAILED
               ? FORMAT_SLOT_NONE
               : format_slot_use(op->kind, op->flags);
}

// The fields of an op of this kind, HT_F_*: those of its record, and of a preexisting block how it was allocated.
static inline uint8_t format_op_fields(unsigned kind)
{
    return event_infos[kind].fields | (kind == HT_PREEXISTING ? HT_F_ALIGN | HT_F_VALUE : 0);
}

// May ops of this kind have a call site?
static inline bool format_has_site(unsigned kind)
{
    unsigned class = event_infos[kind].class;
    return (class == HT_CLASS_ALLOC && kind != HT_PREEXISTING) || class == HT_CLASS_RESIZE ||
           kind == HT_POOL_ALLOC || kind == HT_POOL_FREE;
}

// May ops of this kind have these WORKLOAD_* flags, and no slot where they say so?
bool format_flags_valid(unsigned kind, unsigned flags, bool no_slot);

// The number of the op's call site, 0 for none.
static inline uint64_t format_op_site(const struct workload_op *op)
{
    if (op->kind == HT_PREEXISTING)
        return op->value >> 8;
    return format_has_site(op->kind) ? op->value : 0;
}

// Facts as fields of a HEADER or SUMMARY frame. put: 0 or -ENOMEM. get: 0, -EBADMSG, -ENOMEM; what it filled in is
// to be released either way.
int format_put_header(struct buf *b, const struct workload_header *h);
int format_get_header(const uint8_t *at, size_t n, struct workload_header *h);
int format_put_summary(struct buf *b, const struct workload_summary *s);
int format_get_summary(const uint8_t *at, size_t n, struct workload_summary *s);

// Returns the first event kind that the summary counts and the event table lacks, or 0.
unsigned format_unknown_kind(const struct workload_summary *s);

int format_put_samples(struct buf *b, const struct workload_sample *s, size_t n);
// Appends to an array. 0, -EBADMSG, -ENOMEM.
int format_get_samples(const uint8_t *at, size_t n, struct workload_sample **s, size_t *count,
                       size_t *capacity);

int format_put_residency(struct buf *b, const struct workload_residency *r, size_t n);
// The same, for an array that is empty. Each is of a later op than the one before.
int format_get_residency(const uint8_t *at, size_t n, struct workload_residency **r, size_t *count,
                         size_t *capacity);

// Of each op they are in the order of their stamps. They are added to those of `l`, which has none.
int format_put_steps(struct buf *b, const struct workload_residency_step *s, size_t n);
int format_get_steps(const uint8_t *at, size_t n, struct samples_residency *l);

// What the index knows of an OPS frame.
struct format_index_entry {
    uint64_t offset;   // of the frame in the file
    uint64_t first_op; // of the total order
    uint64_t n_ops;
    uint64_t first_stamp, last_stamp;
};

struct format_index {
    uint64_t summary_offset;
    uint64_t ops; // of the whole file
    struct format_index_entry *entries;
    size_t n, capacity;
};

int format_put_index(struct buf *b, const struct format_index *x);
// `entries` is the caller's to free, also after an error. 0, -EBADMSG, -ENOMEM.
int format_get_index(const uint8_t *at, size_t n, struct format_index *x);

#endif
