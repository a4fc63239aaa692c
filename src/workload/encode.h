// Collects ops by thread and encodes the payload of an OPS frame.
#ifndef HEAPTAPE_WORKLOAD_ENCODE_H
#define HEAPTAPE_WORKLOAD_ENCODE_H

#include "base/frame.h"
#include "base/varint.h"
#include "workload/format.h"
#include "workload/planes.h"

// Number of ages that have a code. Must be a power of two. The code of a larger age would take as
// much space as the slot number.
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

// Flag in encode_block.used: the slot has no short age. The code of such a slot is chosen once the
// whole frame is known.
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

// Ops of one thread in the current frame.
struct encode_block {
    uint32_t thread;
    uint32_t n_ops, n_used;
    uint64_t first_op;
    size_t capacity; // capacity of each of the next eight arrays
    uint8_t *shapes;
    uint64_t *stamps;
    uint64_t *used;  // codes of freed or resized slots
    uint32_t *freed; // stack of the slots that were freed and not allocated again
    struct encode_column allocated, sizes, allocated_times, times;
    uint32_t n_freed;
    uint32_t uses;          // number of allocations and reallocs
    uint32_t last_explicit; // slot last encoded by number
    uint32_t serial;        // unique across all frames
    // Slots of the most recent uses, indexed by the number of the use.
    uint32_t recent[ENCODE_AGE_CODES];
    struct encode_words more, texts;
    struct encode_words dependencies; // in the file's format after encode_end_frame
    struct buf text;
};

struct encode_thread {
    uint64_t next_op, last_stamp;
    uint64_t dependency_op; // op of this thread that the last dependency on this thread names
    uint32_t wait_serial;   // serial of the block that contains that dependency
    uint32_t block;         // index of the thread's block in the frame, or ENCODE_NO_BLOCK
};

// A shape with derived properties.
struct encode_shape {
    uint32_t key;   // kind | flags << 8 | error << 16, or ENCODE_NO_KEY
    uint8_t fields; // HT_F_*
    uint8_t use;    // enum format_slot_use
    bool simple;    // the shape has a slot, but no dependencies and no fields besides the size
};

// Ops of a frame. The frame refers to nothing else, so another thread can call encode_pack.
struct encode_frame {
    bool has_stamps;
    uint32_t n_ops, n_shapes, n_blocks;
    size_t text_bytes, dependency_values;
    struct encode_shape shapes[FORMAT_MAX_SHAPES];
    struct encode_block *blocks;
    size_t blocks_capacity;
    // Without stamps, pairs of a block and a number of consecutive ops in that block.
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
    struct encode_thread *threads;
    size_t n_threads, threads_capacity;
    uint16_t *slots; // number of each slot's last use in the block that last used it
    size_t n_slots, slots_capacity;
    uint32_t serial;
    uint32_t last_block; // block of the previous op
    uint64_t ops;        // number of ops in earlier frames
};

void encode_init(struct encode *x);
void encode_release(struct encode *x);

// Appends an op. Returns 0, -EAGAIN if the frame has no room for another shape, -EINVAL if the op
// violates the format, or -ENOMEM. After -EINVAL or -ENOMEM, the frame is unusable.
int encode_op(struct encode *x, uint32_t thread, const struct workload_op *op);

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

// Prefetches the slot's data for encode_op.
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

static inline __attribute__((always_inline)) void encode_put(struct encode_column *c, uint64_t v)
{
    planes_put(&c->first_at, &c->rest_at, v);
}

// encode_key packs a shape's kind, flags and error into one number. encode_shape_place returns the
// key's index in the shape cache.
static inline uint32_t encode_key(unsigned kind, uint32_t flags, unsigned error)
{
    return kind | flags << 8 | error << 16;
}

static inline unsigned encode_shape_place(uint32_t key)
{
    return (key ^ key >> 5 ^ key >> 13) % 256;
}

static inline uint64_t encode_allocated(struct encode_block *b, uint32_t slot)
{
    if (b->n_freed && b->freed[b->n_freed - 1] == slot) {
        b->n_freed--;
        return 0;
    }
    uint64_t code = 1 + zigzag_put((int64_t)slot - b->last_explicit);
    b->last_explicit = slot;
    return code;
}

// Returns the age of the slot's last use in the block; `use` is the number of that use. If `recent`
// no longer contains that use, returns the slot with ENCODE_BY_NUMBER set.
static inline uint64_t encode_used(const struct encode_block *b, uint32_t use, uint32_t slot)
{
    uint32_t age = b->uses - 1 - use;
    bool young = age < ENCODE_AGE_CODES && b->recent[use % ENCODE_AGE_CODES] == slot;
    return young ? age : ENCODE_BY_NUMBER | slot;
}

static inline void encode_remember(struct encode_block *b, uint16_t *use, uint32_t slot)
{
    *use = (uint16_t)b->uses++;
    b->recent[*use % ENCODE_AGE_CODES] = slot;
}

// Appends the code of a known slot.
static inline __attribute__((always_inline)) void
encode_slot(struct encode *x, struct encode_block *b, uint32_t slot, unsigned use)
{
    if (use == FORMAT_SLOT_ALLOCATED)
        encode_put(&b->allocated, encode_allocated(b, slot));
    else
        b->used[b->n_used++] = encode_used(b, x->slots[slot], slot);
    if (use == FORMAT_SLOT_FREED)
        b->freed[b->n_freed++] = slot;
    else
        encode_remember(b, &x->slots[slot], slot);
}

// Returns the op's shape if encode_simple can append the op. Returns NULL if encode_op must append
// it, because the op is not simple, is the first op of its thread, slot or block, or because the
// frame is full.
static inline __attribute__((always_inline)) const struct encode_shape *
encode_simple_shape(const struct encode *x, uint32_t thread, const struct workload_op *op)
{
    uint32_t key = encode_key(op->kind, op->flags, op->error);
    const struct encode_shape *shape = &x->frame.shapes[x->shape_cache[encode_shape_place(key)]];
    if (shape->key != key || !shape->simple || (op->value | op->n_dependencies) ||
        op->slot >= x->n_slots || thread >= x->n_threads ||
        x->threads[thread].block == ENCODE_NO_BLOCK || encode_is_full(&x->frame))
        return NULL;
    const struct encode_thread *t = &x->threads[thread];
    const struct encode_block *b = &x->frame.blocks[t->block];
    // Without stamps, encode_op must record each switch between blocks.
    bool follows = x->has_stamps ? op->stamp >= t->last_stamp : t->block == x->last_block;
    return b->n_ops && b->n_ops < b->capacity && follows ? shape : NULL;
}

// Appends a simple op. This is the fast path that handles nearly all ops. `use` is shape->use.
static inline __attribute__((always_inline)) void encode_simple(struct encode *x, uint32_t thread,
                                                                const struct encode_shape *shape,
                                                                unsigned use,
                                                                const struct workload_op *op)
{
    struct encode_thread *t = &x->threads[thread];
    struct encode_block *b = &x->frame.blocks[t->block];
    encode_slot(x, b, op->slot, use);
    if (x->has_stamps)
        encode_put(use == FORMAT_SLOT_ALLOCATED ? &b->allocated_times : &b->times,
                   op->stamp - t->last_stamp);
    else
        x->frame.switches.at[x->frame.switches.n - 1]++;
    if (shape->fields & HT_F_SIZE)
        encode_put(&b->sizes, op->size);
    b->shapes[b->n_ops] = (uint8_t)(shape - x->frame.shapes);
    b->stamps[b->n_ops++] = t->last_stamp = op->stamp;
    t->next_op++;
    x->frame.n_ops++;
}

// Returns the lowest and highest stamp of the frame in *first and *last.
void encode_stamps(const struct encode_frame *f, uint64_t *first, uint64_t *last);

#endif
