// The heap that a fork child begins with: the blocks that were live in its parent at the fork, at the same addresses.
#ifndef HEAPTAPE_CONVERT_HEAP_H
#define HEAPTAPE_CONVERT_HEAP_H

#include "convert/order/order.h"

// How the block of a slot was allocated: what the order does not keep.
struct heap_note {
    uint64_t size, stamp;
    uint32_t site; // the order's number of its call site, 0: not known
    uint8_t kind, align_log2;
    bool size_unknown;
};

// By slot. All zero is empty.
struct heap_notes {
    struct heap_note *items;
    size_t n, capacity;
};

void heap_notes_release(struct heap_notes *h);

// Takes note of the parent's ops. 0 or -ENOMEM.
int heap_note_ops(struct heap_notes *h, const struct workload_thread_op *ops, size_t n);

struct heap_block {
    uint64_t address, size;
    uint64_t stamp; // of its allocation
    uint64_t site;  // its id in the trace, 0: not known
    uint8_t kind, align_log2;
    bool size_unknown;
};

// A stack frame that sites are made of, by its id in the trace.
struct heap_frame {
    uint64_t id, parent;
    struct workload_frame frame;
};

// All zero is empty. Independent of the order that it was taken from.
struct heap {
    uint64_t stamp, limit; // of the fork, and of the last allocations before it
    struct heap_block *blocks;
    size_t n_blocks, blocks_capacity;
    struct heap_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites modules; // that the frames lie in, without any site
};

void heap_release(struct heap *h);

// Puts out what the parent has done up to a fork, and takes what is live then into the empty heap. All events up to the stamp
// and the skid behind it have been fed. If more has been put out, blocks that were freed since are missing. 0 or a negative
// errno, which may be the sink's.
int heap_take(struct heap *h, struct order *parent, const struct heap_notes *notes, uint64_t stamp);

// The blocks of an order that are live by what it has put out; those of a realloc that is under way are. 0, or what `visit`
// returned that is not 0, which ends it; -ENOMEM.
int heap_each(const struct order *o, const struct heap_notes *notes,
              int (*visit)(void *context, const struct heap_block *b), void *context);

// The child's first ops: the blocks, as PREEXISTING, by the thread that the fork began with. 0 or a negative errno.
int heap_give(const struct heap *h, struct order *child);

#endif
