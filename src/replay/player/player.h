// The player: a process of its own that runs under the allocator to be measured and calls malloc and friends only to
// replay a plan. It uses no stdio and does not allocate; its own memory is in shared mappings that are populated before
// the start, so all resident memory that is not shared is the allocator's.
#ifndef HEAPTAPE_PLAYER_PLAYER_H
#define HEAPTAPE_PLAYER_PLAYER_H

#include "base/clock.h"
#include "replay/plan/file.h"
#include "replay/plan/ops.h"
#include "replay/player/results.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { PLAYER_CACHE_LINE = 64, PLAYER_SEEN = 16, PLAYER_NO_WINDOW = PLAN_WINDOWS };

_Static_assert((int)RESULTS_KINDS == (int)PLAN_OP_LIMIT,
               "the results have a histogram for each kind that can be played");

// What a thread publishes to the others, on a cache line of its own.
struct player_line {
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t
        progress; // number of the word after its last op that publishes
    _Atomic uint64_t
        wanted; // lowest progress that a sleeping thread waits for; UINT64_MAX: none sleeps
    _Atomic uint32_t sequence; // futex of the sleeping threads: grows when they are woken
};

// Progress of another thread as last seen. It only grows, so a dependency that it satisfies needs no access to the
// other thread's line.
struct player_seen {
    uint64_t progress;
    uint32_t thread;
};

// One timed call, before it is added to the histograms.
struct player_latency {
    uint64_t ticks : 48, kind : 8, size_class : 8; // of a call without a size: RESULTS_SIZES
};

enum { PLAYER_LATENCIES = 256 };

// How often a thread had to wait for another one, and slept for that.
struct player_waits {
    uint64_t blocked, sleeps;
};

// One thread of the replay.
struct player_thread {
    struct results_position *at; // what it is at
    struct player_line *line;
    struct player_latency *latencies; // PLAYER_LATENCIES, when calls are timed
    uint32_t n_latencies, number;
    uint32_t shard; // of the histograms that they are added to
    struct player_waits waits, coupled_waits;
    uint64_t requested_bytes, usable_bytes; // with RESULTS_TOUCH_USABLE
    bool touches; // a TOUCH came before the call: pages that are used of its block,
    uint64_t touch_pages, touch_front_kib; // how much is used from its start on, and
    uint64_t touch_late;                   // how many are left to a TOUCH_LATE
    uint64_t touch_ns;                     // time in which it has written to big blocks
    uint64_t max_lag_ns;                   // behind the recorded pace
    uint32_t window,
        segments; // of a streamed plan: the thread's window, and segments obtained so far
    uint64_t stalls, stall_ns, free_space_wait_ns;
    uint64_t calls;                       // made, when it has reached the end of its stream
    uint64_t refused;                     // calls, by player_no_block
    struct player_seen seen[PLAYER_SEEN]; // by thread number modulo PLAYER_SEEN
};

struct player {
    struct results *results;
    const uint64_t *words; // of the plan
    const struct plan_header *plan;
    const struct plan_thread *threads;
    struct plan_streaming *streaming; // NULL: the whole plan is in memory
    void **slot_table;                // addresses of the live blocks
    struct player_line *lines;
    uint64_t start_ns;
    int statm_fd;
    uint64_t virtual_at_start;
    size_t (*usable_size)(void *); // NULL: the allocator has none of its own
    bool can_membarrier;
    int (*null_init)(uint64_t); // of the null allocator; NULL under any other
    void (*null_real)(bool);    // the same
    // Sums of the SAMPLE and COUNT ops of all threads.
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t events, live_bytes, peak_live_bytes;
};

extern struct player player;

// The word behind the first one of the op that the thread is at.
static inline const uint64_t *player_pc(const struct player_thread *t)
{
    return (const uint64_t *)(uintptr_t)atomic_load_explicit(&t->at->pc, memory_order_relaxed);
}

static inline void player_set_pc(struct results_position *at, const uint64_t *pc)
{
    atomic_store_explicit(&at->pc, (uintptr_t)pc, memory_order_relaxed);
}

// The number of that word. Word numbers keep growing when a window of a streamed plan is filled again, so a position is
// more than the distance from the first word.
static inline uint64_t player_position(const struct player_thread *t)
{
    return t->at->base + (uint64_t)(player_pc(t) - player.words);
}

// Ends the process and writes the reason to the results; the position is the thread's. Does not return.
_Noreturn void player_fail(enum results_status why, const struct player_thread *t, unsigned kind,
                           uint64_t size, int error);

// The two halves of player_fail: the first returns in one thread only, which may then add to the reason.
void player_failing(void);
_Noreturn void player_failed(enum results_status why, const struct player_thread *t, unsigned kind,
                             uint64_t size, int error);

// Counts an aligned allocation that the allocator refused because of its arguments; the block does not exist then. Ends the
// process if the allocator is out of memory. `errno` is that of the call, 0 before it.
void player_no_block(struct player_thread *t, unsigned kind, uint64_t size);

// The alignment of the call that the thread is at.
static inline uint64_t player_alignment(const struct player_thread *t)
{
    // Behind entry and size.
    return player_pc(t)[plan_op_of(player_pc(t)[-1]) == PLAN_WIDE ? 2 : 0];
}

static inline const uint64_t *player_first_word(const struct player_thread *t)
{
    return player.words + player.threads[t->number].first_word;
}

// Zeroed shared memory of the player's own, populated. Ends the process when there is none.
void *player_map_shared(size_t bytes);

// main.c: copies the slot table to RESULTS_SNAPSHOT_*, while no thread plays.
void player_snapshot(unsigned which);

// functions.c: finds the functions that the plan needs. Ends the process when malloc is not that of the allocator asked
// for, or a function is missing.
void player_find_functions(void);
void player_find_allocator(void); // the part of this that needs no plan
extern void *player_functions[HT_KIND_LIMIT];

// A block that exists before the start, from a call of `kind`: HT_MALLOC, HT_MEMALIGN, or a throwing new.
void *player_allocate_preexisting(unsigned kind, uint64_t align, uint64_t size);

// The function of that name if it is the allocator's own, else NULL.
void *player_own_function(const char *name);

// Is libc's own malloc in use?
bool player_is_libc(void);

// loop.c: plays from this word to the stream's end, in the way that the results ask for, and adds to t->calls.
void player_play(struct player_thread *t, const uint64_t *from);

// verify.c: what the loop does besides with RESULTS_TOUCH_VERIFY.
void player_verify_init(void);

// A call of `kind` has returned `block` (NULL: nothing to check) of `size` bytes for the entry: checks it and fills it.
void player_verify_allocated(struct player_thread *t, unsigned kind, uint64_t entry, void *block,
                             uint64_t size);

// A call of `kind` is about to free the block of the entry, if there is one.
void player_verify_free(struct player_thread *t, unsigned kind, uint64_t entry);

// All remaining blocks, when the threads have exited.
void player_verify_leftovers(void);

// memory.c.
void player_memory_init(void);
void player_touch_own_pages(void); // data segments that are not the allocator's
void player_sample(uint64_t events, uint64_t live_change, bool keep); // SAMPLE and COUNT
uint64_t player_private_bytes(void);

struct player_memory {
    uint64_t private_bytes,
        virtual_bytes; // resident, private and not the player's; of address space
};

struct player_memory player_memory(void);
void player_reset_peak(void);
uint64_t player_peak_private_bytes(void); // since the reset, 0 when the kernel does not tell

// streaming.c: NEXT_SEGMENT, after a publish, which returns the next word, or NULL at the thread's end.
const uint64_t *player_next_segment(struct player_thread *t);
void player_wait_for_stream(void); // until the ring is full

// wait.c.
void player_wait_init(void);
void player_wait_slow(struct player_waits *w, uint32_t thread, uint64_t position);
void player_wake(struct player_line *line);
void player_futex_wait(_Atomic uint32_t *word, uint32_t value);
void player_futex_wake(_Atomic uint32_t *word);
void player_pace(struct player_thread *t, uint64_t due_ns); // PACE
void player_idle(uint64_t ns);

// clock.c: the allocator's clock. Set to so many ns after the start of the replay (ignored if it is past that), and the clock
// stands still; started again, it goes on from there.
void player_clock_init(void);
void player_clock_set(uint64_t ns);
void player_clock_run(void);

// counters.c: hardware counters, from start to stop.
void player_counters_init(void);
void player_counters_start(void);
void player_counters_stop(void);

// extensions.c.
void player_extensions_init(void);
void player_find_version(char *text, size_t size);
void player_stats(void);                          // STATS
void player_trim(void);                           // TRIM
void player_switch(uint32_t thread, bool exited); // SWITCH; exited: the thread before has exited

// threads.c.
void player_threads_init(void);
void player_thread_init(struct player_thread *t, uint32_t number);
void player_add_latencies(struct player_thread *t); // empties the thread's latencies
void player_merge_latencies(void);                  // when all threads have exited
struct results_position *
player_unthreaded_position(void); // of the main thread before and after the threads
void player_start_threads(
    void); // those that no other thread starts; they wait for player_release_threads
void player_release_threads(void);
void player_start_thread(const struct player_thread *parent, uint32_t number);
void player_thread_started(const struct player_thread *t);
void player_thread_exited(struct player_thread *t); // adds its figures to the results
void player_join_all(
    void); // but those that had not ended when the recording did, which have made their calls then
void player_end_threads(void); // after that: them, too

#endif
