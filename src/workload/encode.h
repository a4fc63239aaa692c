// Collects ops by thread and encodes the payload of an OPS frame.
#pragma once

#include "base/frame.h"
#include "base/varint.h"
#include "workload/format.h"
#include "workload/planes.h"

// Number of codes for the age of a slot's last use, a power of two. A code for a greater age would
// need as much space as the slot number.
enum { ENCODE_AGE_CODES = 64, ENCODE_NO_BLOCK = 0xffffffff, ENCODE_NO_KEY = 0xffffffff };

enum {
    // Ops per frame. Doubling this would save 1 % of the bytes, but the reader's ops would no
    // longer fit in the L2 cache.
    ENCODE_FRAME_OPS = 1 << 16,
    ENCODE_FRAME_TEXT_BYTES = 1 << 20,
    ENCODE_FRAME_WAIT_VALUES = 1 << 18,
};
_Static_assert((int)ENCODE_FRAME_OPS <= (int)FORMAT_MAX_OPS &&
                   (int)ENCODE_FRAME_WAIT_VALUES < (int)FORMAT_MAX_DEPENDENCIES,
               "readers accept it");
_Static_assert(ENCODE_FRAME_OPS - 1 <= UINT16_MAX,
               "encode.slots holds the number of an op of a frame");

enum { ENCODE_MAX_PARTS = 4 + 2 * FORMAT_COLUMNS }; // head, shapes, strings

// Flag in encode_block.used: the last use of the slot is not recent, so the slot is coded by
// number. pack.c chooses the form of the number when the frame is complete.
#define ENCODE_BY_NUMBER (1ull << 63)

// A block's column in two planes, with space for one value per op.
struct encode_column {
    uint8_t *first, *rest;
    uint8_t *first_at, *rest_at; // positions of the next value
};

static inline size_t encode_values(const struct encode_column *c)
{
    return (size_t)(c->first_at - c->first);
}

// Growing array of numbers.
struct encode_words {
    uint64_t *at;
    size_t n, capacity;
};

// Columns of a block.
enum {
    ENCODE_ALLOCATED,
    ENCODE_SIZES,
    ENCODE_TIMES,
    ENCODE_ALLOCATED_TIMES, // follows ENCODE_TIMES
    ENCODE_COLUMNS
};

// State of a block's slot codes. encode_simple keeps a copy in registers. The struct has no other
// members, because a CPU cannot forward a store to one member to a load of several members.
struct encode_cursor {
    uint64_t *used;  // codes of freed or resized slots
    uint32_t *freed; // stack of slots that were freed and have not been allocated again
    uint32_t n_used, n_freed;
    uint32_t uses;          // number of allocations and reallocs
    uint32_t last_explicit; // slot last encoded by number
};

struct encode_stamp {
    uint64_t stamp;
    uint32_t op; // number in the block
};

// Ops of one thread in the current frame.
struct encode_block {
    uint32_t thread;
    uint32_t serial; // unique across all frames
    uint64_t first_op;
    size_t capacity; // capacity of shapes, of stamps, of the columns, and of the arrays of `at`
    uint8_t *shapes;
    // Stamps of the first op and of each op whose stamp exceeds the previous one.
    struct encode_stamp *stamps;
    uint32_t n_stamps, n_ops;
    struct encode_column columns[ENCODE_COLUMNS];
    struct encode_cursor at;
    // Slots used most recently, indexed by the number of the use modulo ENCODE_AGE_CODES.
    uint32_t recent[ENCODE_AGE_CODES];
    struct encode_words more, texts;
    struct encode_words dependencies; // in the file's format after encode_end_frame
    struct buf text;
};

struct encode_thread {
    uint64_t next_op, last_stamp;
    uint64_t dependency_op; // op that the last dependency on this thread names
    uint32_t wait_serial;   // serial of the block that contains the last dependency
    uint32_t block;         // index of the thread's block in the frame, or ENCODE_NO_BLOCK
};

// The shape of an op (kind, flags, error or allocator), and properties derived from the shape.
struct encode_shape {
    uint32_t key;   // kind | flags << 8 | (error or allocator) << 16, or ENCODE_NO_KEY
    uint8_t fields; // HT_F_*
    uint8_t use;    // enum format_slot_use
    bool simple;    // the shape has a slot, but no dependencies, and no field except the size
};

// Ops of a frame. The struct has no pointers into the encoder, so another thread can call
// encode_pack.
struct encode_frame {
    bool has_stamps;
    uint32_t n_ops, n_shapes, n_blocks;
    size_t text_bytes, dependency_values;
    struct encode_shape shapes[FORMAT_MAX_SHAPES];
    struct encode_block *blocks;
    size_t blocks_capacity;
    // If there are no stamps: the total order, as pairs of a block and a number of ops.
    struct encode_words switches;
    // encode_end_frame sets the following members.
    uint64_t first_op; // the first op's number in the total order
    size_t slot_limit, thread_limit;
};

void encode_frame_release(struct encode_frame *f);

struct encode {
    bool has_stamps;
    struct encode_frame frame; // current frame
    uint16_t shape_cache[256]; // maps the hash of a shape's key to the index of the shape
    uint16_t
        simple_shapes[HT_KIND_LIMIT]; // by kind: index of the shape of simple ops, plus 1, or 0
    struct encode_thread *threads;
    size_t n_threads, threads_capacity;
    uint16_t *slots; // by slot: number of the slot's last use in its block
    size_t n_slots, slots_capacity;
    uint32_t serial;
    uint32_t last_block; // block of the previous op
    uint64_t ops;        // number of ops in earlier frames
};

void encode_init(struct encode *x);
void encode_release(struct encode *x);

// Appends an op. Returns 0, -EAGAIN if the frame has no space for another shape, -EINVAL if the op
// violates the format, or -ENOMEM. After -EINVAL or -ENOMEM, the frame is unusable.
int encode_op(struct encode *x, uint32_t thread, const struct workload_op *op);

// Appends ops of a thread. Their stamps must not decrease. Stops at the first op that only
// encode_op can append. Such an op has a shape that is new in the frame, is the first op of its
// thread or block, or does not fit in the frame or the block. Returns the number of appended ops.
size_t encode_simple(struct encode *x, uint32_t thread, const struct workload_simple *ops,
                     size_t n);

// Ends the current frame and moves it to *done. The next frame reuses the storage of *done, which
// must be zeroed or hold a frame that has been written.
void encode_end_frame(struct encode *x, struct encode_frame *done);

// Payload of an OPS frame, divided into parts with different statistics. Most parts are planes.
struct encode_payload {
    struct buf bytes;
    struct frame_part parts[ENCODE_MAX_PARTS]; // point into bytes
    size_t n_parts;
    struct frame_hint hints[1 + 2 * FORMAT_COLUMNS]; // one for the shapes and two per column
};

// Encodes a frame that encode_end_frame has ended. Returns 0 or -ENOMEM.
int encode_pack(const struct encode_frame *f, struct encode_payload *payload);

// Prefetches the slot's data for encode_op and encode_simple.
static inline __attribute__((always_inline)) void encode_prefetch(const struct encode *x,
                                                                  uint32_t slot)
{
    if (slot < x->n_slots)
        __builtin_prefetch(&x->slots[slot], 1);
}

static inline bool encode_is_full(const struct encode_frame *f)
{
    return f->n_ops >= ENCODE_FRAME_OPS || f->text_bytes >= ENCODE_FRAME_TEXT_BYTES ||
           f->dependency_values >= ENCODE_FRAME_WAIT_VALUES;
}

// Returns the lowest and highest stamp of the frame in *first and *last.
void encode_stamps(const struct encode_frame *f, uint64_t *first, uint64_t *last);
