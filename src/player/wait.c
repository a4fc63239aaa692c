// Waiting for another thread: spin for a short while, then sleep on a futex.
#include "player/player.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void player_futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    futex(word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void player_futex_wake(_Atomic uint32_t *word)
{
    futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

void player_wait_init(void)
{
    player.can_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void player_wake(struct player_line *line)
{
    atomic_store_explicit(&line->wanted, UINT64_MAX, memory_order_relaxed);
    // Release: a sleeper that sees the new number sees `wanted` as it is now, and asks anew if it needs to.
    atomic_fetch_add_explicit(&line->sequence, 1, memory_order_release);
    player_futex_wake(&line->sequence);
}

static void want(struct player_line *line, uint64_t position)
{
    uint64_t wanted = atomic_load_explicit(&line->wanted, memory_order_relaxed);
    while (position < wanted && !atomic_compare_exchange_weak_explicit(&line->wanted, &wanted, position,
                                                                       memory_order_seq_cst, memory_order_relaxed)) {
    }
}

static bool met(struct player_line *line, uint64_t position)
{
    return atomic_load_explicit(&line->progress, memory_order_acquire) >= position;
}

static bool spin(struct player_line *line, uint64_t position)
{
    uint64_t begin = clock_ticks(player.results->clock);
    do {
        for (int i = 0; i < 16; i++) {
#if defined(__x86_64__)
            _mm_pause();
#endif
            if (met(line, position))
                return true;
        }
    } while (clock_ticks(player.results->clock) - begin < player.results->spin_ticks);
    return false;
}

// Without membarrier the publisher's store of progress can be late behind its look at `wanted`, so nobody sleeps long.
static void sleep_on(struct player_line *line, uint32_t sequence)
{
    const struct timespec brief = {0, 100000};
    futex(&line->sequence, FUTEX_WAIT_PRIVATE, sequence, player.can_membarrier ? NULL : &brief);
}

void player_wait_slow(struct player_thread *t, uint32_t thread, uint64_t position)
{
    struct player_line *line = &player.lines[thread];
    t->unmet++;
    if (spin(line, position))
        return;
    for (;;) {
        uint32_t sequence = atomic_load_explicit(&line->sequence, memory_order_acquire);
        want(line, position);
        // Pairs with publish(): either the publisher sees `wanted`, or we see its progress here.
        if (player.can_membarrier)
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        if (met(line, position))
            return;
        t->sleeps++;
        sleep_on(line, sequence);
        if (met(line, position))
            return;
    }
}
