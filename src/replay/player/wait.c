// Waits for another thread, first by spinning and then with a futex. Also waits for points in time.
#include "replay/player/player.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void call_futex(_Atomic uint32_t *word, int op, uint32_t value,
                       const struct timespec *timeout)
{
    syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void player_futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    call_futex(word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void player_futex_wake(_Atomic uint32_t *word)
{
    call_futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

void player_wait_init(void)
{
    // Threads inherit this setting. By default, the kernel may wake a sleeping thread 50 µs late.
    prctl(PR_SET_TIMERSLACK, 1);
    player.can_membarrier =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void player_wake(struct player_line *line)
{
    atomic_store_explicit(&line->wanted, UINT64_MAX, memory_order_relaxed);
    // Release order: a sleeping thread that sees the new sequence also sees the new `wanted`, and
    // sets `wanted` again if necessary.
    atomic_fetch_add_explicit(&line->sequence, 1, memory_order_release);
    player_futex_wake(&line->sequence);
}

static void lower_wanted(struct player_line *line, uint64_t position)
{
    uint64_t wanted = atomic_load_explicit(&line->wanted, memory_order_relaxed);
    while (position < wanted &&
           !atomic_compare_exchange_weak_explicit(&line->wanted, &wanted, position,
                                                  memory_order_seq_cst, memory_order_relaxed)) {
    }
}

static bool is_satisfied(struct player_line *line, uint64_t position)
{
    return atomic_load_explicit(&line->progress, memory_order_acquire) >= position;
}

static bool spin_until_satisfied(struct player_line *line, uint64_t position)
{
    uint64_t begin = clock_ticks(player.results->clock);
    do {
        for (int i = 0; i < 16; i++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            if (is_satisfied(line, position))
                return true;
        }
    } while (clock_ticks(player.results->clock) - begin < player.results->spin_ticks);
    return false;
}

void player_wait_slow(struct player_waits *w, uint32_t thread, uint64_t position)
{
    // Without membarrier, the publisher's load of `wanted` may overtake its store of progress, so
    // each sleep must be short.
    const struct timespec brief = {0, 100000}, *timeout = player.can_membarrier ? NULL : &brief;
    struct player_line *line = &player.lines[thread];
    w->blocked++;
    if (spin_until_satisfied(line, position))
        return;
    for (;;) {
        uint32_t sequence = atomic_load_explicit(&line->sequence, memory_order_acquire);
        lower_wanted(line, position);
        // Pairs with publish(). Either the publisher sees `wanted`, or this thread sees the
        // progress.
        if (player.can_membarrier)
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        if (is_satisfied(line, position))
            return;
        w->sleeps++;
        call_futex(&line->sequence, FUTEX_WAIT_PRIVATE, sequence, timeout);
        if (is_satisfied(line, position))
            return;
    }
}

// Approximate time for going to sleep and waking up. A thread that is early by less than this time
// does not sleep.
enum { WORTH_SLEEPING_NS = 50000 };

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

void player_pace(struct player_thread *t, uint64_t due_ns)
{
    if (!player.results->task.paced) {
        player_clock_set(due_ns);
        return;
    }
    uint64_t due = player.start_ns + due_ns, now = clock_monotonic_ns();
    if (due > now + WORTH_SLEEPING_NS)
        sleep_until(due);
    else if (now > due && now - due > t->max_lag_ns)
        t->max_lag_ns = now - due;
}

void player_idle(uint64_t ns)
{
    sleep_until(clock_monotonic_ns() + ns);
}
