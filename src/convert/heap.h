// Heap of a fork child: the blocks that were live in the parent at the fork, at the same addresses.
#ifndef HEAPTAPE_CONVERT_HEAP_H
#define HEAPTAPE_CONVERT_HEAP_H

#include "convert/order/order.h"

// How the block of a slot was allocated; the order does not store it.
struct heap_note {
    uint64_t size, stamp;
    uint32_t site; // number in the order; 0: unknown
    uint8_t kind, align_log2;
    bool size_unknown;
};

// By slot. All zero is empty.
struct heap_notes {
    struct heap_note *items;
    size_t n, capacity;
};

void heap_notes_release(struct heap_notes *h);

// Stores how the ops allocated their blocks. Returns 0 or -ENOMEM.
int heap_note_ops(struct heap_notes *h, const struct workload_thread_op *ops, size_t n);

struct heap_block {
    uint64_t address, size;
    uint64_t stamp; // stamp of the allocation
    uint64_t site;  // id in the trace; 0: unknown
    uint8_t kind, align_log2;
    bool size_unknown;
};

// Stack frame of a call site, by its id in the trace.
struct heap_frame {
    uint64_t id, parent;
    struct workload_frame frame;
};

// All zero is empty. Does not refer to the order that it was copied from.
struct heap {
    uint64_t stamp, limit; // stamps of the fork and of the last allocation before it
    struct heap_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct heap_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites modules; // modules of the frames, without sites
};

void heap_release(struct heap *h);

// Emits the ops of the parent up to the fork and copies its live blocks into the empty heap.
// Requires that all events up to `stamp` plus the skid were fed. Blocks that the parent has freed
// in ops already emitted are missing. Returns 0, or a negative errno, which may come from the sink.
int heap_copy(struct heap *h, struct order *parent, const struct heap_notes *notes, uint64_t stamp);

// Visits the blocks that are live after the emitted ops, including blocks with a pending realloc.
// Stops when `visit` returns a value other than 0, and returns it. Returns 0 or -ENOMEM.
int heap_each(const struct order *o, const struct heap_notes *notes,
              int (*visit)(void *context, const struct heap_block *b), void *context);

// Adds the blocks to the child as PREEXISTING ops of its first thread. Returns 0, or a negative
// errno.
int heap_restore(const struct heap *h, struct order *child);

#endif
