// Inside of the order.
#ifndef HEAPTAPE_CONVERT_ORDER_PRIVATE_H
#define HEAPTAPE_CONVERT_ORDER_PRIVATE_H

#include "convert/merge.h"
#include "convert/order/order.h"
#include "convert/pool.h"
#include "convert/site_table.h"
#include "convert/table.h"

enum {
    ORDER_NO_THREAD = 0xffffffff,
    ORDER_MAX_DEPENDENCIES = 4, // of one op: its thread's creation, its block, its slot
    ORDER_PENDING = 4,          // reallocs under way in one thread: signal handlers nest
    ORDER_RECENT = 64,          // ops of a thread whose stamps are remembered
    ORDER_BATCH = 64,           // ops handed on at a time
    ORDER_MAX_DUPLICATES =
        64, // addresses with two blocks at a time: more are a sign of lost events
    // Steps of search allowed for each word of the trace, and at the start. Threads that free each other's blocks as fast
    // as two processors can need 0.4 a word, and more processors more in proportion.
    ORDER_STEPS_PER_WORD = 128,
    ORDER_FIRST_STEPS = 1 << 20,
    ORDER_COMING =
        1
        << 12, // places for frees that are still to come: addresses seldom share one within some skids
};

// The release half of a realloc: the block that it has allocated from its address.
struct order_pending {
    uint32_t slot;
    uint64_t address;
};

struct order_thread {
    uint32_t index; // in the order's threads
    uint32_t trace_number, tid;
    uint32_t number;   // in the workload; ORDER_NO_THREAD before it is named
    uint32_t creator;  // the workload's number of the creating thread, or ORDER_NO_THREAD
    uint64_t creation; // number of the creator's op
    uint64_t next_op, last_stamp;
    bool fed, ended;
    unsigned held; // its streams that are held
    unsigned n_pending;
    struct order_pending pending[ORDER_PENDING];
    struct pool pool;
    struct map waited; // other thread + 1 → the highest op of it waited for + 1
    uint64_t *
        recent; // stamps of its last ORDER_RECENT ops, by op number; NULL before it is fed and once ended
};

// Why a stream is put aside.
enum order_hold {
    ORDER_HOLD_RELEASE, // its next record frees an address that is not known
    ORDER_HOLD_START,   // its next record starts a thread whose creation has not come
    ORDER_HOLD_THREAD,  // another stream of its thread is held
};

struct order_held {
    struct merge_stream *stream;
    struct order_thread *thread;
    enum order_hold why;
    uint64_t address;
    uint64_t deadline; // stamp
};

// A block of an address that had one already.
struct order_duplicate {
    uint64_t address, stamp, deadline;
    uint32_t slot, thread;
};

// A free that was put out, by its own taker or another.
struct order_released {
    uint64_t address, stamp;
    uint32_t thread;
};

// Pools of the program, and their blocks.
struct order_pools {
    struct map numbers;    // address of a pool → its number
    struct map by_address; // of a block → its place in `blocks`
    struct order_pool_block *blocks;
    size_t n_blocks, blocks_capacity;
    uint32_t *first; // by number of the pool: its last block, which leads to the others
    size_t n_first, first_capacity, n_pools;
    uint32_t unused; // the first of `blocks` that holds none
};

struct order {
    struct order_options options;
    struct order_sink sink;
    struct workload_output *output; // of the sink, once ops have been handed to it; NULL: none
    struct order_counts counts;
    struct merge merge;
    struct map by_number; // a thread's number in the trace + 1 → index in threads + 1
    struct order_thread **threads;
    size_t n_threads, threads_capacity;
    uint32_t open_threads; // fed and not ended
    uint32_t *numbered;    // workload's number → index in threads
    size_t n_numbered, numbered_capacity;
    uint32_t *tids; // of those
    size_t tids_capacity;
    struct table table;
    struct table_block *slots;
    size_t n_slots, slots_capacity;
    struct pool_shared shared;
    struct site_table sites; // their numbers are the workload's
    struct order_pools pools;
    struct names names;         // of the process's own modules, which come behind …
    uint32_t inherited_modules; // … those of its parent
    struct samples_residency residency;
    struct map
        failed_resizes; // of a block's last op, a realloc that failed: the op before those + 1, both as table_block.last
    struct order_held *held;
    size_t n_held, held_capacity;
    struct order_duplicate duplicates[ORDER_MAX_DUPLICATES + 1];
    size_t n_duplicates;
    struct order_released
        released[ORDER_RECENT]; // the last ones, in a ring, while there are several threads
    size_t n_released;
    // While there are several threads: by hash of the address, the greatest stamp of the frees seen ahead, and one more if
    // two have it; all up to seen_ahead are seen.
    uint64_t *coming;
    uint64_t seen_ahead;
    struct merge_stream **due; // room for all streams
    size_t due_capacity;
    uint64_t steps;         // of search that are left, see order_afford
    uint64_t passed;        // up to here all that was known is put out
    uint64_t next_deadline; // of those held and the duplicates; UINT64_MAX when there are none
    bool cut_off;           // what comes now is the rest of a recording that was cut off
    bool disturbed;         // streams were put back, or a deadline came up: the run under way ends
    struct workload_dependency dependencies[ORDER_MAX_DEPENDENCIES]; // of the op under work
    uint32_t n_dependencies;
    uint64_t usable; // of the block that the record under work frees; 0: unknown
    struct workload_thread_op out[ORDER_BATCH]; // ops that the sink has not got yet
    struct workload_dependency out_dependencies[ORDER_BATCH * ORDER_MAX_DEPENDENCIES];
    size_t n_out, n_out_dependencies;
    struct order_call call;   // of the op under work
    struct order_call *calls; // of `out`; NULL when the sink wants none
};

// Pays for a search of so many steps. False: the trace has had its share. No recording of a program gets there; a trace
// made for it would take the square of its length, so the order is then guessed, and counted as ambiguous.
static inline bool order_afford(struct order *o, uint64_t steps)
{
    bool enough = o->steps >= steps;
    o->steps = enough ? o->steps - steps : 0;
    return enough;
}

// The op under work as a slot's last use.
static inline uint64_t order_use(const struct order_thread *t)
{
    return (uint64_t)t->number << TABLE_OP_BITS | t->next_op;
}

static inline struct order_thread *order_numbered(const struct order *o, uint32_t number)
{
    return o->threads[o->numbered[number]];
}

// The thread of that number in the trace, made when it is new; NULL when out of memory.
struct order_thread *order_thread_get(struct order *o, uint32_t trace_number);

// Assigns the thread the next number in the workload: right before the op that makes it known, and not before it is sure
// that this op comes. 0, -ENOMEM, -EOVERFLOW.
int order_thread_number(struct order *o, struct order_thread *t);

static inline int order_thread_name(struct order *o, struct order_thread *t)
{
    return __builtin_expect(t->number != ORDER_NO_THREAD, 1) ? 0 : order_thread_number(o, t);
}

// Adds a dependency to the op under work, unless it is implied.
int order_depend(struct order *o, struct order_thread *t, uint32_t thread, uint64_t op);

// Puts out the op under work, which best stands in o->out[o->n_out] already.
int order_emit(struct order *o, struct order_thread *t, struct workload_op *op);

// Puts out an op without a record, on a block at this address, that comes between: the one under work stays as it is.
int order_emit_apart(struct order *o, struct order_thread *t, const struct workload_op *op,
                     uint64_t address);

// Hands all ops that have been put out to the sink.
int order_flush(struct order *o);

// A free slot for the thread, which may have to wait for it. 0 or a negative errno.
int order_slot_allocate(struct order *o, struct order_thread *t, uint32_t *slot);

// Blocks. Each puts out the op, whose fields but the slot are filled in. 0, a negative errno, or ORDER_HELD: the
// stream has been put aside and nothing else was done.
enum { ORDER_HELD = 1 };
int order_allocate(struct order *o, struct order_thread *t, struct workload_op *op,
                   uint64_t address);
int order_release(struct order *o, struct merge_stream *s, struct workload_op *op,
                  uint64_t address);
// A block from before the process's first event, in a slot of its own. The address of one that there is has none.
int order_inherit(struct order *o, struct order_thread *t, struct workload_op *op,
                  uint64_t address);
// A block that the recording found live when it began.
int order_listed(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t address);
int order_resize_begin(struct order *o, struct merge_stream *s, uint64_t stamp, uint64_t address);
int order_resize_end(struct order *o, struct order_thread *t, struct workload_op *op,
                     uint64_t result);

// Does the free by another thread of a block at this address, whose stamp is later by the skid at most, come before the
// one under work, which stands first in `s` and is of a block that its thread did not allocate? Counts as ambiguous
// what the records leave open.
bool order_overtakes(struct order *o, const struct merge_stream *s, uint64_t stamp,
                     uint64_t address);

// An op of a pool: those of a block say its size and call site, a reset says how many bytes it releases; all have the pool's
// number in place of its address. 0 or a negative errno.
int order_pool(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t ptr,
               uint64_t result);
void order_pools_release(struct order_pools *p);

// Takes a record of how much of the block at `ptr` was used. One of a block that is not known says nothing. 0 or -ENOMEM.
int order_note_residency(struct order *o, const struct workload_op *op, uint64_t ptr);

// Remembers a free that is put out, where there are several threads.
static inline void order_note_release(struct order *o, const struct order_thread *t, uint64_t stamp,
                                      uint64_t address)
{
    if (o->open_threads > 1)
        o->released[o->n_released++ % ORDER_RECENT] =
            (struct order_released){address, stamp, t->number};
}

// The thread frees an address that has no block. Counts as ambiguous if a free by another thread that was put out shortly
// before could be of a block allocated only later, so that this one should have come first.
void order_count_ambiguity(struct order *o, const struct order_thread *t, uint64_t stamp,
                           uint64_t address);

// Puts the stream aside until what it waits for has come, or the window is over.
int order_hold(struct order *o, struct merge_stream *s, enum order_hold why, uint64_t stamp,
               uint64_t address);

// Puts back the streams that are held for this reason and address.
void order_wake(struct order *o, enum order_hold why, uint64_t address);

// Ends what has waited up to a deadline of `now` or before.
int order_expire(struct order *o, uint64_t now);

// Recomputes next_deadline.
void order_deadline(struct order *o);

// Closes the oldest block of an address with two as lost.
int order_duplicate_lost(struct order *o, size_t i);

#endif
