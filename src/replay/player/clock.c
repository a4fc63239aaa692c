// The clock that the allocator sees. Many allocators return memory to the kernel some time after
// its last use (jemalloc's decay, mimalloc's delays). A replay at full speed is shorter than the
// program's run, so allocators would return less memory. Therefore the clock shows recorded time:
// each PACE op sets the clock, which does not advance until the next PACE op.
//
// An allocator's call of clock_gettime reaches the player's function, which comes first in the
// search order. The player itself calls __wrap_clock_gettime (because of --wrap), which calls
// libc's clock_gettime.
#include "replay/player/player.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int clock_function(clockid_t, struct timespec *);

// NULL before main. An allocator's constructor may read the time before main.
static clock_function *of_libc;
static _Atomic uint64_t set_ns;   // the time to show, or 0 while the clock is running
static _Atomic uint64_t ahead_ns; // offset from CLOCK_MONOTONIC while the clock is running

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t);

void player_clock_init(void)
{
    *(void **)&of_libc = dlsym(RTLD_NEXT, "clock_gettime");
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    return of_libc ? of_libc(id, t) : (int)syscall(SYS_clock_gettime, id, t);
}

// Returns libc's CLOCK_MONOTONIC. clock_monotonic_ns() cannot be used here, because --wrap has no
// effect in the file that defines clock_gettime().
static uint64_t now_ns(void)
{
    struct timespec t;
    __wrap_clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    uint64_t set = atomic_load_explicit(&set_ns, memory_order_relaxed),
             ahead = atomic_load_explicit(&ahead_ns, memory_order_relaxed);
    bool is_shown =
        id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_MONOTONIC_RAW;
    if (!is_shown || !(set | ahead))
        return __wrap_clock_gettime(id, t);
    uint64_t ns = set ? set : now_ns() + ahead;
    *t = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

void player_clock_set(uint64_t ns)
{
    uint64_t to = player.start_ns + ns, set = atomic_load_explicit(&set_ns, memory_order_relaxed);
    while (to > set && !atomic_compare_exchange_weak_explicit(
                           &set_ns, &set, to, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void player_clock_run(void)
{
    uint64_t set = atomic_load_explicit(&set_ns, memory_order_relaxed), now = now_ns();
    // A clock must never go backwards. If the replay took longer than the program, the clock
    // continues from the current time.
    atomic_store_explicit(&ahead_ns, set > now ? set - now : 0, memory_order_relaxed);
    atomic_store_explicit(&set_ns, 0, memory_order_relaxed);
}
