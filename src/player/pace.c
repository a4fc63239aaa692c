// When a call is due, if the replay keeps the recorded pace.
#include "player/player.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

// Sleeping and waking up takes about that long; who is early by less goes on.
enum { WORTH_SLEEPING_NS = 50000 };

void player_pace_init(void)
{
    // Threads inherit it. The default lets the kernel be 50 µs late.
    prctl(PR_SET_TIMERSLACK, 1);
}

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

void player_pace(struct player_thread *t, uint64_t due_ns)
{
    if (!player.results->paced)
        return;
    uint64_t due = player.start_ns + due_ns, now = clock_monotonic_ns();
    if (due > now + WORTH_SLEEPING_NS)
        sleep_until(due);
    else if (now > due && now - due > t->late_ns)
        t->late_ns = now - due;
}

void player_settle(uint64_t ns)
{
    sleep_until(clock_monotonic_ns() + ns);
}
