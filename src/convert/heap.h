// Heap of a fork child: the blocks that were live in the parent at the time of the fork, at the
// same addresses.
#ifndef HEAPTAPE_CONVERT_HEAP_H
#define HEAPTAPE_CONVERT_HEAP_H

#include "convert/order/order.h"

// Allocation of a slot's block. The order itself does not store these facts.
struct heap_note {
    uint64_t size, stamp;
    uint32_t site; // number within the order; 0: unknown
    uint8_t kind, align_log2;
    bool size_unknown;
};

// A block that was freed or resized at `stamp`.
struct heap_freed {
    uint64_t stamp, address;
    struct heap_note note;
};

// Items are indexed by slot. Empty if all zero.
struct heap_notes {
    struct heap_note *items;
    size_t n, capacity;
    // Blocks freed recently, oldest first; the entries before first_freed have been forgotten.
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
    uint64_t stamp; // when the block was allocated
    uint64_t site;  // trace id; 0: unknown
    uint8_t kind, align_log2;
    bool size_unknown;
};

// Stack frame of a call site, identified by its trace id.
struct heap_frame {
    uint64_t id, parent;
    struct workload_frame frame;
};

// Empty if all zero. Independent of the order it was copied from.
struct heap {
    // `stamp` is the stamp of the fork. Allocations up to `limit` count as before the fork.
    uint64_t stamp, limit;
    struct heap_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct heap_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites modules; // modules of the frames; has no sites
};

void heap_release(struct heap *h);

// Emits the parent's ops up to the fork and copies its live blocks into the empty heap. Requires
// that all events up to `stamp` plus the skid have been fed. Blocks that the parent freed in ops
// already emitted are missing unless the notes still contain them. Returns 0, or a negative errno;
// the error may come from the sink.
int heap_copy(struct heap *h, struct order *parent, const struct heap_notes *notes, uint64_t stamp);

// Visits the blocks that are live after the emitted ops, including blocks with a pending realloc.
// If `visit` returns nonzero, stops and returns that value. Otherwise returns 0 or -ENOMEM.
int heap_each(const struct order *o, const struct heap_notes *notes,
              int (*visit)(void *context, const struct heap_block *b), void *context);

// Adds the blocks to the child as PREEXISTING ops of its first thread. Returns 0, or a negative
// errno.
int heap_restore(const struct heap *h, struct order *child);

#endif
