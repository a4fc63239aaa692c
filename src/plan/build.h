// The plan while it is made. Internal to plan*.c.
#ifndef HEAPTAPE_PLAN_BUILD_H
#define HEAPTAPE_PLAN_BUILD_H

#include "plan/ops.h"
#include "plan/plan.h"
#include "plan/streams.h"

// A slot of the workload, by its number.
struct slot {
    uint64_t size;                   // requested bytes
    uint32_t place;                  // 0: holds no block
    uint8_t given_up_by, align_log2; // kind of the call that can give it up, and its alignment for that
};

// With settings.hold: how the block of a slot was taken.
struct taking {
    uint64_t taken, site;
    uint32_t thread;
};

struct plan {
    const char *name;
    struct plan_settings how;
    struct plan_memory memory; // header, table of threads, and streams
    struct plan_memory ring;   // streams of threads of a plan that is fed; without words: in `memory`
    uint64_t *scratch;         // words of the ring when nobody plays them
    const struct plan_sink *sink;
    const struct plan *scanned; // what is fed, as it was when it was looked through; NULL: it is not being fed
    uint64_t header_at, memory_bytes;
    struct plan_stream **streams; // by thread number; NULL: nothing known of it
    size_t n_streams, streams_capacity;
    struct plan_stream preexisting, rest;
    struct slot *slots;
    size_t n_slots, slots_capacity;
    struct taking *takings; // by slot
    size_t n_takings, takings_capacity;
    struct plan_hold holds[PLAN_HOLDS];
    bool is_held;     // hold_ops have been added, and one more
    uint32_t held_by; // thread of that one …
    uint64_t held_op; // … and its number: who comes later waits for it
    uint64_t added;   // ops
    struct places places;
    uint64_t *samples; // word numbers of the SAMPLE ops, of a plan that is not fed
    size_t n_samples, samples_capacity;
    struct plan_facts facts;
    // Live bytes in the order given. Blocks that were there before the start are live from the start, however late
    // they turn up, so their sum is added to the peak in the end.
    int64_t live, peak;
    uint64_t preexisting_bytes;
    bool preexisting_by[HT_KIND_LIMIT]; // kinds of call that make blocks before the start
    // With facts.one_thread: whose op came last, whether it was its end, and the highest number + 1.
    uint32_t current, n_threads;
    bool current_over;
    uint64_t next_stats, next_trim;   // in calls
    uint64_t first_stamp, last_stamp; // of all ops
    struct plan_recorded *recorded;
    size_t n_recorded, n_passed; // samples; of these, that are older than the ops so far
    uint64_t mapped_bytes;
    struct plan_point *points; // one for each SAMPLE
    size_t n_points, points_capacity;
};

// Takes the windows of a ring when they are full.
struct plan_sink {
    // m->open are the threads that have words in the window.
    void (*hand_over)(void *context, const struct plan_memory *m);
    // Waits until all have left the window that is filled next. 0, or -ECANCELED when nobody wants it any more.
    int (*wait_for_room)(void *context, const struct plan_memory *m);
    void *context;
};

// A call as the streams hold it. `extra` has what plan_extra_words() says.
struct call {
    enum plan_op op;
    uint64_t place, size, extra[2];
};

// Sizes are what a file says: sums may wrap round, but not trap.
static inline int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

// Appends a numbered op.
int plan_put_call(struct plan *p, struct plan_stream *s, const struct call *c, struct err *e);

// Makes the ops that follow wait until `thread` has published `position` (0: done long ago).
int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position, struct err *e);

// Appends a STATS, with what has come before counted, or a TRIM.
int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e);
int plan_put_trim(struct plan *p, struct plan_stream *s, struct err *e);

// Says that the ops that follow are those of `thread`.
int plan_put_switch(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e);

// Makes the ops that follow wait until `ns` (less than 2^56) after the start.
int plan_put_pace(struct plan *p, struct plan_stream *s, uint64_t ns, struct err *e);

// One in so many SAMPLEs is looked at.
static inline size_t plan_sample_step(const struct plan *p)
{
    return (p->n_samples + PLAN_SAMPLES_WANTED - 1) / PLAN_SAMPLES_WANTED;
}

// Appends a SAMPLE or COUNT with what has come since the latest one.
int plan_put_count(struct plan *p, struct plan_stream *s, enum plan_op op, struct err *e);

int plan_no_memory(struct err *e);

// plan_hold.c. The block of `slot` has been taken, or resized, by the op.
int plan_note_taking(struct plan *p, uint32_t thread, const struct workload_op *op, struct err *e);

// Before an op of stream `s` is added, and after: makes all threads stand still before it, if it is the one.
int plan_hold_before(struct plan *p, struct plan_stream *s, struct err *e);
int plan_hold_after(struct plan *p, struct plan_stream *s, struct err *e);

// All ops have been added.
int plan_finish_holds(struct plan *p, struct err *e);
void plan_release_holds(struct plan *p);

// Appends a HOLD.
int plan_put_hold(struct plan *p, struct plan_stream *s, struct err *e);

// plan_recorded.c: an op of a thread is about to be added; the thread looks at memory; all have been added.
void plan_follow(struct plan *p, struct plan_span *span, const struct workload_op *op);
int plan_note_point(struct plan *p, struct err *e);
void plan_finish_recorded(struct plan *p);

// plan_new, of a plan that is being fed when `scanned` is given.
int plan_new_as(struct plan **p, const char *name, const struct plan_settings *s, const struct plan *scanned,
                struct err *e);

// plan_feed.c. A plan that is fed is made twice: once without players, which tells what has to be known beforehand, and
// then, for each run, with them.
int plan_ring_new(struct plan *p, struct err *e);

// Hands the window over and goes on to the next one.
int plan_turn_window(struct plan *p, struct err *e);

// Ends a thread's stream once all is in it that was when the plan was scanned.
int plan_stop_if_over(struct plan *p, struct plan_stream *s, struct err *e);

// A plan that makes what `scanned` (finished) did not keep, in a ring of that many windows of that size. Both are
// borrowed.
int plan_new_feeding(struct plan **p, const struct plan *scanned, uint64_t *ring, const struct plan_sink *sink,
                     struct err *e);

// When all ops have been added to it. -EBADMSG when they were not those of the scan.
int plan_finish_feeding(struct plan *p, struct err *e);

// Counts what is left and puts a STOP.
int plan_stop_stream(struct plan *p, struct plan_stream *s, struct err *e);

#endif
