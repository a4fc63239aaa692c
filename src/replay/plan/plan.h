// The plan: a whole workload decoded ahead into a shared memory file, in the form that the player reads. It is made
// once and used for every run on every allocator. All that the player relies on is checked here: no finished plan makes
// it use a block that does not exist, or wait forever.
#ifndef HEAPTAPE_PLAN_PLAN_H
#define HEAPTAPE_PLAN_PLAN_H

#include "base/err.h"
#include "base/fio.h"
#include "trace/event/event.h"
#include "workload/reader.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PLAN_MAX_THREADS = 1 << 20,
    PLAN_SAMPLES_WANTED = 2000, // memory samples over the whole workload …
    PLAN_SAMPLE_EVENTS = 4096,  // … and at least this many calls of a thread between two
    PLAN_MAX_STATS = 1 << 20,
    PLAN_UNKNOWN_SIZE = 16, // bytes of a preexisting block whose size is not known
    PLAN_FILE_STEP =
        64 << 10, // what begins in a file begins at a multiple of that, at least a page
};

struct plan; // opaque

// Figures of a finished plan that are known without playing it.
struct plan_facts {
    uint64_t events;                 // calls that the player makes
    uint64_t by_kind[HT_KIND_LIMIT]; // of these
    uint64_t
        calls; // of these and for the blocks that exist before the start or are left at the end
    uint64_t skipped; // ops that are not played: calls that failed when recorded, mmap and the like
    uint64_t preexisting;       // blocks allocated before the start
    uint64_t preexisting_bytes; // of these
    uint64_t dependencies;      // between threads
    uint64_t threads;           // that do something
    bool one_thread;            // as asked for: op numbers are those of the total order
    uint64_t thread_switches;   // from one recorded thread to another when all are played in one
    uint64_t peak_live_bytes;   // requested bytes, in the workload's own order
    uint64_t ops_to_peak;       // ops added when the peak was first reached
    uint64_t live_at_end_bytes; // requested
    uint64_t stats_samples;     // samples of the allocator's own statistics
    bool touch_zeroed; // write to all pages of calloc's blocks, as to those of other blocks
    uint64_t slot_table_entries; // of the player's slot table
    uint64_t samples;            // of memory
    uint64_t bytes;              // of the plan; of a streamed one, those that are kept and the ring
    bool streamed;               // it does not fit into the memory allowed
    uint64_t window_bytes;       // of a streamed plan: of each of the ring's PLAN_WINDOWS windows
    uint64_t windows;            // of a streamed plan: that are filled in a run
    uint64_t streaming_bytes;    // of a streamed plan: of the head of its ring
    uint64_t big_bytes; // requested, over all allocations and reallocs of HT_BIG_BYTES or more
    uint64_t big_known_bytes;     // of these, where it was measured how much of the block was used
    uint64_t big_estimated_bytes; // where that is estimated from blocks of the same size class
    bool unproved; // the workload is too entangled to prove that every use of a slot is ordered
};

struct plan_settings {
    uint64_t memory_bytes; // limit for plan and slot table together
    bool streamed;         // do not keep the ops of the threads in memory: see streaming.h
    struct output *file;   // of a streamed plan: takes its ops; borrowed as long as the plan exists
    bool one_thread;       // all ops in one thread, in the order in which they are added
    uint64_t
        stats_every; // sample the allocator's statistics every so many calls and at MARKs; 0: only at malloc_stats
    uint64_t trim_every; // ask it to return free memory every so many calls; 0: never
    bool snapshots;      // record the address and the owner of each live block, at two points:
    uint64_t snapshot_after_ops; // when so many ops have been added, and at the end
    double
        ns_per_stamp; // nanoseconds of the replay for each unit of a stamp; 0: there are no PACE ops
    bool paced;       // they are as close as a thread's sleeps are precise
};

// Creates an empty plan. `name` is the workload's name in messages; it is borrowed. 0 or negative errno.
int plan_new(struct plan **p, const char *name, const struct plan_settings *s, struct err *e);
void plan_free(struct plan *p); // NULL is fine

// Appends ops of `thread`. Ops must come in a valid total order: after all that they depend on. -EBADMSG when an op
// cannot be played (it frees a block that does not exist, or depends on a later op), -E2BIG when the memory allowed
// does not suffice.
int plan_add_ops(struct plan *p, uint32_t thread, const struct workload_op *ops, size_t n,
                 struct err *e);

// Called now and then with the number of ops read.
struct plan_progress {
    void (*report)(void *context, uint64_t ops);
    void *context;
};

// Adds all remaining ops of the workload. `progress` may be NULL. 0, or a negative errno of the reader or plan_add_ops.
int plan_read_ops(struct plan *p, struct workload_reader *r, const struct plan_progress *progress,
                  struct err *e);

// Ends all streams and writes the header. -ENODATA when there is no call to play.
int plan_finish(struct plan *p, struct err *e);

// Both: adds all ops to a new plan, with what the workload says of the use of big blocks, and finishes it.
int plan_read(struct plan *p, struct workload_reader *r, const struct plan_progress *progress,
              struct err *e);

// Of a finished plan, which keeps the descriptor.
const struct plan_facts *plan_facts(const struct plan *p);
int plan_fd(const struct plan *p);
uint64_t plan_file_at(const struct plan *p); // byte offset of the plan in that file
uint64_t
plan_own_bytes(const struct plan *p);      // of it, the words of a streamed plan's windows apart
int plan_windows_fd(const struct plan *p); // of a streamed one: the file of its windows

// Of a finished streamed plan: words from the start of its file to where the player maps the ring.
uint64_t plan_ring_at(const struct plan *p);

// For messages: number of the op of `thread` that contains word number `position` or ends before it; UINT64_MAX when
// that is no longer known.
uint64_t plan_op_at(const struct plan *p, uint32_t thread, uint64_t position);

// The recorded program, as fidelity compares it with the replay. All is in the workload's order of calls.

// A sample of the program's memory and its position in that order.
struct plan_recorded_sample {
    struct workload_sample sample;
    uint64_t event;        // calls before it, of all threads
    int64_t live_bytes;    // requested
    uint64_t mapped_bytes; // private memory that the program mapped itself, if that was recorded
};

// Live bytes at a memory sample of the replay.
struct plan_live_point {
    uint64_t event;
    int64_t live_bytes;
};

// From the first op of a thread to its last.
struct plan_span {
    uint64_t ops, first_stamp, last_stamp, first_event, last_event;
};

// Copies the program's memory samples, ordered by stamp, into a new plan.
int plan_set_samples(struct plan *p, const struct workload_sample *samples, size_t n,
                     struct err *e);

// Of a finished plan; borrowed.
const struct plan_recorded_sample *plan_recorded_samples(const struct plan *p, size_t *n);
const struct plan_live_point *plan_live_points(const struct plan *p, size_t *n);
size_t plan_threads(const struct plan *p); // highest number + 1
const struct plan_span *plan_span(const struct plan *p,
                                  size_t thread);    // NULL: the thread does nothing
uint64_t plan_duration_stamps(const struct plan *p); // from the first op to the last

// With settings.snapshots: a block that is live at a snapshot. Its address is in the player's copy of the slot table.
struct plan_snapshot_block {
    uint64_t size; // requested
    uint64_t
        allocated_at; // calls before it was allocated or last resized; PLAN_BEFORE_START: it existed at the start
    uint64_t site; // number of the call site of that call, 0: not known
    uint32_t thread, entry;
};

#define PLAN_BEFORE_START UINT64_MAX

// The live blocks when all threads stand still.
struct plan_snapshot {
    uint64_t event; // calls before it
    struct plan_snapshot_block *blocks;
    size_t n, capacity;
};

enum {
    PLAN_SNAPSHOT_PEAK,
    PLAN_SNAPSHOT_END,
    PLAN_SNAPSHOTS
}; // after snapshot_after_ops, and at the end

// Of a finished plan with settings.snapshots. *copy is the player's copy of the slot table that belongs to it: if no op
// came after snapshot_after_ops, the copy made at the end stands for both.
const struct plan_snapshot *plan_snapshots(const struct plan *p, unsigned which, unsigned *copy);

// A quarter of the machine's memory, or of the address space that a process may have (RLIMIT_AS).
uint64_t plan_default_memory(void);

#endif
