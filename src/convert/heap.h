// Heap of a fork child: the blocks that were live in the parent at the time of the fork, at the
// same addresses.
#pragma once

#include "convert/order/order.h"

// How the block of a slot was allocated. struct order does not store this information.
struct heap_note {
    uint64_t size, stamp;
    uint32_t site; // number of the site within the order, or 0 if unknown
    uint8_t kind, align_log2, allocator;
    bool size_unknown;
};

// A block that was freed or resized at `stamp`.
struct heap_freed {
    uint64_t stamp, address;
    struct heap_note note;
};

// Information about a process's blocks. A struct of zeros has no blocks.
struct heap_notes {
    struct heap_note *items;
    size_t n, capacity;
    // Blocks that were freed recently, oldest first. Entries before first_freed are no longer
    // valid.
    struct heap_freed *freed;
    size_t first_freed, n_freed, freed_capacity;
};

void heap_notes_release(struct heap_notes *h);

// Records how the ops allocated their blocks and, unless `calls` is NULL, the blocks that they
// freed. Returns 0 or -ENOMEM.
int heap_note_ops(struct heap_notes *h, const struct workload_thread_op *ops,
                  const struct order_call *calls, size_t n);

// Forgets the blocks that were freed before `stamp`.
void heap_forget_freed(struct heap_notes *h, uint64_t stamp);

struct heap_block {
    uint64_t address, size;
    uint64_t stamp; // stamp at which the block was allocated
    uint64_t site;  // trace id of the call site, or 0 if unknown
    uint8_t kind, align_log2, allocator;
    bool size_unknown;
};

// A stack frame of a call site. The trace id identifies the frame.
struct heap_frame {
    uint64_t id, parent;
    struct workload_frame frame;
};

// A struct of zeros is a heap without blocks. The heap does not refer to the order from which it
// was copied.
struct heap {
    // `stamp` is the stamp of the fork. Allocations up to `limit` count as earlier than the fork.
    uint64_t stamp, limit;
    struct heap_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct heap_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites modules; // modules of the frames; has no sites
};

void heap_release(struct heap *h);

// Emits the parent's ops up to the fork and copies the parent's live blocks into the empty heap.
// Requires that all events up to `stamp` plus the skid have been fed. If the order has already
// emitted a free after the fork, the freed block is copied only if the notes still contain it.
// Returns 0, or a negative errno; the error may come from the sink.
int heap_copy(struct heap *h, struct order *parent, const struct heap_notes *notes, uint64_t stamp);

// Visits the blocks that are live after the emitted ops, including blocks with a pending realloc.
// If `visit` returns nonzero, stops and returns that value. Otherwise returns 0 or -ENOMEM.
int heap_each(const struct order *o, const struct heap_notes *notes,
              int (*visit)(void *context, const struct heap_block *b), void *context);

// Adds the blocks to the child as PREEXISTING ops of its first thread. Returns 0, or a negative
// errno.
int heap_restore(const struct heap *h, struct order *child);
