// Collects ops by thread and packs them into the payload of an OPS frame.
#ifndef HEAPTAPE_WORKLOAD_ENCODE_H
#define HEAPTAPE_WORKLOAD_ENCODE_H

#include "base/frame.h"
#include "workload/format.h"

// Ages that a slot's code can name: small ones, because a slot number is as short as a great age. A power of two.
enum { ENCODE_AGE_CODES = 64, ENCODE_NO_BLOCK = 0xffffffff, ENCODE_NO_KEY = 0xffffffff };

enum { ENCODE_MAX_PARTS = 4 + 2 * FORMAT_COLUMNS }; // head, shapes, texts

// A slot freed up or resized that no age names stands in encode_block.used as itself with this bit: how it is written
// is decided for the whole frame.
#define ENCODE_BY_NUMBER (1ull << 63)

// A column of one block as it grows, in its two planes. There is room for a value of each op.
struct encode_column {
    uint8_t *first, *rest;
    uint8_t *first_at, *rest_at; // where the next value goes
};

static inline size_t encode_values(const struct encode_column *c)
{
    return (size_t)(c->first_at - c->first);
}

// A growable array of numbers.
struct encode_words {
    uint64_t *at;
    size_t n, capacity;
};

// The ops of one thread in the frame under work.
struct encode_block {
    uint32_t thread;
    uint32_t n_ops, n_used;
    uint64_t first_op;
    size_t capacity; // of each of the next eight
    uint8_t *shapes;
    uint64_t *stamps;
    uint64_t *used;  // codes of slots freed up or resized
    uint32_t *freed; // slots freed up and not allocated again, last one on top
    struct encode_column allocated, sizes, allocated_times, times;
    uint32_t n_freed;
    uint32_t uses;                     // allocations and reallocs so far
    uint32_t last_explicit;            // slot
    uint32_t serial;                   // distinguishes blocks of all frames
    uint32_t recent[ENCODE_AGE_CODES]; // slots of the last uses, by their number
    struct encode_words more, texts;
    struct encode_words dependencies; // as they stand in the file once the frame is allocated
    struct buf text;
};

struct encode_thread {
    uint64_t next_op, last_stamp;
    uint64_t dependency_op; // last waited for …
    uint32_t wait_serial;   // … by the block of this serial
    uint32_t block;         // index in the frame, or ENCODE_NO_BLOCK
};

// A shape of the frame, with what follows from it.
struct encode_shape {
    uint32_t key;   // kind | flags << 8 | error << 16, or ENCODE_NO_KEY
    uint8_t fields; // HT_F_*
    uint8_t use;    // enum format_slot_use
    bool simple;    // has a slot, no dependencies, and no field but the size
};

// The ops of one frame. All that is needed to write them is in here, so that another thread can do it.
struct encode_frame {
    bool has_stamps;
    uint32_t n_ops, n_shapes, n_blocks;
    size_t text_bytes, dependency_values;
    struct encode_shape shapes[FORMAT_MAX_SHAPES];
    struct encode_block *blocks;
    size_t blocks_capacity;
    struct encode_words switches; // without stamps: block, ops in a row
    // Filled in by encode_end_frame:
    uint64_t first_op; // number of its first op in the total order
    size_t slot_limit, thread_limit;
};

void encode_frame_release(struct encode_frame *f);

struct encode {
    bool has_stamps;
    struct encode_frame frame; // under work
    uint16_t shape_cache[256]; // hash of a shape's key → its index
    struct encode_thread *threads;
    size_t n_threads, threads_capacity;
    uint32_t *slots; // number of the slot's last use in the block that used it last
    size_t n_slots, slots_capacity;
    uint32_t serial;
    uint32_t last_block; // of the op before
    uint64_t ops;        // in all frames before
};

void encode_init(struct encode *x);
void encode_release(struct encode *x);

// Adds an op. -EAGAIN when the frame has no room for another shape, -EINVAL when the op breaks a rule of the format,
// -ENOMEM. After the latter two the frame is good for nothing.
int encode_op(struct encode *x, uint32_t thread, const struct workload_op *op);

// Adds what it can of the ops, quickly: simple ones, while there is room for them. How many from the first on, which may be
// none: encode_op accepts any.
size_t encode_run(struct encode *x, const struct workload_thread_op *ops, size_t n);

// Ends the frame under work, which becomes *done. The next one takes over the storage of what *done was before: all
// zero, or a frame that has been written.
void encode_end_frame(struct encode *x, struct encode_frame *done);

// A payload, and where it is cut into parts of unlike statistics: planes, above all.
struct encode_payload {
    struct buf bytes;
    struct frame_part parts[ENCODE_MAX_PARTS]; // point into bytes
    size_t n_parts;
    struct frame_hint hints[1 + 2 * FORMAT_COLUMNS]; // of the planes, and of the shapes
};

// The payload of a frame that encode_end_frame ended. 0 or -ENOMEM.
int encode_pack(const struct encode_frame *f, struct encode_payload *payload);

// Fetches what encode_op will need of the slot.
static inline __attribute__((always_inline)) void encode_prefetch(const struct encode *x, uint32_t slot)
{
    if (slot < x->n_slots)
        __builtin_prefetch(&x->slots[slot], 1);
}

// The smallest and the greatest stamp of its ops.
void encode_stamps(const struct encode_frame *f, uint64_t *first, uint64_t *last);

#endif
