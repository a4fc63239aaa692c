// A workload converted to the form that the player reads, in a shared memory file. A plan is built
// once and used by every run on every allocator. Everything that the player relies on is checked
// while a plan is built, so a finished plan never makes the player use a missing block or wait
// forever.
//
// A plan has a stream of words for each thread. Entries of the player's slot table replace the
// slots of the workload. A position is a word number: the thread has played the words before it.
#pragma once

#include "base/err.h"
#include "base/fio.h"
#include "base/progress.h"
#include "trace/event/event.h"
#include "workload/reader.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PLAN_MAX_THREADS = 1 << 20,
    PLAN_SAMPLES_WANTED = 2000, // desired number of samples for the whole workload
    PLAN_SAMPLE_EVENTS = 4096,  // minimum number of a thread's calls between two samples
    PLAN_MAX_STATS = 1 << 20,
    PLAN_UNKNOWN_SIZE = 16,    // assumed for preexisting blocks of unknown size
    PLAN_FILE_STEP = 64 << 10, // alignment of each part of a file; at least a page
};

struct plan; // opaque

// Figures of a finished plan that are known without a run.
struct plan_facts {
    uint64_t events;                 // calls that replay the workload
    uint64_t by_kind[HT_KIND_LIMIT]; // like `events`, but by kind of call that the player makes
    // Number of events, plus the calls that allocate preexisting blocks and free the leftovers.
    uint64_t calls;
    // Number of ops that make no call: calls that failed when recorded, and mappings.
    uint64_t skipped;
    uint64_t preexisting;       // number of blocks allocated before the clock starts
    uint64_t preexisting_bytes; // requested bytes of these blocks
    uint64_t dependencies;      // number of dependencies between threads
    uint64_t threads;           // number of threads with ops
    bool one_thread;            // op numbers refer to the total order
    uint64_t thread_switches;   // with one_thread: number of changes of the recorded thread
    uint64_t peak_live_bytes;   // requested bytes, in the workload's own order
    uint64_t ops_to_peak;       // number of ops after which the peak is first reached
    uint64_t live_at_end_bytes; // requested bytes of the blocks that are live at the end
    uint64_t stats_samples;     // number of STATS ops
    bool touch_zeroed;          // the player also writes to all pages of blocks from calloc
    uint64_t slot_table_entries;
    uint64_t samples;         // number of SAMPLE ops
    uint64_t duration_stamps; // recorded time from the first op to the last
    uint64_t bytes; // size in memory; for a streamed plan, includes the ring but not the windows
    bool streamed;  // the plan is too large for the memory allowed
    uint64_t window_bytes; // for a streamed plan: size of each of the ring's PLAN_WINDOWS windows
    uint64_t windows;      // for a streamed plan: number of windows
    uint64_t streaming_bytes; // for a streamed plan: size of the head of the ring's file
    uint64_t big_bytes;       // bytes requested by allocations and reallocs of HT_BIG_BYTES or more
    uint64_t big_known_bytes; // part of big_bytes whose use was measured
    uint64_t big_estimated_bytes; // part of big_bytes whose use is estimated from similar blocks
    bool unproved; // too many dependencies to prove that all uses of a slot are ordered
    // Byte offset of the plan in its file, and size of the plan there, excluding windows.
    uint64_t file_at, own_bytes;
};

struct plan_settings {
    uint64_t memory_bytes; // limit on the plan and the slot table together
    bool streamed;         // keep the threads' ops in a file; see streaming.h
    // For a streamed plan: file for the ops; borrowed for the lifetime of the plan.
    struct output *file;
    bool one_thread; // play all ops in one thread, in the order in which they are added
    // Number of calls between two STATS ops. Each mark also gets a STATS op. If 0, only calls of
    // malloc_stats do.
    uint64_t stats_every;
    uint64_t trim_every;         // number of calls between two TRIM ops, or 0 for no TRIM ops
    bool snapshots;              // record the address and site of each live block at two points
    uint64_t snapshot_after_ops; // first point, in ops; the second point is the end
    double ns_per_stamp; // replay time in nanoseconds per unit of a timestamp, or 0 for no PACE ops
    bool paced;          // insert PACE ops as densely as a thread can sleep
};

// Creates an empty plan. `name` is the workload's name for messages and is borrowed. Returns 0, or
// a negative errno.
int plan_new(struct plan **p, const char *name, const struct plan_settings *s, struct err *e);
void plan_free(struct plan *p); // accepts NULL

// Appends ops of `thread`. The ops must be in a valid total order: each op must come after all ops
// that it depends on. Returns 0, -EBADMSG if an op cannot be played (it frees a missing block or
// depends on a later op), -E2BIG if the plan exceeds the memory allowed, or another negative errno.
int plan_add_ops(struct plan *p, uint32_t thread, const struct workload_op *ops, size_t n,
                 struct err *e);

// Ends all streams and writes the header. Returns 0, -ENODATA if the plan has no calls, or another
// negative errno.
int plan_finish(struct plan *p, struct err *e);

// Adds all ops and the recorded use of big blocks to a new plan, and finishes the plan. Updates
// `progress`, which may be NULL, every 65,536 ops. Returns 0, or a negative errno of the reader or
// of plan_add_ops().
int plan_read(struct plan *p, struct workload_reader *r, struct progress *progress, struct err *e);

// These functions require a finished plan. The plan keeps ownership of the descriptors.
const struct plan_facts *plan_facts(const struct plan *p);
int plan_fd(const struct plan *p);

// Returns the word number at which the player maps the ring of a finished streamed plan.
uint64_t plan_ring_at(const struct plan *p);

// For error messages. Returns the number of the op of `thread` that contains word number `position`
// or ends right before that word. Returns UINT64_MAX if the op is no longer known.
uint64_t plan_op_at(const struct plan *p, uint32_t thread, uint64_t position);

// The recorded program, for comparison with the replay. Positions count calls in the workload's
// total order.

// A recorded sample of the program's memory, and its position.
struct plan_recorded_sample {
    struct workload_sample sample;
    uint64_t event;        // number of calls before the sample, in all threads
    uint64_t exits;        // number of thread exits before the sample
    int64_t live_bytes;    // requested bytes
    uint64_t freed_bytes;  // in blocks that the threads' last calls were freeing
    uint64_t mapped_bytes; // private mappings of the program, if recorded
};

// Live bytes at a sample taken by the replay.
struct plan_live_point {
    uint64_t event;
    int64_t live_bytes;
};

// First and last op of a thread.
struct plan_span {
    uint64_t ops, first_stamp, last_stamp, first_event, last_event;
};

// Copies the program's memory samples, ordered by timestamp, to a new plan.
int plan_set_samples(struct plan *p, const struct workload_sample *samples, size_t n,
                     struct err *e);

// These functions require a finished plan; their results are borrowed.
const struct plan_recorded_sample *plan_recorded_samples(const struct plan *p, size_t *n);
const struct plan_live_point *plan_live_points(const struct plan *p, size_t *n);
size_t plan_threads(const struct plan *p); // highest thread number + 1
// Returns NULL if the thread has no ops.
const struct plan_span *plan_span(const struct plan *p, size_t thread);

// A block that is live at a snapshot. Its address is in the player's copy of the slot table.
struct plan_snapshot_block {
    uint64_t size; // requested size
    // Number of calls before the block's last allocation or resize, or PLAN_BEFORE_START.
    uint64_t allocated_at;
    uint64_t site; // call site of the allocation or resize, or 0 if unknown
    uint32_t thread, entry;
};

#define PLAN_BEFORE_START UINT64_MAX

// Live blocks at a point where no thread is running.
struct plan_snapshot {
    uint64_t event; // number of calls before the snapshot
    struct plan_snapshot_block *blocks;
    size_t n, capacity;
};

enum {
    PLAN_SNAPSHOT_PEAK,
    PLAN_SNAPSHOT_END,
    PLAN_SNAPSHOTS
}; // one snapshot is after snapshot_after_ops, the other at the end

// Requires a finished plan with settings.snapshots. Sets *copy to the number of the snapshot's copy
// of the slot table in the player. If no op came after snapshot_after_ops, both snapshots are the
// one at the end.
const struct plan_snapshot *plan_snapshots(const struct plan *p, unsigned which, unsigned *copy);

// Returns a quarter of the machine's memory, or a quarter of the process's address space
// (RLIMIT_AS) if that is less.
uint64_t plan_default_memory(void);
