// State of an order and the functions that its files share.
#pragma once

#include "convert/merge.h"
#include "convert/order/order.h"
#include "convert/pool.h"
#include "convert/site_table.h"
#include "convert/table.h"

enum {
    ORDER_NO_THREAD = 0xffffffff,
    // dependencies of an op: on the thread's creation, the block and the slot
    ORDER_MAX_DEPENDENCIES = 4,
    ORDER_PENDING = 4, // pending reallocs per thread; they nest when signal handlers call realloc
    ORDER_RECENT = 64, // number of a thread's latest ops whose stamps are stored
    ORDER_BATCH = 64,  // ops passed to the sink at a time
    ORDER_RUN = 128,   // simple ops passed to the sink at a time
    ORDER_FAR = 160,   // prefetch distance in words, more than the words of a run
    // Limit on the number of addresses with two blocks. A higher number indicates lost events.
    ORDER_MAX_DUPLICATES = 64,
    // Budget of search steps: ORDER_FIRST_STEPS, plus ORDER_STEPS_PER_WORD for each word of the
    // trace. Two threads on two CPUs that free each other's blocks as fast as possible need 0.4
    // steps per word. The number is proportional to the number of CPUs.
    ORDER_STEPS_PER_WORD = 128,
    ORDER_FIRST_STEPS = 1 << 20,
    // Cells for upcoming frees. Two addresses rarely share a cell within a few skids.
    ORDER_COMING = 1 << 12,
};

// A realloc whose release half has been read. Its old block is no longer at the address.
struct order_pending {
    uint32_t slot;
    uint64_t address;
};

struct order_thread {
    uint32_t index; // index in order.threads
    uint32_t trace_number, tid;
    uint32_t number;   // number in the workload, or ORDER_NO_THREAD before it is assigned
    uint32_t creator;  // workload number of the creating thread, or ORDER_NO_THREAD
    uint64_t creation; // op number of the creation
    uint64_t next_op, last_stamp;
    bool fed, ended;
    unsigned held; // number of the thread's held streams
    unsigned n_pending;
    struct order_pending pending[ORDER_PENDING];
    struct pool pool;
    // Maps (other thread + 1) to the other thread's highest op on which this thread depends, plus
    // 1.
    struct map waited;
    // Ring of stamps by op number; NULL before the first segment and after the thread exits.
    uint64_t *recent;
};

// Reason for holding a stream.
enum order_hold {
    ORDER_HOLD_RELEASE, // the next record frees an unknown address
    ORDER_HOLD_START,   // the next record starts a thread whose creation has not been read yet
    ORDER_HOLD_THREAD,  // another stream of the thread is held
};

struct order_held {
    struct merge_stream *stream;
    struct order_thread *thread;
    enum order_hold why;
    uint64_t address;
    uint64_t deadline; // stamp at which the hold ends
};

// A second, newer block at an address.
struct order_duplicate {
    uint64_t address, stamp, deadline;
    uint32_t slot, thread;
};

// An emitted free.
struct order_released {
    uint64_t address, stamp;
    uint32_t thread;
};

// The program's pools and their blocks.
struct order_pools {
    struct map numbers;    // maps the address of a pool to its number
    struct map by_address; // maps the address of a block to its index in `blocks`
    struct order_pool_block *blocks;
    size_t n_blocks, blocks_capacity;
    // Indexed by pool number: the newest block of the pool, which links to its other blocks.
    uint32_t *first;
    size_t n_first, first_capacity, n_pools;
    uint32_t unused; // first free entry in `blocks`
};

// Consecutive simple ops of one thread (order_fast.h).
struct order_run {
    size_t limit; // number of records to decode next
    struct workload_simple ops[ORDER_RUN];
    uint64_t addresses[ORDER_RUN];
    struct table_place places[ORDER_RUN];
};

struct order {
    struct order_options options;
    struct order_sink sink;
    struct order_counts counts;
    struct merge merge;
    struct map by_number; // maps (thread number in the trace + 1) to the index in `threads` plus 1
    struct order_thread **threads;
    size_t n_threads, threads_capacity;
    uint32_t open_threads; // number of threads that were fed and have not ended
    uint32_t *numbered;    // maps a thread number of the workload to an index in `threads`
    size_t n_numbered, numbered_capacity;
    uint32_t *tids; // indexed by thread number in the workload
    size_t tids_capacity;
    struct table table;
    struct table_block *slots;
    size_t n_slots, slots_capacity;
    struct pool_shared shared;
    struct site_table sites; // numbered as in the workload
    struct order_pools pools;
    struct names names;         // names in the modules of the process
    uint32_t inherited_modules; // number of modules inherited from the parent
    struct samples_residency residency;
    // Maps the last use of a block by a failed realloc to the last use before the block's failed
    // reallocs, plus 1.
    struct map failed_resizes;
    struct order_held *held;
    size_t n_held, held_capacity;
    struct order_duplicate duplicates[ORDER_MAX_DUPLICATES + 1];
    size_t n_duplicates;
    // Ring of the latest frees. Used only while there are several threads.
    struct order_released released[ORDER_RECENT];
    size_t n_released;
    // For each hash of an address, the largest stamp of the frees that were read ahead, plus 1 if
    // two frees have that stamp. Covers stamps up to seen_ahead. Used only while there are several
    // threads.
    uint64_t *coming;
    uint64_t seen_ahead;
    struct merge_stream **due; // scratch array with one entry per stream
    size_t due_capacity;
    uint64_t steps;         // remaining search steps; see order_afford
    uint64_t passed;        // all known events up to this stamp have been emitted
    uint64_t next_deadline; // earliest deadline of held streams and duplicates, or UINT64_MAX
    // The recording is truncated, and only its last events must still be emitted.
    bool cut_off;
    // The current run must end, because streams were returned to the heap or a deadline changed.
    bool disturbed;
    // Dependencies of the current op.
    struct workload_dependency dependencies[ORDER_MAX_DEPENDENCIES];
    uint32_t n_dependencies;
    uint64_t usable; // usable size of the block that the current record frees, or 0 if unknown
    struct workload_thread_op out[ORDER_BATCH]; // ops that have not been passed to the sink yet
    struct workload_dependency out_dependencies[ORDER_BATCH * ORDER_MAX_DEPENDENCIES];
    size_t n_out, n_out_dependencies;
    struct order_run run;
    struct order_call call;   // call of the current op
    struct order_call *calls; // parallel to `out`; NULL if the sink has no `calls` callback
};

// Charges search steps to the budget. Returns false if the budget is exhausted. Real recordings
// stay far below the budget. Without a budget, a malicious trace could take quadratic time. When
// the budget is exhausted, the order guesses and counts the guesses as ambiguous.
static inline bool order_afford(struct order *o, uint64_t steps)
{
    bool enough = o->steps >= steps;
    o->steps = enough ? o->steps - steps : 0;
    return enough;
}

// Returns the thread's current op in the form of table_block.last.
static inline uint64_t order_use(const struct order_thread *t)
{
    return (uint64_t)t->number << TABLE_OP_BITS | t->next_op;
}

static inline struct order_thread *order_numbered(const struct order *o, uint32_t number)
{
    return o->threads[o->numbered[number]];
}

// Returns the thread with this number in the trace, creating it if necessary, or NULL when out of
// memory.
struct order_thread *order_thread_get(struct order *o, uint32_t trace_number);

// Assigns the workload's next thread number. Call immediately before the op that introduces the
// thread, when it is certain that the op will be emitted. Returns 0, -ENOMEM or -EOVERFLOW.
int order_thread_number(struct order *o, struct order_thread *t);

static inline int order_thread_name(struct order *o, struct order_thread *t)
{
    return __builtin_expect(t->number != ORDER_NO_THREAD, 1) ? 0 : order_thread_number(o, t);
}

// Returns true if an earlier dependency of the thread implies a dependency on the op of `thread`.
static inline bool order_has_waited(const struct order_thread *t, uint32_t thread, uint64_t op)
{
    return map_get(&t->waited, thread + 1ull) > op;
}

// Adds a dependency to the current op unless other dependencies imply it.
int order_depend(struct order *o, struct order_thread *t, uint32_t thread, uint64_t op);

// Emits the current op. Passing &o->out[o->n_out] as `op` avoids a copy.
int order_emit(struct order *o, struct order_thread *t, struct workload_op *op);

// Emits an op that was not recorded, on a block at this address, before the current op.
int order_emit_apart(struct order *o, struct order_thread *t, const struct workload_op *op,
                     uint64_t address);

// Passes all emitted ops to the sink.
int order_flush(struct order *o);

// Handle ops on blocks. Each function emits `op`. The caller must have set all members of `op`
// except the slot. Returns 0, a negative errno, or ORDER_HELD if the stream was set aside and
// nothing else was done.
enum { ORDER_HELD = 1 };
int order_allocate(struct order *o, struct order_thread *t, struct workload_op *op,
                   uint64_t address);
int order_release(struct order *o, struct merge_stream *s, struct workload_op *op,
                  uint64_t address);
// Emits a block that existed before the first event. The block gets a new slot. If the address
// already has a block, does nothing.
int order_inherit(struct order *o, struct order_thread *t, struct workload_op *op,
                  uint64_t address);
// Emits a block that was live when the recorder started.
int order_listed(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t address);
int order_resize_begin(struct order *o, struct merge_stream *s, uint64_t stamp, uint64_t address);
int order_resize_end(struct order *o, struct order_thread *t, struct workload_op *op,
                     uint64_t result);

// Returns true if the current free must come after another thread's free of the same address,
// although the other free's stamp is later (by at most the skid). The current free is the first
// record of `s`, and its thread did not allocate the block. Counts undecidable cases as ambiguous.
bool order_overtakes(struct order *o, const struct merge_stream *s, uint64_t stamp,
                     uint64_t address);

// Returns true if a free of the block by the stream's word number `i` from the head on needs
// neither a new dependency on the thread that used the block last, nor a search for another free of
// the address. If so, counts the dependency, which an earlier dependency implies.
bool order_releases_known(struct order *o, const struct merge_stream *s, size_t i,
                          const struct table_block *block);

// Emits a pool op and replaces the pool's address with the pool's number. An op on a block gets the
// size and the call site of the block; a reset gets the total of the released bytes. Returns 0, or
// a negative errno.
int order_pool(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t ptr,
               uint64_t result);
void order_pools_release(struct order_pools *p);

// Records how much of the block at `ptr` was used. Ignores unknown blocks. Returns 0 or -ENOMEM.
int order_note_residency(struct order *o, const struct workload_op *op, uint64_t ptr);

// Records an emitted free if there are several threads.
static inline void order_note_release(struct order *o, const struct order_thread *t, uint64_t stamp,
                                      uint64_t address)
{
    if (o->open_threads > 1)
        o->released[o->n_released++ % ORDER_RECENT] =
            (struct order_released){address, stamp, t->number};
}

// Called for a free whose address has no block. Another thread may recently have freed the address.
// If the current free may have to precede the other free, counts it as ambiguous, because the block
// of the other free may be allocated later.
void order_count_ambiguity(struct order *o, const struct order_thread *t, uint64_t stamp,
                           uint64_t address);

// Adds `n` events of the thread to the faults. `address` is 0 if it is unknown.
void order_count(struct order_faults *f, uint64_t n, const struct order_thread *t, uint64_t stamp,
                 uint64_t address);

// Sets the stream aside until order_wake releases it or the window has passed.
int order_hold(struct order *o, struct merge_stream *s, enum order_hold why, uint64_t stamp,
               uint64_t address);

// Releases the stream with the earliest stamp among the streams held for this reason and address.
void order_wake(struct order *o, enum order_hold why, uint64_t address);

// Releases held stream `i`, whose awaited record did not arrive. The stream's next record is then
// processed without the awaited record.
void order_expire_held(struct order *o, size_t i);

// Releases all held streams without waiting for their awaited records.
void order_unhold_all(struct order *o);

// Recomputes next_deadline.
void order_deadline(struct order *o);

// Frees the oldest block at duplicate `i`'s address. Call if the record of its free was lost.
int order_duplicate_lost(struct order *o, size_t i);
