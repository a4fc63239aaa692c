// The player's side of a plan that is fed to it while it plays (feed.h).
#include "player/player.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void player_feed_wait_ready(void)
{
    while (player.feed && !atomic_load(&player.feed->ready))
        futex_wait(&player.feed->ready, 0);
}

// The last one lets heaptape fill the window again. What all of them have done happened before whatever comes into it.
void player_leave_window(struct player_thread *t)
{
    if (t->window == PLAYER_NO_WINDOW)
        return;
    struct plan_feed *feed = player.feed;
    _Atomic uint32_t *left = &feed->left[t->window];
    t->window = PLAYER_NO_WINDOW;
    t->base = 0;
    if (atomic_fetch_sub(left, 1) != 1)
        return;
    // Pairs with wait_for_room().
    atomic_fetch_add(&feed->freed, 1);
    if (atomic_load(&feed->reader_sleeps))
        syscall(SYS_futex, &feed->freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool spin(const struct plan_feed_thread *f, uint32_t next)
{
    uint64_t begin = clock_ticks(player.results->clock);
    do {
        if (atomic_load(&f->filled) != next)
            return true;
    } while (clock_ticks(player.results->clock) - begin < player.results->spin_ticks);
    return false;
}

static void wait_for_segment(struct player_thread *t, struct plan_feed_thread *f, uint32_t next)
{
    uint64_t since = clock_monotonic_ns(), start = player.start_ns;
    // Who waits while the reader waits for room waits for the threads that are behind.
    bool is_readers = !atomic_load(&player.feed->reader_sleeps);
    if (!spin(f, next)) {
        while (atomic_load(&f->filled) == next) {
            // Pairs with hand_over().
            atomic_store(&f->sleeps, 1);
            if (atomic_load(&f->filled) == next)
                futex_wait(&f->filled, next);
        }
    }
    if (since < start)
        since = start;
    uint64_t now = clock_monotonic_ns(), ns = now > since ? now - since : 0;
    t->reader_waits++;
    if (is_readers)
        t->reader_wait_ns += ns;
    else
        t->room_wait_ns += ns;
}

void player_more(struct player_thread *t)
{
    struct plan_feed_thread *f = &player.feed->threads[t->number];
    uint32_t next = t->segments++;
    player_leave_window(t);
    if (atomic_load(&f->filled) == next)
        wait_for_segment(t, f, next);
    if (atomic_load(&player.feed->failed))
        player_fail(RESULTS_NO_MORE, t, 0, 0, 0);
    uint64_t n = f->segments[next % PLAN_WINDOWS], ring_at = player.plan->ring_at;
    uint64_t in_ring = (n - ring_at) % (player.plan->window_words * PLAN_WINDOWS);
    t->window = (uint32_t)(in_ring / player.plan->window_words);
    t->pc = player.words + ring_at + in_ring;
    t->base = n - ring_at - in_ring;
}
