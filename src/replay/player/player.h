// The player is a process that runs under the allocator being measured. It calls malloc and related
// functions only to replay a plan. The player itself neither allocates nor uses streams of stdio.
// Its own memory is in shared mappings that are populated before the start, so all private resident
// memory belongs to the allocator.
#pragma once

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

// The progress that a thread publishes. Fills a cache line.
struct player_line {
    // Number of the word after the last publishing op.
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t progress;
    // The lowest progress for which a sleeping thread is waiting, or UINT64_MAX if no thread is
    // sleeping.
    _Atomic uint64_t wanted;
    _Atomic uint32_t sequence; // futex for sleeping threads; incremented to wake them
};

// A copy of another thread's progress. Progress never decreases, so if the copy already satisfies a
// dependency, the other thread's line does not have to be read.
struct player_seen {
    uint64_t progress;
    uint32_t thread;
};

// One timed call that has not been added to the histograms yet.
struct player_latency {
    // size_class is RESULTS_SIZES for a call without a size
    uint64_t ticks : 48, kind : 8, size_class : 8;
};

enum { PLAYER_LATENCIES = 256 };

// Number of waits for other threads, and how many of them made the thread sleep.
struct player_waits {
    uint64_t blocked, sleeps;
};

struct player_thread {
    struct results_position *at; // the current op
    struct player_line *line;
    struct player_latency *latencies; // array of PLAYER_LATENCIES entries, if calls are timed
    uint32_t n_latencies, number;
    uint32_t shard; // index of the histograms for the latencies
    struct player_waits waits, coupled_waits;
    uint64_t requested_bytes, usable_bytes; // only with RESULTS_TOUCH_USABLE
    bool touches;                           // a TOUCH has set the next three members
    // How much of the next block the program used: the number of pages, and the number of KiB used
    // contiguously from the start.
    uint64_t touch_pages, touch_front_kib;
    uint64_t touch_late; // number of pages left to a TOUCH_LATE
    uint64_t touch_ns;   // time spent writing to big blocks
    uint64_t max_lag_ns; // maximum lag behind the recorded pace
    // For a streamed plan: the thread's window, and the number of segments received.
    uint32_t window, segments;
    uint64_t stalls, stall_ns, free_space_wait_ns;
    // CPU time of the program between two calls, the part of it for which no line was evicted, and
    // the number of lines evicted so far.
    uint64_t gap_ns, owed_ns, evicted;
    uint64_t paced_ns, paced_calls;       // time of the last PACE, and number of calls before it
    uint64_t calls;                       // number of calls made; valid at the end of a stream
    uint64_t refused;                     // number of calls counted by player_refused()
    struct player_seen seen[PLAYER_SEEN]; // indexed by thread number modulo PLAYER_SEEN
};

struct player {
    struct results *results;
    const uint64_t *words; // words of the plan
    const struct plan_header *plan;
    const struct plan_thread *threads;
    struct plan_streaming *streaming; // NULL if the plan is not streamed
    void **slot_table;                // addresses of live blocks, indexed by entry
    struct player_line *lines;
    uint64_t start_ns;
    int statm_fd;
    uint64_t virtual_at_start;
    size_t (*usable_size)(void *); // NULL if the allocator lacks malloc_usable_size
    bool can_membarrier;
    int (*null_init)(uint64_t); // exported by the null allocator; NULL under other allocators
    void (*null_real)(bool);    // like null_init
    // Sums over the SAMPLE and COUNT ops of all threads.
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t events, live_bytes, peak_live_bytes;
};

extern struct player player;

// Returns the word after the first word of the thread's current op.
static inline const uint64_t *player_pc(const struct player_thread *t)
{
    return (const uint64_t *)(uintptr_t)atomic_load_explicit(&t->at->pc, memory_order_relaxed);
}

static inline void player_set_pc(struct results_position *at, const uint64_t *pc)
{
    atomic_store_explicit(&at->pc, (uintptr_t)pc, memory_order_relaxed);
}

// Returns the number of the word at player_pc(). In a streamed plan, later windows reuse the memory
// of earlier windows, so the function adds a base.
static inline uint64_t player_position(const struct player_thread *t)
{
    return t->at->base + (uint64_t)(player_pc(t) - player.words);
}

// player.c: writes the reason and the position of `t` to the results, and ends the process.
_Noreturn void player_fail(enum results_status why, const struct player_thread *t, unsigned kind,
                           uint64_t size, int error);

// The two halves of player_fail(). player_claim_failure() returns in only one thread. This thread
// may add details to the reason before it calls the second half.
void player_claim_failure(void);
_Noreturn void player_report_failure(enum results_status why, const struct player_thread *t,
                                     unsigned kind, uint64_t size, int error);

// Counts an aligned allocation that the allocator refused because of its arguments, and continues
// without the block. Ends the process if the allocator is out of memory. errno must have been 0
// before the call.
void player_refused(struct player_thread *t, unsigned kind, uint64_t size);

// Returns the alignment of the thread's current call.
static inline uint64_t player_alignment(const struct player_thread *t)
{
    // Skips entry and size.
    return player_pc(t)[plan_op_of(player_pc(t)[-1]) == PLAN_WIDE ? 2 : 0];
}

static inline const uint64_t *player_first_word(const struct player_thread *t)
{
    return player.words + player.threads[t->number].first_word;
}

// Map zeroed, shared memory. `flags` is MAP_POPULATE or MAP_NORESERVE. On failure, player_try_map
// returns NULL, and player_map_shared ends the process.
void *player_try_map(size_t bytes, int flags);
void *player_map_shared(size_t bytes, int flags);

// Copies the slot table to snapshot RESULTS_SNAPSHOT_*. No other thread may be running.
void player_snapshot(unsigned which);

// functions.c: finds the functions that the plan needs. Ends the process if malloc does not belong
// to the requested allocator, or if a function is missing.
void player_find_functions(void);
void player_find_allocator(void); // works without a plan
extern void *player_functions[HT_KIND_LIMIT];

// Allocates a preexisting block with a call of `kind`: HT_MALLOC, HT_MEMALIGN, or a throwing new.
void *player_allocate_preexisting(unsigned kind, uint64_t align, uint64_t size);

// Returns the function with this name if the allocator defines it, otherwise NULL.
void *player_own_function(const char *name);

// Returns true if libc's malloc is in use.
bool player_is_libc(void);

// loop.c: plays the stream from this word to its end, as configured in the results. Adds the number
// of calls that were made to t->calls.
void player_play(struct player_thread *t, const uint64_t *from);

// verify.c: checks for RESULTS_TOUCH_VERIFY.
void player_verify_init(void);

// Checks and fills the `block` of `size` bytes that a call of `kind` returned for the entry. If
// `block` is NULL, there is nothing to check.
void player_verify_allocated(struct player_thread *t, unsigned kind, uint64_t entry, void *block,
                             uint64_t size);

// If the entry has a block, checks it before a call of `kind` frees the block.
void player_verify_free(struct player_thread *t, unsigned kind, uint64_t entry);

// Checks all remaining blocks. Call after the threads have exited.
void player_verify_leftovers(void);

// memory.c: resident memory.
void player_memory_init(void);
// Frees libstdc++'s pool for exceptions if the recording contains the allocation of the pool.
// Otherwise, the pool would be allocated twice.
void player_release_cxx_pool(void);
void player_touch_own_pages(void); // touches the player's own data segments and stack
void player_sample(uint64_t events, uint64_t live_change, bool keep); // executes SAMPLE and COUNT
uint64_t player_private_bytes(void);

struct player_memory {
    // Private resident memory excluding the player's own, and size of the address space.
    uint64_t private_bytes, virtual_bytes;
};

struct player_memory player_memory(void);
void player_reset_peak(void);
uint64_t player_peak_private_bytes(void); // peak since the reset, or 0 if unknown

// Returns the resident bytes of files in the allocator's libraries, or RESULTS_UNKNOWN.
uint64_t player_library_bytes(void);

// streaming.c: executes NEXT_SEGMENT. Call after publishing. Returns the next word, or NULL if the
// thread has no more ops.
const uint64_t *player_next_segment(struct player_thread *t);
void player_wait_for_stream(void); // waits until the ring is full

// wait.c: waits for threads and for points in time.
void player_wait_init(void);
void player_wait_slow(struct player_waits *w, uint32_t thread, uint64_t position);
void player_wake(struct player_line *line);
void player_futex_wait(_Atomic uint32_t *word, uint32_t value);
void player_futex_wake(_Atomic uint32_t *word);
void player_pace(struct player_thread *t, uint64_t due_ns); // executes PACE
void player_idle(uint64_t ns);

// clock.c: the clock that the allocator sees. player_clock_set() stops the clock at `ns` after the
// start of the replay, or at its current time if that is later. player_clock_run() restarts the
// clock from that time.
void player_clock_init(void);
void player_clock_set(uint64_t ns);
void player_clock_run(void);

// evict.c: caches as cold as in the program. Call player_evict() before a timed call, if gap_ns of
// the thread is not 0. player_set_gap() sets gap_ns at a PACE with the time `ns`, after `calls`
// calls of the thread.
void player_evict_init(void);
void player_evict(struct player_thread *t);
void player_set_gap(struct player_thread *t, uint64_t ns, uint64_t calls);

// counters.c: hardware counters.
void player_counters_init(void);
void player_counters_start(void);
void player_counters_stop(void);

// extensions.c: functions beyond the malloc API.
void player_extensions_init(void);
void player_find_version(char *text, size_t size);
void player_stats(void); // executes STATS
void player_trim(void);  // executes TRIM
// Executes SWITCH. `exited` is true if the previous thread has exited.
void player_switch(uint32_t thread, bool exited);

// threads.c: threads and their figures. `play` is player_play().
void player_threads_init(void (*play)(struct player_thread *t, const uint64_t *from));
void player_thread_init(struct player_thread *t, uint32_t number);
void player_add_latencies(struct player_thread *t); // also removes the latencies from the thread
void player_merge_latencies(void);                  // call after all threads have exited
// Position of the main thread before and after the threads run.
struct results_position *player_unthreaded_position(void);
// Starts the threads that no other thread starts; they wait for player_release_threads().
void player_start_threads(void);
void player_release_threads(void);
// Waits until `n` threads have exited, unless this wait might never end.
void player_wait_for_exits(uint64_t n);
// Executes START_THREAD. Waits until `exits` threads have exited, then starts thread `number`.
void player_start_thread(const struct player_thread *parent, uint32_t number, uint64_t exits);
void player_thread_started(const struct player_thread *t);
void player_thread_exited(struct player_thread *t); // adds the thread's figures to the results
// Joins all threads except those that outlive the recording. When the function returns, these
// threads have made all their calls.
void player_join_all(void);
void player_end_threads(void); // joins the threads that outlive the recording
