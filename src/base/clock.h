// Clocks of a trace. Must not allocate or lock, because the capture library includes this header.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// The clock that timestamps are read from. Trace files contain these values.
enum clock_kind {
    // CLOCK_MONOTONIC in nanoseconds, used if there is no invariant counter
    CLOCK_KIND_MONOTONIC = 0,
    CLOCK_KIND_TSC = 1,    // x86-64 rdtsc, invariant and synchronized between CPUs
    CLOCK_KIND_CNTVCT = 2, // aarch64 cntvct_el0
};

#define CLOCK_NS_PER_S 1000000000ull

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

// <x86intrin.h> would add 0.3 s to each compilation, so x86-64 instructions are written as
// builtins, here and elsewhere.

// Reads the counter without ordering it against the surrounding instructions. This takes 3 ns,
// compared with 16 ns if lfence comes first. The counter may be read before an earlier load has
// received its cache line. The converter repairs the resulting order.
static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return clock_monotonic_ns();
#endif
}

// Reads the counter after all earlier loads (x86-64), or after all earlier branches are resolved
// (aarch64).
static inline uint64_t clock_counter_ordered(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence(); // rdtscp takes just as long
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return clock_counter();
}

// Reads the counter after all earlier instructions (x86-64), or like clock_counter_ordered.
static inline uint64_t clock_counter_after(void)
{
#if defined(__x86_64__)
    unsigned cpu;
    return __builtin_ia32_rdtscp(&cpu);
#else
    return clock_counter_ordered();
#endif
}

static inline uint64_t clock_ticks(enum clock_kind kind)
{
    return kind == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : clock_counter();
}

// Returns the kind of this machine's counter if the kernel trusts the counter to be invariant and
// synchronized between CPUs (/sys/devices/system/clocksource), else CLOCK_KIND_MONOTONIC.
// For tests, HEAPTAPE_CLOCK=monotonic forces CLOCK_KIND_MONOTONIC.
enum clock_kind clock_best(void);

// Returns true if `kind` is the TSC but the kernel has switched to another clock source, because
// the TSC deviated from another clock. Returns false if the clock source is unknown.
bool clock_is_distrusted(enum clock_kind kind);

// Returns the ticks per second of `kind`. Reads cntfrq_el0 on aarch64, and measures for 20 ms on
// x86-64.
uint64_t clock_hz(enum clock_kind kind);

// Readings of the counter and of CLOCK_MONOTONIC, at most a few tens of ns apart.
struct clock_point {
    uint64_t ticks, ns;
};
struct clock_point clock_point_take(enum clock_kind kind);

// Returns the ticks per second of `kind`, measured since `start`. Waits until CLOCK_POINTS_NS have
// passed since `start`. The relative error is about 50 ns divided by the elapsed time.
#define CLOCK_POINTS_NS 1000000u
uint64_t clock_hz_since(enum clock_kind kind, struct clock_point start);

const char *clock_kind_name(enum clock_kind kind);

// Converts ticks to nanoseconds without overflow. Returns 0 if `hz` is 0.
static inline uint64_t clock_to_ns(uint64_t ticks, uint64_t hz)
{
    return hz ? (uint64_t)((unsigned __int128)ticks * 1000000000u / hz) : 0;
}
