// The player's side of a streamed plan (see replay/plan/streaming.h).
#include "replay/player/player.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void player_wait_for_stream(void)
{
    while (player.streaming && !atomic_load(&player.streaming->ready))
        futex_wait(&player.streaming->ready, 0);
}

// Leaves the window. After the last thread has left, the decoder may overwrite the window with
// later ops.
static void leave_window(struct player_thread *t)
{
    if (t->window == PLAYER_NO_WINDOW)
        return;
    struct plan_streaming *streaming = player.streaming;
    _Atomic uint32_t *left = &streaming->left[t->window];
    t->window = PLAYER_NO_WINDOW;
    t->at->base = 0;
    if (atomic_fetch_sub(left, 1) != 1)
        return;
    // Pairs with wait_for_free_space().
    atomic_fetch_add(&streaming->freed, 1);
    if (atomic_load(&streaming->decoder_sleeps))
        syscall(SYS_futex, &streaming->freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool spin_until_filled(const struct plan_streaming_thread *shared, uint32_t next)
{
    uint64_t begin = clock_ticks(player.results->clock);
    do {
        if (atomic_load(&shared->filled) != next)
            return true;
    } while (clock_ticks(player.results->clock) - begin < player.results->spin_ticks);
    return false;
}

static void wait_for_segment(struct player_thread *t, struct plan_streaming_thread *shared,
                             uint32_t next)
{
    uint64_t since = clock_monotonic_ns(), start = player.start_ns;
    // If the decoder is waiting for free space, it is waiting for slower threads, and so is this
    // thread.
    bool is_decoder = !atomic_load(&player.streaming->decoder_sleeps);
    if (!spin_until_filled(shared, next)) {
        while (atomic_load(&shared->filled) == next) {
            // Pairs with publish_window().
            atomic_store(&shared->sleeps, 1);
            if (atomic_load(&shared->filled) == next)
                futex_wait(&shared->filled, next);
        }
    }
    if (since < start)
        since = start;
    uint64_t now = clock_monotonic_ns(), ns = now > since ? now - since : 0;
    t->stalls++;
    if (is_decoder)
        t->stall_ns += ns;
    else
        t->free_space_wait_ns += ns;
}

const uint64_t *player_next_segment(struct player_thread *t)
{
    struct plan_streaming_thread *shared = &player.streaming->threads[t->number];
    uint32_t next = t->segments++;
    leave_window(t);
    if (next == shared->n_segments) {
        player_set_pc(t->at, NULL);
        player_sample(shared->events, shared->live_change, false);
        return NULL;
    }
    if (atomic_load(&shared->filled) == next)
        wait_for_segment(t, shared, next);
    if (atomic_load(&player.streaming->failed))
        player_fail(RESULTS_STREAM_ENDED, t, 0, 0, 0);
    uint64_t n = shared->segments[next % PLAN_WINDOWS], ring_at = player.plan->ring_at;
    uint64_t in_ring = (n - PLAN_FIRST_WINDOW) % (player.plan->window_words * PLAN_WINDOWS);
    t->window = (uint32_t)(in_ring / player.plan->window_words);
    t->at->base = n - ring_at - in_ring;
    return player.words + ring_at + in_ring;
}
