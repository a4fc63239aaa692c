// The plan: a whole workload decoded ahead into a shared memory file, as the player reads it. Made once, used for every
// run on every allocator. Everything that the player relies on is checked here: a plan that was finished cannot make it
// use a block that is not there, or wait for ever.
#ifndef HEAPTAPE_PLAN_PLAN_H
#define HEAPTAPE_PLAN_PLAN_H

#include "base/err.h"
#include "event/event.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PLAN_MAX_THREADS = 1 << 20,
    PLAN_SAMPLES_WANTED = 2000, // looks at memory over the whole workload …
    PLAN_SAMPLE_EVENTS = 4096,  // … and at least this many calls of a thread between two
    PLAN_MAX_STATS = 1 << 20,
    PLAN_UNKNOWN_SIZE = 16, // bytes of a preexisting block whose size is not known
};

struct plan; // opaque

// What is known of a finished plan without playing it.
struct plan_facts {
    uint64_t events;                 // calls that the player makes
    uint64_t by_kind[HT_KIND_LIMIT]; // of these
    uint64_t skipped;                // ops that are not played: calls that failed when recorded, mmap and the like
    uint64_t preexisting;            // blocks made before the start
    uint64_t preexisting_bytes;      // of these
    uint64_t waits;
    uint64_t threads;           // that do something
    bool one_thread;            // as asked for: op numbers are those of the whole order
    uint64_t switches;          // from one recorded thread to another in one
    uint64_t peak_live_bytes;   // requested bytes, in the workload's own order
    uint64_t ops_to_peak;       // ops added until they were first so many
    uint64_t live_at_end_bytes; // requested
    uint64_t stats;             // looks at the allocator's statistics
    bool touch_zeroed;          // pages that calloc zeroed are written to like others
    uint64_t places, samples;   // entries of the player's table; looks at memory
    uint64_t bytes;             // of the plan; of one that is fed, of what it keeps and of the ring
    bool fed;                   // it is bigger than the memory allowed
    uint64_t window_bytes;      // then: of each of the ring's PLAN_WINDOWS windows
    uint64_t windows;           // that were filled
    uint64_t feed_bytes;        // and of the feed's head
};

struct plan_settings {
    uint64_t memory_bytes; // that plan and table together may take
    bool fed;              // do not keep what threads do: see feed.h
    bool one_thread;       // all ops in one thread, in the order in which they are added
    uint64_t stats_every;  // look at the allocator's statistics every so many calls, and at MARKs; 0: never
    uint64_t trim_every;   // tell it to give memory back every so many calls; 0: never
    bool hold;             // note where blocks are, and whose: when so many ops have been added, and at the end
    uint64_t hold_ops;     // for that
    double ns_per_stamp;   // nanoseconds of the replay for each unit of a stamp; 0: stamps do not matter
};

// An empty plan. `name` is the workload's in messages and is borrowed. 0 or negative errno.
int plan_new(struct plan **p, const char *name, const struct plan_settings *s, struct err *e);
void plan_free(struct plan *p); // NULL is fine

// Appends an op of `thread`. Ops come in a valid total order: whatever an op waits for has come before. -EBADMSG when
// it cannot be played (a block given up that is not there, a wait for what has not come), -E2BIG when the memory does
// not suffice.
int plan_add_op(struct plan *p, uint32_t thread, const struct workload_op *op, struct err *e);

// Appends a run of one thread: plan_add_op for each.
int plan_add_run(struct plan *p, const struct workload_run *run, struct err *e);

// Closes all streams and writes the header. -ENODATA when there is no call to play.
int plan_finish(struct plan *p, struct err *e);

// Of a finished plan. The descriptor stays the plan's.
const struct plan_facts *plan_facts(const struct plan *p);
int plan_fd(const struct plan *p);

// Of a finished plan that is fed: word number of the ring.
uint64_t plan_ring_at(const struct plan *p);

// Number of the op of `thread` whose words end at word `position`, or which holds it; UINT64_MAX when it is not known any
// more. For messages.
uint64_t plan_op_at(const struct plan *p, uint32_t thread, uint64_t position);

// What the workload tells of the program that was recorded, in the workload's order of calls.

// A sample of its memory, and where it belongs.
struct plan_recorded {
    struct workload_sample sample;
    uint64_t event;        // calls made before, of all threads
    int64_t live_bytes;    // requested
    uint64_t mapped_bytes; // private memory that it mapped itself, if that was recorded
};

// Live bytes where a thread looks at memory.
struct plan_point {
    uint64_t event;
    int64_t live_bytes;
};

// From the first op of a thread to its last.
struct plan_span {
    uint64_t ops, first_stamp, last_stamp, first_event, last_event;
};

// Gives the samples to a new plan, in order of their stamps; they are copied.
int plan_watch_samples(struct plan *p, const struct workload_sample *samples, size_t n, struct err *e);

// Of a finished plan; borrowed.
const struct plan_recorded *plan_recorded(const struct plan *p, size_t *n);
const struct plan_point *plan_points(const struct plan *p, size_t *n);
size_t plan_threads(const struct plan *p);                              // highest number + 1
const struct plan_span *plan_span(const struct plan *p, size_t thread); // NULL: the thread does nothing
uint64_t plan_duration_stamps(const struct plan *p);                    // from the first op to the last

// With settings.hold: a block that is live where the player notes where blocks are.
struct plan_held {
    uint64_t size;  // requested
    uint64_t taken; // calls made before it was taken, or resized last; PLAN_BEFORE: it was there before the start
    uint64_t site;  // number of the call site of that call, 0: not known
    uint32_t thread, place;
};

#define PLAN_BEFORE UINT64_MAX

// What is live when all threads stand still.
struct plan_hold {
    uint64_t event; // calls made before
    struct plan_held *blocks;
    size_t n, capacity;
};

enum { PLAN_HOLD_PEAK, PLAN_HOLD_END, PLAN_HOLDS }; // hold_ops, and the end

// Of a finished plan with settings.hold. *noted_at is where the player notes their places: that of the end also stands
// for hold_ops if no op came after these.
const struct plan_hold *plan_holds(const struct plan *p, unsigned which, unsigned *noted_at);

// A quarter of the machine's memory.
uint64_t plan_default_memory(void);

#endif
