// Wire format of workloads, shared by writer and reader: docs/reference/workload-format.md.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "workload/samples.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

// Frame types. Wire values.
enum format_frame {
    FORMAT_HEADER = 1,    // fields; always the first frame
    FORMAT_OPS = 2,       // window of the total order of ops
    FORMAT_SAMPLES = 3,   // memory of the recorded program
    FORMAT_SUMMARY = 4,   // fields
    FORMAT_SITES = 6,     // call sites
    FORMAT_NAMES = 7,     // names of the addresses in the call sites
    FORMAT_RESIDENCY = 8, // residency of big blocks
    FORMAT_STEPS = 9,     // residency of big blocks over time
    FORMAT_INDEX = 5, // positions of the OPS frames. Always the last frame, just before the trailer
};

#define FORMAT_TRAILER_MAGIC 0x31646e4577744848ull // "HHtwEnd1"

enum {
    FORMAT_TRAILER_BYTES = 16, // u64 offset of the INDEX frame, u64 FORMAT_TRAILER_MAGIC

    FORMAT_MAX_OPS = 1 << 17, // limit per frame, which bounds the reader's memory
    // Limit per frame on the number of values in the dependency column.
    FORMAT_MAX_DEPENDENCIES = 1 << 20,
    FORMAT_MAX_SHAPES = 256, // limit per frame
    FORMAT_MAX_TEXT = 4096,  // limit per string
};

// Members of struct workload_summary: X(tag, member, merge). `merge` is ADD if the value for
// several processes is the sum of their values.
// clang-format off
#define FORMAT_SUMMARY_TABLE(X) \
    X(20, events, ADD) \
    X(22, threads, ADD) \
    X(23, slots, ADD) \
    X(24, first_stamp, KEEP) \
    X(25, last_stamp, KEEP) \
    X(26, requested_bytes, ADD) \
    X(27, peak_live_bytes, ADD) \
    X(28, live_at_end_bytes, ADD) \
    X(29, live_at_end_blocks, ADD) \
    X(30, remote_frees, ADD) \
    X(31, unmatched_frees, ADD) \
    X(32, order_repaired, ADD) \
    X(33, order_ambiguous, ADD) \
    X(34, dependencies, ADD) \
    X(35, dependencies_needed, ADD) \
    X(36, lost_records, ADD) \
    X(37, samples_at, KEEP) \
    X(38, usable_bytes, ADD) \
    X(39, usable_requested_bytes, ADD) \
    X(40, recorded_from, KEEP) \
    X(41, recorded_to, KEEP) \
    X(42, sites_at, KEEP) \
    X(43, residency_at, KEEP) \
    X(44, cpu_ns, ADD) \
    X(45, recording_ns, ADD) \
    X(46, preexisting_blocks, ADD) \
    X(47, preexisting_bytes, ADD) \
    X(48, calls_min_ns, ADD) \
    X(49, calls_max_ns, ADD) \
    X(50, residency_steps_at, KEEP) \
    X(51, recording_rss_bytes, KEEP) \
    X(55, early_events, KEEP) \
    X(56, early_max_ns, KEEP) \
    X(57, early_usual_ns, KEEP) \
    X(58, cxx_bytes, KEEP) \
    X(59, peak_rss_bytes, KEEP) \
    X(60, libraries, KEEP)
// clang-format on

// Field tags of HEADER and SUMMARY frames. Wire values, which are never reused. Both frames share
// one number space.
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
    FORMAT_F_ALLOCATOR_BUILD_ID = 11,
    FORMAT_F_HEAPTAPE = 12,
    FORMAT_F_BY_KIND = 21, // pairs of varints: kind, count
};

// Columns of an OPS frame, in wire order.
enum format_column {
    FORMAT_COLUMN_BLOCKS,
    FORMAT_COLUMN_ALLOCATED, // slots of ops that allocate
    FORMAT_COLUMN_USED,      // slots of other ops
    FORMAT_COLUMN_SIZE,
    FORMAT_COLUMN_MORE,
    FORMAT_COLUMN_ALLOCATED_TIME, // stamps of ops that allocate a slot
    FORMAT_COLUMN_TIME,           // stamps of other ops or, without stamps, the total order
    FORMAT_COLUMN_DEPENDENCY,
    FORMAT_COLUMN_TEXT,
    FORMAT_COLUMNS,
};

// Byte offsets in the head of an OPS payload. Numbers are little-endian.
enum {
    FORMAT_AT_FIRST_OP = 0,      // u64: the first op's number in the total order
    FORMAT_AT_BASE_STAMP = 8,    // u64: the first stamp of each block is relative to this stamp
    FORMAT_AT_OPS = 16,          // u32
    FORMAT_AT_BLOCKS = 20,       // u32
    FORMAT_AT_SLOT_LIMIT = 24,   // u32: exceeds every slot so far
    FORMAT_AT_THREAD_LIMIT = 28, // u32: exceeds every thread so far
    FORMAT_AT_AGE_CODES = 32,    // u32: number of codes that denote ages
    FORMAT_AT_SHAPES = 36,       // u32
    FORMAT_AT_TEXT_BYTES = 40,   // u32
    FORMAT_AT_FLAGS = 44,        // u32: FORMAT_FLAG_*
    FORMAT_AT_COLUMNS = 48,      // per column: u32 number of values, u32 bytes in the second plane
    FORMAT_HEAD_BYTES = FORMAT_AT_COLUMNS + 8 * FORMAT_COLUMNS,
    FORMAT_SHAPE_BYTES = 3, // kind, flags, error or allocator (format_has_allocator)
};

enum {
    FORMAT_FLAG_RELATIVE_SLOTS = 1, // slots that are coded by number are stored as differences
    FORMAT_FLAGS = 1,               // all known flags

    // Values per row of the block table: thread, first op, number of ops, first stamp.
    FORMAT_BLOCK_VALUES = 4,

    // Flags of a shape. A shape also has the WORKLOAD_* flags.
    FORMAT_SHAPE_SITE = 0x20, // `value` is present and holds the call site
    FORMAT_SHAPE_DEPENDENCIES = 0x40,
    FORMAT_SHAPE_NO_SLOT = 0x80,
    FORMAT_OP_FLAGS = 0x1f, // mask of WORKLOAD_*
};

// Effect of an op on its slot.
enum format_slot_use {
    FORMAT_SLOT_NONE,
    FORMAT_SLOT_ALLOCATED,
    FORMAT_SLOT_FREED,
    FORMAT_SLOT_KEEP, // a realloc, which keeps the slot
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

// Like format_slot_use, but returns FORMAT_SLOT_NONE if the op failed or does not have a slot.
static inline enum format_slot_use format_block_use(const struct workload_op *op)
{
    return op->slot == WORKLOAD_NO_SLOT || op->flags & WORKLOAD_FAILED
               ? FORMAT_SLOT_NONE
               : format_slot_use(op->kind, op->flags);
}

// Returns the HT_F_* fields of ops of this kind. A PREEXISTING op also has the fields of the call
// that allocated the block.
static inline uint8_t format_op_fields(unsigned kind)
{
    return event_infos[kind].fields | (kind == HT_PREEXISTING ? HT_F_ALIGN | HT_F_VALUE : 0);
}

// Returns true if ops of this kind can have a call site.
static inline bool format_has_site(unsigned kind)
{
    unsigned class = event_infos[kind].class;
    return (class == HT_CLASS_ALLOC && kind != HT_PREEXISTING) || class == HT_CLASS_RESIZE ||
           kind == HT_POOL_ALLOC || kind == HT_POOL_FREE;
}

// Returns true if the shape of an op contains the op's allocator instead of its error. Calls that
// succeed have no error.
static inline bool format_has_allocator(unsigned kind, unsigned flags)
{
    unsigned class = event_infos[kind].class;
    return class >= HT_CLASS_ALLOC && class <= HT_CLASS_RESIZE && !(flags & WORKLOAD_FAILED);
}

// Returns true if ops of this kind may have these WORKLOAD_* flags. If `no_slot` is set, such ops
// must also be allowed to lack a slot.
bool format_flags_valid(unsigned kind, unsigned flags, bool no_slot);

// Returns the number of the op's call site, or 0.
static inline uint64_t format_op_site(const struct workload_op *op)
{
    if (op->kind == HT_PREEXISTING)
        return op->value >> 8;
    return format_has_site(op->kind) ? op->value : 0;
}

// Encode and decode the fields of HEADER and SUMMARY frames. The put functions return 0 or -ENOMEM.
// The get functions return 0, -EBADMSG or -ENOMEM; the caller must release the result even after an
// error.
int format_put_header(struct buf *b, const struct workload_header *h);
int format_get_header(const uint8_t *at, size_t n, struct workload_header *h);
int format_put_summary(struct buf *b, const struct workload_summary *s);
int format_get_summary(const uint8_t *at, size_t n, struct workload_summary *s);

// Returns the first unknown event kind counted in the summary, or 0.
unsigned format_unknown_kind(const struct workload_summary *s);

int format_put_samples(struct buf *b, const struct workload_sample *s, size_t n);
// Appends the decoded samples to an array. Returns 0, -EBADMSG or -ENOMEM.
int format_get_samples(const uint8_t *at, size_t n, struct workload_sample **s, size_t *count,
                       size_t *capacity);

int format_put_residency(struct buf *b, const struct workload_residency *r, size_t n);
// Decodes into an empty array and sorts it by op. Returns 0, -EBADMSG or -ENOMEM.
int format_get_residency(const uint8_t *at, size_t n, struct workload_residency **r, size_t *count,
                         size_t *capacity);

int format_put_steps(struct buf *b, const struct workload_residency_step *s, size_t n);
// Decodes into the empty steps of *l and sorts them by op and stamp. Returns 0, -EBADMSG or
// -ENOMEM.
int format_get_steps(const uint8_t *at, size_t n, struct samples_residency *l);

// Index entry of an OPS frame.
struct format_index_entry {
    uint64_t offset;   // offset of the frame in the file
    uint64_t first_op; // number of the first op in the total order
    uint64_t n_ops;
    uint64_t first_stamp, last_stamp;
};

struct format_index {
    uint64_t summary_offset;
    uint64_t ops; // number of ops in the file
    struct format_index_entry *entries;
    size_t n, capacity;
};

int format_put_index(struct buf *b, const struct format_index *x);
// Decodes an index. The caller must free `entries`, even after an error. Returns 0, -EBADMSG or
// -ENOMEM.
int format_get_index(const uint8_t *at, size_t n, struct format_index *x);
