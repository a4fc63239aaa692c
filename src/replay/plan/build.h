// A plan under construction. Internal to plan.
#pragma once

#include "base/map.h"
#include "replay/plan/ops.h"
#include "replay/plan/plan.h"
#include "replay/plan/streams.h"

// A slot of the workload. The array is indexed by slot number.
struct plan_slot {
    uint64_t size;  // requested
    uint32_t entry; // slot table entry, or 0 if the slot is empty
    // Kind of call that can free the block, and the alignment that this call requires.
    uint8_t free_kind, align_log2;
    // For big blocks: the share that the program did not use, in units of 1/PLAN_UNUSED_ALL.
    uint16_t unused;
};
#define PLAN_UNUSED_ALL UINT16_MAX

// Returns the kind of call that can free blocks of a kind that allocates or resizes.
static inline uint8_t plan_freed_by(unsigned kind)
{
    static const uint8_t freed_by[HT_KIND_LIMIT] = {
#define HT_X(SYMBOL, FREED_BY) [HT_##SYMBOL] = HT_##FREED_BY,
        PLAN_FAMILIES(HT_X)
#undef HT_X
    };
    return kind < HT_KIND_LIMIT && freed_by[kind] ? freed_by[kind] : HT_FREE;
}

// A big block of which pages may be used only after later calls; see late.c. Pages are 4 KiB.
struct plan_late {
    struct plan_stream *owner; // stream of the op that allocated or resized the block
    uint64_t allocation;       // number of this op in the stream
    uint32_t thread;           // thread in the workload
    uint32_t entry;
    bool zeroed;    // allocated by calloc
    uint64_t touch; // number of the extra word of the block's TOUCH, or 0 if there is no TOUCH
    // Number of pages in the block, number of pages used, and KiB used contiguously from the start.
    uint64_t pages, used, front_kib;
    // Number of pages that should be touched by now, and number that the ops so far touch.
    uint64_t due, touched;
    const struct workload_residency_step *steps; // the next step; borrowed while ops are added
    size_t n_steps;
    // A sample or step has occurred since the TOUCH, so the pages of the block's TOUCH are final.
    bool sampled;
};

// A window in a streamed plan's file.
struct plan_window {
    // Byte offset of the words. The array of struct plan_window_segment follows the words.
    uint64_t at;
    uint64_t words;    // number of words used
    uint64_t segments; // number of threads with ops in the window
    uint64_t hash;     // XXH3 of the words
};

struct plan_window_segment {
    uint64_t first, first_op; // as in struct plan_segment
    uint64_t thread;
};

// The call that allocated a slot's block. Used only with settings.snapshots.
struct plan_allocation {
    uint64_t at, site;
    uint32_t thread;
};

// Requested and used bytes of the big blocks whose use is known. by_part[i] counts the blocks whose
// used share is i eighths.
enum { PLAN_USE_PARTS = 8 };
struct plan_use {
    struct {
        uint64_t bytes, used;
    } all, by_part[PLAN_USE_PARTS + 1];
};

enum { PLAN_SIZE_CLASSES = 64 };

// A thread that has ops in a section, and its last op there.
struct plan_member {
    struct plan_stream *stream;
    uint64_t last_op;
};

struct plan_section {
    struct plan_member *members; // the first member's thread has the section's first op
    size_t n, capacity;
    uint64_t first_op; // number of the section's first op in the first member's stream
};

enum {
    PLAN_SECTIONS = 3,
    // Minimum size of a section. Shorter sections would slow down the replay but would not make the
    // memory figures more precise.
    PLAN_SECTION_CALLS = 8,
    PLAN_SECTION_BYTES = 16384, // bytes allocated and freed
    PLAN_SECTION_PART = 32,     // at least 1/PLAN_SECTION_PART of the peak of live bytes so far
};

// State that keeps threads as close together as they were when recorded; see couple.c.
struct plan_coupling {
    struct plan_section sections[PLAN_SECTIONS]; // section i is at i % PLAN_SECTIONS
    uint64_t number;                             // number of the current section
    uint64_t calls, bytes; // calls, and bytes allocated and freed, in the current section
};

struct plan {
    const char *name;
    const struct samples_residency *residency; // borrowed while ops are added; NULL if not recorded
    uint64_t *op_numbers;                      // next op number, indexed by thread of the workload
    size_t n_op_numbers, op_numbers_capacity;
    // Use of the blocks so far, by the power of two of their size. [0] is for blocks not from
    // calloc, [1] for blocks from calloc.
    struct plan_use uses[2][PLAN_SIZE_CLASSES];
    struct plan_use *site_uses; // like `uses`, but by call site
    size_t n_site_uses, site_uses_capacity;
    // Maps a site, size class and source to the index in site_uses plus 1. The key is site << 7 |
    // class << 1 | (1 if from calloc).
    struct map use_of_site;
    struct plan_settings settings;
    struct plan_memory memory;   // contains the header, the array of threads, and the streams
    struct plan_memory ring;     // for a streamed plan: the window being filled
    uint64_t *window_words;      // words of `ring`
    struct plan_window *windows; // array with facts.windows entries
    size_t windows_capacity;
    uint64_t header_at, memory_bytes;
    struct plan_stream **streams; // indexed by thread number; NULL if there are no ops so far
    size_t n_streams, streams_capacity;
    struct plan_stream preexisting, leftovers;
    struct plan_slot *slots;
    size_t n_slots, slots_capacity;
    struct plan_allocation *allocations; // indexed by slot
    size_t allocations_capacity;
    struct plan_snapshot snapshots[PLAN_SNAPSHOTS];
    bool has_snapshot;        // the op at snapshot_after_ops has been added
    uint32_t snapshot_thread; // thread of the op at snapshot_after_ops
    uint64_t snapshot_op;     // op number in this thread; threads that start later depend on the op
    uint64_t added;           // number of ops added
    uint64_t n_exited;        // number of threads that have exited, excluding the main thread
    uint64_t n_awaited;       // number of these exits for which a thread already waits
    struct slot_table slot_table;
    uint64_t *samples; // word numbers of the SAMPLE ops
    size_t n_samples, samples_capacity;
    struct plan_facts facts;
    // Live bytes in op order, excluding preexisting blocks. Preexisting blocks are live from the
    // start, but their ops may come late, so the sum of their sizes is added at the end.
    int64_t live, peak;
    uint64_t preexisting_bytes;
    uint64_t max_block_bytes;
    bool preexisting_by[HT_KIND_LIMIT]; // indexed by kind: the call allocates preexisting blocks
    // With facts.one_thread: the recorded thread of the last op, whether that thread has exited,
    // and the highest thread number + 1.
    uint32_t current, n_threads;
    bool current_exited;
    uint64_t next_stats, next_trim;   // in calls
    uint64_t first_stamp, last_stamp; // over all ops
    struct plan_recorded_sample *recorded;
    // Number of samples, and number of samples that are older than the ops so far.
    size_t n_recorded, n_passed;
    uint64_t mapped_bytes;
    struct plan_late *lates; // in order of allocation
    size_t n_lates, lates_capacity;
    // Maps the entry of a live block to its last TOUCH_LATE: the number of the thread, and 1 + the
    // number of the op that follows the TOUCH_LATE.
    struct map late_uses;
    uint64_t next_step; // timestamp of the next step of the blocks in `lates`, or UINT64_MAX
    // In live big blocks: bytes that the program did not use, and bytes that it used later.
    uint64_t unused, late_bytes;
    bool whole;          // the workload extends to the end of the process
    bool has_beside;     // a sample has set beside_heap
    int64_t beside_heap; // private memory minus used blocks, at the first sample
    struct plan_coupling coupling;
    struct plan_live_point *points; // array with one entry per SAMPLE
    size_t n_points, points_capacity;
};

// A call in a stream, with the extra words of its op.
struct plan_call {
    enum plan_op op;
    uint64_t entry, size, extra[2];
};

// Adds with wraparound, because sizes come from a file and sums can overflow.
static inline int64_t plan_wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

// Returns n, where every n-th SAMPLE is kept.
static inline size_t plan_sample_step(const struct plan *p)
{
    return (p->n_samples + PLAN_SAMPLES_WANTED - 1) / PLAN_SAMPLES_WANTED;
}

// add_many.c: adds ops of a workload thread. Stops at the first op that is not a plain call or that
// requires another op before it. Returns the number of ops added.
size_t plan_add_plain(struct plan *p, struct plan_stream *s, uint32_t thread,
                      const struct workload_op *ops, size_t n);

// put.c: append ops to a stream.

int plan_put_call(struct plan *p, struct plan_stream *s, const struct plan_call *c, struct err *e);

// Appends a WAIT. The following ops wait until `thread` has published `position`. Position 0 is
// always satisfied and needs no op.
int plan_put_wait(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                  struct err *e);

// Appends a WAIT for the op number `op` of another stream, unless `other` is `s` itself.
int plan_wait_for_op(struct plan *p, struct plan_stream *s, const struct plan_stream *other,
                     uint64_t op, struct err *e);

// Appends a COUPLE, which works like a WAIT.
int plan_put_couple(struct plan *p, struct plan_stream *s, uint32_t thread, uint64_t position,
                    struct err *e);

// Appends a COUNT with the number of calls and the change in live bytes since the last COUNT.
int plan_put_count(struct plan *p, struct plan_stream *s, struct err *e);

// Appends a COUNT and a STATS.
int plan_put_stats(struct plan *p, struct plan_stream *s, struct err *e);

// Appends an unnumbered op of one word.
int plan_put_word(struct plan *p, struct plan_stream *s, uint64_t word, struct err *e);

// Appends a TOUCH for the next call's block. Sets *at to the number of its extra word.
int plan_put_touch(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                   uint64_t *at, struct err *e);

// Appends a TOUCH_LATE for the block's used pages up to number `to`.
int plan_put_touch_late(struct plan *p, struct plan_stream *s, const struct plan_late *late,
                        uint64_t to, struct err *e);

// Reads bytes of the file that contains the plan's words. Returns 0, or a negative errno.
int plan_read_at(const struct plan *p, void *to, uint64_t bytes, uint64_t at, struct err *e);

// Returns the size of the head of a streamed plan's ring.
uint64_t plan_streaming_bytes(const struct plan *p);

// check.c: plan_check returns true if the words of a loaded plan are safe to play.
// plan_check_window checks a window and its segments.
bool plan_check(const struct plan *p);
bool plan_check_window(const struct plan *p, const uint64_t *words, uint64_t w,
                       const struct plan_window_segment *segments);

// snapshot.c: records that `op` allocated or resized the block in its slot. Does nothing without
// settings.snapshots.
int plan_note_allocation(struct plan *p, uint32_t thread, const struct workload_op *op,
                         struct err *e);

// Call before and after each op of `s` is added. At snapshot_after_ops, these functions append the
// SNAPSHOT and its dependencies.
int plan_snapshot_before(struct plan *p, struct plan_stream *s, struct err *e);
int plan_snapshot_after(struct plan *p, struct plan_stream *s, struct err *e);

// Call when all ops have been added.
int plan_finish_snapshots(struct plan *p, struct err *e);

// couple.c: call before an op of `s` is added.
int plan_couple(struct plan *p, struct plan_stream *s, const struct workload_op *op, struct err *e);

// Returns true if the current section has reached its minimum.
static inline bool plan_section_is_full(const struct plan *p, uint64_t calls, uint64_t bytes)
{
    return bytes >= PLAN_SECTION_BYTES &&
           bytes >= ((uint64_t)p->peak + p->preexisting_bytes) / PLAN_SECTION_PART &&
           calls >= PLAN_SECTION_CALLS;
}

// late.c: records the big block that an op allocates in the slot, and the block's use. Returns 0 or
// -ENOMEM.
int plan_late_allocated(struct plan *p, struct plan_slot *slot, const struct plan_late *late,
                        struct err *e);

// Call before an op of `s` frees or resizes the slot's block. Appends the remaining touches of a
// big block.
int plan_late_released(struct plan *p, struct plan_stream *s, struct plan_slot *slot,
                       struct err *e);

// Call with each sample that was taken between the last op so far and the next op.
void plan_late_sample(struct plan *p, const struct workload_sample *sample);

// Before the next op, appends to `s` the touches that are due. If `s` is NULL (at the end of the
// program), appends each block's touches to the stream of the op that allocated the block.
int plan_late_put(struct plan *p, struct plan_stream *s, struct err *e);

// Call before the workload's thread exits. Appends all remaining touches of its blocks.
int plan_late_exit(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e);

// Applies the steps of the blocks up to the next op's timestamp.
void plan_late_step(struct plan *p, uint64_t stamp);

// Call after the last sample of memory, because later uses of pages are not known. Marks as due all
// pages that blocks use before their next steps.
void plan_late_use_all(struct plan *p);

// Returns a stream that touches blocks after the last op and whose thread has not exited. Returns
// NULL if all blocks are used.
struct plan_stream *plan_late_stream(const struct plan *p);

// add.c: call after the last op of a process that ended. Appends the remaining samples, and touches
// the rest of the process's big blocks.
int plan_put_end(struct plan *p, struct err *e);

// recorded.c: returns the next sample that is older than the op, or NULL. If `op` is NULL, returns
// the next sample of any age. Call before the op is added.
const struct workload_sample *plan_pass_sample(struct plan *p, const struct workload_op *op);

// Call plan_follow before an op is added, and plan_finish_recorded after all ops have been added.
void plan_follow(struct plan *p, struct plan_span *span, const struct workload_op *op);
void plan_finish_recorded(struct plan *p);

// windows.c: windows of a streamed plan.
uint64_t plan_window_bytes(uint64_t memory_bytes);
int plan_windows_new(struct plan *p, struct err *e);

// Ends the window, and writes it unless it is empty.
int plan_write_window(struct plan *p, struct err *e);
