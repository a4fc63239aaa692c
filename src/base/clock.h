// The clocks of a trace. Malloc-free and lock-free: capture may include it.
#ifndef HEAPTAPE_BASE_CLOCK_H
#define HEAPTAPE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

// Which counter stamps come from. Wire values of the trace format: never renumber.
enum clock_kind {
    CLOCK_KIND_MONOTONIC = 0, // CLOCK_MONOTONIC in nanoseconds: where no invariant counter exists
    CLOCK_KIND_TSC = 1,       // x86-64 rdtsc, invariant and synchronised between CPUs
    CLOCK_KIND_CNTVCT = 2,    // aarch64 cntvct_el0
};

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

// Builtins stand for instructions of x86-64 here and elsewhere: <x86intrin.h> costs each file that includes it 0.3 s.

// The raw counter, not ordered with the instructions round it (3 ns against 16 with lfence): it may be read before an
// earlier load has got its cache line. The converter repairs what that disturbs.
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

// The raw counter, read after all that a branch before it depended on is known (aarch64) or after all earlier loads
// (x86-64).
static inline uint64_t clock_counter_ordered(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence(); // rdtscp costs as much
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return clock_counter();
}

// The clock in ticks of `kind`.
static inline uint64_t clock_ticks(enum clock_kind kind)
{
    return kind == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : clock_counter();
}

// The best clock of this machine: the counter when the kernel itself trusts it to be invariant and the same
// on all CPUs
// (/sys/devices/system/clocksource), CLOCK_MONOTONIC else. HEAPTAPE_CLOCK=monotonic forces the latter, for
// tests.
enum clock_kind clock_best(void);

// Ticks a second of `kind`, from the kernel's own calibration where readable, else measured against
// CLOCK_MONOTONIC over some milliseconds.
uint64_t clock_hz(enum clock_kind kind);

// One moment on both clocks. The counter and CLOCK_MONOTONIC are read some tens of ns apart at most.
struct clock_point {
    uint64_t ticks, ns;
};
struct clock_point clock_point_take(enum clock_kind kind);

// Ticks a second of `kind`, from how far it got since `start`. Waits until CLOCK_POINTS_NS have passed since then; the
// relative error is about 50 ns over the distance.
#define CLOCK_POINTS_NS 1000000u
uint64_t clock_hz_since(enum clock_kind kind, struct clock_point start);

const char *clock_kind_name(enum clock_kind kind);

// Ticks to nanoseconds without overflow.
static inline uint64_t clock_to_ns(uint64_t ticks, uint64_t hz)
{
    return hz ? (uint64_t)((unsigned __int128)ticks * 1000000000u / hz) : 0;
}

#endif
