// The clock that the allocator sees. Many allocators return memory to the kernel some time after its last use (jemalloc's
// decay, mimalloc's delays), so in a replay at full speed, which takes a part of the program's time, they would return less
// than in the program. There the clock shows the recorded time instead: PACE ops set it, and it stands still between them.
//
// An allocator is linked against clock_gettime, and the player's comes first in the search order. Through --wrap the player
// itself calls __wrap_clock_gettime, which is libc's.
#include "replay/player/player.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int clock_function(clockid_t, struct timespec *);

static clock_function *of_libc;   // NULL: an allocator's constructor asks before main
static _Atomic uint64_t set_ns;   // the time shown; 0: it runs
static _Atomic uint64_t ahead_ns; // of CLOCK_MONOTONIC while it runs

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

// Not clock_monotonic_ns: --wrap leaves calls alone that the file itself has a function for.
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
    // A clock never goes back: where the replay took longer than the program, it goes on when the time has come.
    atomic_store_explicit(&ahead_ns, set > now ? set - now : 0, memory_order_relaxed);
    atomic_store_explicit(&set_ns, 0, memory_order_relaxed);
}
