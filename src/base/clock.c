#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int kernel_clocksource_is(const char *want)
{
    char text[32] = {0};
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strncmp(text, want, strlen(want)) == 0;
}

enum clock_kind clock_best(void)
{
    const char *forced = getenv("HEAPTAPE_CLOCK");
    if (forced && strcmp(forced, "monotonic") == 0)
        return CLOCK_KIND_MONOTONIC;
#if defined(__aarch64__)
    return CLOCK_KIND_CNTVCT;
#endif
    // kvm-clock is a TSC that the hypervisor scales: the counter is as synchronised as the guest's own clock.
    if (kernel_clocksource_is("tsc") || kernel_clocksource_is("kvm-clock"))
        return CLOCK_KIND_TSC;
    return CLOCK_KIND_MONOTONIC;
}

// Frequency from two readings 20 ms apart: the error is the reading jitter (~50 ns) over the distance, 3 in
// 10⁶.
static uint64_t measure_hz(enum clock_kind kind)
{
    uint64_t ns0 = clock_monotonic_ns(), t0 = clock_ticks(kind), ns1;
    do {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        ns1 = clock_monotonic_ns();
    } while (ns1 - ns0 < 20000000u);
    uint64_t t1 = clock_ticks(kind);
    return (uint64_t)((unsigned __int128)(t1 - t0) * 1000000000u / (ns1 - ns0));
}

uint64_t clock_hz(enum clock_kind kind)
{
    if (kind == CLOCK_KIND_MONOTONIC)
        return 1000000000u;
#if defined(__aarch64__)
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
#else
    return measure_hz(kind);
#endif
}

const char *clock_kind_name(enum clock_kind kind)
{
    switch (kind) {
    case CLOCK_KIND_MONOTONIC:
        return "monotonic";
    case CLOCK_KIND_TSC:
        return "tsc";
    case CLOCK_KIND_CNTVCT:
        return "cntvct";
    }
    return "unknown";
}
