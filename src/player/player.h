// The player: a process of its own that runs under the allocator to be measured and calls malloc and friends only to
// replay. No stdio, no allocation of its own, all memory of its own in shared mappings that are filled before the start:
// what is resident but not shared is the allocator's.
#ifndef HEAPTAPE_PLAYER_PLAYER_H
#define HEAPTAPE_PLAYER_PLAYER_H

#include "base/clock.h"
#include "plan/file.h"
#include "plan/ops.h"
#include "player/results.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { PLAYER_CACHE_LINE = 64, PLAYER_SEEN = 16, PLAYER_NO_WINDOW = PLAN_WINDOWS };

_Static_assert((int)RESULTS_KINDS == (int)PLAN_OP_LIMIT,
               "the results have a histogram for each kind that can be played");

// What a thread tells the others, on a cache line of its own.
struct player_line {
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t progress; // word number behind the latest op that publishes
    _Atomic uint64_t wanted;   // lowest progress that a sleeper waits for; UINT64_MAX: nobody sleeps
    _Atomic uint32_t sequence; // futex of the sleepers: grows when they are woken
};

// Progress of another thread as last seen. It only grows, so a wait that this meets needs no look at the other's line.
struct player_seen {
    uint64_t progress;
    uint32_t thread;
};

// One thread of the replay.
struct player_thread {
    const uint64_t *pc; // next word
    struct player_line *line;
    struct histogram *calls; // as struct results has them, when calls are timed
    uint32_t number;
    uint64_t sleeps, unmet;
    uint64_t requested_bytes, usable_bytes; // RESULTS_TOUCH_USABLE
    uint64_t late_ns;                       // behind the recorded pace, at most
    // Of a plan that is fed: number of the word at pc 0 in the window that the thread is in, that window, and segments
    // got so far.
    uint64_t base;
    uint32_t window, segments;
    uint64_t reader_waits, reader_wait_ns, room_wait_ns;
    struct player_seen seen[PLAYER_SEEN]; // by thread number modulo PLAYER_SEEN
};

struct player {
    struct results *results;
    const uint64_t *words; // the plan
    const struct plan_header *plan;
    const struct plan_thread *threads;
    struct plan_feed *feed; // NULL: the plan is whole
    void **places;
    struct player_line *lines;
    uint64_t start_ns;
    int statm_fd;
    size_t (*usable_size)(void *); // NULL when the allocator has none of its own
    bool can_membarrier;
    void (*null_real)(bool); // of the null allocator; NULL under any other
    // Summed up by the SAMPLE and COUNT ops of all threads.
    _Alignas(PLAYER_CACHE_LINE) _Atomic uint64_t events, live_bytes;
};

extern struct player player;

// The number of the word at t->pc.
static inline uint64_t player_position(const struct player_thread *t)
{
    return t->base + (uint64_t)(t->pc - player.words);
}

// Ends the process; the results say why. Where is the thread's pc. Does not return.
_Noreturn void player_fail(enum results_status why, const struct player_thread *t, unsigned kind, uint64_t size,
                           int error);

// The two halves of player_fail: the first returns in one thread only, which may then say more.
void player_failing(void);
_Noreturn void player_failed(enum results_status why, const struct player_thread *t, unsigned kind, uint64_t size,
                             int error);

// Zeroed shared memory of the player's own, all of it there. Ends the process when there is none.
void *player_map_own(size_t bytes);

// player_functions.c: finds the functions that the plan needs. Ends the process when malloc is not that of the
// allocator asked for, or a function is missing.
void player_find_functions(void);
void player_find_allocator(void); // the part of this that needs no plan
extern void *player_functions[HT_KIND_LIMIT];

// A block that is there before the start, made by a call of `kind`: HT_MALLOC, HT_MEMALIGN, or a throwing new.
void *player_take_preexisting(unsigned kind, uint64_t align, uint64_t size);

// The function of that name if it is the allocator's own, else NULL.
void *player_allocators_own(const char *name);

// Is libc's own malloc in use?
bool player_is_libc(void);

// player_version.c: asks the allocator for its version.
void player_find_version(char *text, size_t size);

// player_loop_*.c: plays until the stream's end.
void player_play_page(struct player_thread *t);
void player_play_none(struct player_thread *t);
void player_play_all(struct player_thread *t);
void player_play_timed_page(struct player_thread *t);
void player_play_timed_none(struct player_thread *t);
void player_play_timed_all(struct player_thread *t);

void player_play_checked(struct player_thread *t);
void player_play_usable(struct player_thread *t);

// player_verify.c: what player_play_checked does besides. t->pc is behind the first word of the op.
void player_verify_init(void);

// `place` has got `block` (NULL: nothing to check) of `size` bytes from a call of `kind`, and its content is checked
// and filled in.
void player_verify_taken(struct player_thread *t, unsigned kind, uint64_t place, void *block, uint64_t size);

// The block of `place`, if there is one, is about to be given up by a call of `kind`.
void player_verify_giving(struct player_thread *t, unsigned kind, uint64_t place);

// All blocks that are left, when the threads are gone.
void player_verify_rest(void);

// The loop that the results ask for.
void player_play(struct player_thread *t);

// player_memory.c.
void player_memory_init(void);
void player_touch_own_pages(void);                                    // of data segments that are not the allocator's
void player_sample(uint64_t events, uint64_t live_change, bool look); // SAMPLE and COUNT
uint64_t player_private_bytes(void);
void player_reset_peak(void);
uint64_t player_peak_private_bytes(void); // since the reset, 0 when the kernel does not say

// player_feed.c. MORE and STOP of a plan that is fed; what the thread has done has been published.
void player_more(struct player_thread *t);
void player_leave_window(struct player_thread *t);
void player_feed_wait_ready(void); // until there is no more to be had before the start

// player_wait.c.
void player_wait_init(void);
void player_wait_slow(struct player_thread *t, uint32_t thread, uint64_t position);
void player_wake(struct player_line *line);
void player_futex_wait(_Atomic uint32_t *word, uint32_t value);
void player_futex_wake(_Atomic uint32_t *word);

// player_counters.c: the results' counters run from start to stop.
void player_counters_init(void);
void player_counters_start(void);
void player_counters_stop(void);

// player_stats.c.
void player_stats_init(void);
void player_stats(void); // STATS
void player_trim(void);  // TRIM

// player_main.c: notes where the blocks are, when no thread plays. HOLD, and at the end.
void player_hold(unsigned which);

// player_caches.c.
void player_caches_init(void);
void player_switch(uint32_t thread, bool over); // SWITCH; over: the thread before has ended

// player_pace.c.
void player_pace_init(void);
void player_pace(struct player_thread *t, uint64_t due_ns); // PACE
void player_settle(uint64_t ns);                            // lets that time pass

// player_threads.c.
void player_thread_init(struct player_thread *t, uint32_t number);
void player_start_threads(void); // those that no other thread gives birth to; they wait for player_go
void player_go(void);
void player_birth(const struct player_thread *parent, uint32_t number);
void player_thread_begins(const struct player_thread *t);
void player_thread_over(struct player_thread *t); // adds its histograms to the results
void player_join_all(void);

#endif
