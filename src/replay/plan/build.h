// The plan while it is built: what the files of this folder share. Internal to plan.
#ifndef HEAPTAPE_PLAN_BUILD_H
#define HEAPTAPE_PLAN_BUILD_H

#include "base/map.h"
#include "replay/plan/ops.h"
#include "replay/plan/plan.h"
#include "replay/plan/streams.h"

// A slot of the workload, by its number.
struct plan_slot {
    uint64_t size;  // requested bytes
    uint32_t entry; // of the slot table; 0: holds no block
    uint8_t free_kind,
        align_log2; // kind of call that can free the block, and its alignment for that
    uint16_t
        unused; // of a big block, in parts of PLAN_UNUSED_ALL: what the program did not use of it
};
#define PLAN_UNUSED_ALL UINT16_MAX

// A big block whose use may be late: see late.c. Pages are those of 4 KiB that it uses.
struct plan_late {
    struct plan_stream *owner; // of the op that allocated or resized it
    uint32_t thread;           // the same, of the workload
    uint32_t entry;
    bool zeroed;                     // from calloc
    uint64_t touch;                  // word number of the pages in its TOUCH; 0: it has none
    uint64_t pages, used, front_kib; // pages: of its size; the last: used from its start on
    uint64_t due, touched; // pages used up to now; and of them those that the ops so far touch
    const struct workload_residency_step *steps; // that come next; borrowed while ops are added
    size_t n_steps;
    bool sampled; // a sample or a step has come since: what its TOUCH touches is known
};

// A window in the file of a streamed plan.
struct plan_window {
    uint64_t at;       // byte offset: its words, then an array of struct plan_window_segment
    uint64_t words;    // used
    uint64_t segments; // threads that have ops in it
    uint64_t hash;     // XXH3 of the words
};

struct plan_window_segment {
    uint64_t first, first_op; // as of struct plan_segment
    uint64_t thread;
};

// With settings.snapshots: the call that allocated the block of a slot.
struct plan_allocation {
    uint64_t at, site;
    uint32_t thread;
};

// Bytes of big blocks whose use is known, and of them those that were used; the same of the blocks of which no eighth was used,
// one, and so on, up to those that were used as a whole.
enum { PLAN_USE_PARTS = 8 };
struct plan_use {
    struct {
        uint64_t bytes, used;
    } all, by_part[PLAN_USE_PARTS + 1];
};

enum { PLAN_SIZE_CLASSES = 64 };

// A thread with ops in a section, and its last op there.
struct plan_member {
    struct plan_stream *stream;
    uint64_t last_op;
};

struct plan_section {
    struct plan_member *members; // the first one has the section's first op
    size_t n, capacity;
    uint64_t first_op; // of the first member
};

enum {
    PLAN_SECTIONS = 3,
    // A section ends when all of this holds: less would cost time and gain nothing that memory figures show.
    PLAN_SECTION_CALLS = 8,
    PLAN_SECTION_BYTES = 16384, // allocated and freed
    PLAN_SECTION_PART = 32,     // of peak live bytes so far, the part that this is
};

// How threads are kept as close as they were recorded: see couple.c.
struct plan_coupling {
    struct plan_section sections[PLAN_SECTIONS]; // the last ones, number i at i % PLAN_SECTIONS
    uint64_t number;                             // of the current one
    uint64_t calls, bytes;                       // of the current one: bytes allocated and freed
};

struct plan {
    const char *name;
    const struct samples_residency
        *residency;       // borrowed while ops are added; NULL: none was recorded
    uint64_t *op_numbers; // by thread of the workload: of its next op
    size_t n_op_numbers, op_numbers_capacity;
    struct plan_use uses
        [2]
        [PLAN_SIZE_CLASSES]; // of blocks so far, not from calloc and from calloc, by power of two
    struct plan_use *site_uses; // the same of the blocks of a call site; their numbers + 1 are in …
    size_t n_site_uses, site_uses_capacity;
    struct map use_of_site; // … by site << 7 | class << 1 | from calloc
    struct plan_settings settings;
    struct plan_memory memory; // header, array of threads, and streams
    struct plan_memory
        ring; // streams of the threads of a streamed plan: the window that is filled; unused otherwise
    uint64_t *window_words;      // of that
    struct plan_window *windows; // facts.windows
    size_t windows_capacity;
    uint64_t header_at, memory_bytes;
    uint64_t file_at; // byte offset of the words in their file; 0 unless the plan was loaded
    struct plan_stream **streams; // by thread number; NULL: nothing known of it
    size_t n_streams, streams_capacity;
    struct plan_stream preexisting, leftovers;
    struct plan_slot *slots;
    size_t n_slots, slots_capacity;
    struct plan_allocation *allocations; // by slot
    size_t n_allocations, allocations_capacity;
    struct plan_snapshot snapshots[PLAN_SNAPSHOTS];
    bool has_snapshot;        // snapshot_after_ops ops have been added, and one more
    uint32_t snapshot_thread; // thread of that op …
    uint64_t snapshot_op;     // … and its number: threads that start later depend on it
    uint64_t added;           // ops
    struct slot_table slot_table;
    uint64_t *samples; // word numbers of the SAMPLE ops
    size_t n_samples, samples_capacity;
    struct plan_facts facts;
    // Live bytes in the order of the ops. Preexisting blocks are live from the start, however late they turn up, so the
    // sum of their sizes is added in the end.
    int64_t live, peak;
    uint64_t preexisting_bytes;
    uint64_t max_block_bytes;
    bool preexisting_by[HT_KIND_LIMIT]; // kinds of call that allocate preexisting blocks
    // With facts.one_thread: the recorded thread of the last op, whether it has exited, and the highest number + 1.
    uint32_t current, n_threads;
    bool current_exited;
    uint64_t next_stats, next_trim;   // in calls
    uint64_t first_stamp, last_stamp; // of all ops
    struct plan_recorded_sample *recorded;
    size_t n_recorded, n_passed; // samples; of these, those that are older than the ops so far
    uint64_t mapped_bytes;
    struct plan_late *lates; // in the order of their allocation
    size_t n_lates, lates_capacity;
    struct map
        late_uses; // by entry of a live block with a TOUCH_LATE: the owner's number and its next op, plus 1
    uint64_t next_step; // stamp, UINT64_MAX: none of these has one
    uint64_t unused,
        late_bytes; // bytes of live big blocks that the program did not use, and those that it used later
    bool whole;          // the ops are those of a process to its end
    bool has_beside;     // there was a sample, which had …
    int64_t beside_heap; // … so much private memory beside what blocks use
    struct plan_coupling coupling;
    struct plan_live_point *points; // one for each SAMPLE
    size_t n_points, points_capacity;
};

// A call as the streams hold it. `extra` is as plan_extra_words() says.
struct plan_call {
    enum plan_op op;
    uint64_t entry, size, extra[2];
};

// Sizes come from a file: sums may wrap round, but must not trap.
static inline int64_t plan_wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

// One in so many SAMPLEs is kept.
static inline size_t plan_sample_step(const struct plan *p)
{
    return (p->n_samples + PLAN_SAMPLES_WANTED - 1) / PLAN_SAMPLES_WANTED;
}

int plan_no_memory(struct err *e);

// add_many.c: adds as many of the ops, of a thread of the workload, as are plain calls that need nothing between them:
// how many.
size_t plan_add_plain(struct plan *p, struct plan_stream *s, uint32_t thread,
                      const struct workload_op *ops, size_t n);

// put.c: appends ops to a stream.

// A numbered op.
int plan_put_call(struct plan *p, struct plan_stream *s, const struct plan_call *c, struct err *e);

// WAIT: the following ops wait until `thread` has published `position` (0: that was long ago).
int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                  struct err *e);

// COUPLE, likewise.
int plan_put_couple(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                    struct err *e);

// COUNT, with the calls and live bytes since the last one.
int plan_put_count(struct plan *p, struct plan_stream *s, struct err *e);

// STATS, after a COUNT.
int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e);
int plan_put_trim(struct plan *p, struct plan_stream *s, struct err *e);
int plan_put_snapshot(struct plan *p, struct plan_stream *s, struct err *e);

// SWITCH: the following ops were recorded in `thread`.
int plan_put_switch(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e);

// TOUCH: pages used of the block of the next call. *at is the word number of the second word.
int plan_put_touch(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                   uint64_t *at, struct err *e);

// TOUCH_LATE: further pages of a block, up to number `to` of those that are used.
int plan_put_touch_late(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                        uint64_t to, struct err *e);

// PACE: the following ops wait until `ns` (less than 2^56) after the start.
int plan_put_pace(struct plan *p, struct plan_stream *s, uint64_t ns, struct err *e);

// streaming.c: plan_op_at of a streamed plan.
uint64_t plan_op_in_window(const struct plan *p, uint32_t thread, uint64_t position);

// Reads bytes of the plan's file from offset `at` on.
int plan_read_at(const struct plan *p, int fd, void *to, uint64_t bytes, uint64_t at,
                 struct err *e);

// Of the head of a streamed plan's ring.
uint64_t plan_streaming_bytes(const struct plan *p);

// check.c: a plan that was loaded, and a window of it, with its segments.
bool plan_check(const struct plan *p);
bool plan_check_window(const struct plan *p, const uint64_t *words, uint64_t w,
                       const struct plan_window_segment *segments);

// snapshot.c. The op has allocated or resized the block of its slot.
int plan_note_allocation(struct plan *p, uint32_t thread, const struct workload_op *op,
                         struct err *e);

// Before and after each op of stream `s` is added: makes all threads stand still if this is the op to do it at.
int plan_snapshot_before(struct plan *p, struct plan_stream *s, struct err *e);
int plan_snapshot_after(struct plan *p, struct plan_stream *s, struct err *e);

// When all ops have been added.
int plan_finish_snapshots(struct plan *p, struct err *e);
void plan_release_snapshots(struct plan *p);

// couple.c: an op of `s` is about to be added.
int plan_couple(struct plan *p, struct plan_stream *s, const struct workload_op *op, struct err *e);
void plan_release_coupling(struct plan *p);

// Is the current section as long as it may be?
static inline bool plan_section_is_full(const struct plan *p, uint64_t calls, uint64_t bytes)
{
    return bytes >= PLAN_SECTION_BYTES &&
           bytes >= ((uint64_t)p->peak + p->preexisting_bytes) / PLAN_SECTION_PART &&
           calls >= PLAN_SECTION_CALLS;
}

// late.c: a big block of the slot has been allocated, of which `late` says what is used. 0, or negative when out of memory.
int plan_late_allocated(struct plan *p, struct plan_slot *slot, const struct plan_late *late);

// The slot's big block is about to be freed or resized by an op of `s`: puts the touches that are left.
int plan_late_released(struct plan *p, struct plan_stream *s, struct plan_slot *slot,
                       struct err *e);

// The sample lies between the ops so far and the next one.
void plan_late_sample(struct plan *p, const struct workload_sample *sample);

// Puts the touches that are due of blocks of the stream and the workload's thread, all of them if the thread exits.
int plan_late_put(struct plan *p, struct plan_stream *s, uint32_t thread, bool exits,
                  struct err *e);

// The next op is of that stamp: their steps until then.
void plan_late_step(struct plan *p, uint64_t stamp);

// No sample follows that could show when the blocks are used: soon, as most blocks are; up to the next step.
void plan_late_use_all(struct plan *p);

// At the end of the program: puts the touches that are due of all blocks.
int plan_late_put_all(struct plan *p, struct err *e);

// A stream for what follows its last op, whose thread has not exited. NULL: all blocks are used.
struct plan_stream *plan_late_stream(const struct plan *p);

// add.c: the process has ended behind its last op: puts the samples that were taken since, and uses what is left of its big
// blocks.
int plan_put_end(struct plan *p, struct err *e);

// recorded.c: before an op is added, the samples that came before it, one after the other, before the end (NULL) all that are
// left; then NULL.
const struct workload_sample *plan_pass_sample(struct plan *p, const struct workload_op *op);

// An op is about to be added; a SAMPLE was added; all ops have been added.
void plan_follow(struct plan *p, struct plan_span *span, const struct workload_op *op);
int plan_note_point(struct plan *p, struct err *e);
void plan_finish_recorded(struct plan *p);

// windows.c: of a streamed plan.
uint64_t plan_window_bytes(uint64_t memory_bytes);
int plan_windows_new(struct plan *p, struct err *e);

// Ends the window and writes it, if there is anything in it; and goes on to the next one.
int plan_write_window(struct plan *p, struct err *e);
int plan_next_window(struct plan *p, struct err *e);

#endif
