#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLOCKSOURCE_BYTES = 32 };

// Reads the name of the kernel's clock source. Returns false on failure.
static bool read_clocksource(char text[CLOCKSOURCE_BYTES])
{
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, CLOCKSOURCE_BYTES - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

// Returns true if the clock source reads the TSC. kvm-clock scales the TSC, so if kvm-clock is
// synchronized between CPUs, so is the TSC.
static bool is_counter(const char *clocksource)
{
    return strncmp(clocksource, "tsc", 3) == 0 || strncmp(clocksource, "kvm-clock", 9) == 0;
}

enum clock_kind clock_best(void)
{
    const char *forced = getenv("HEAPTAPE_CLOCK");
    char clocksource[CLOCKSOURCE_BYTES];
    if (forced && strcmp(forced, "monotonic") == 0)
        return CLOCK_KIND_MONOTONIC;
#if defined(__aarch64__)
    return CLOCK_KIND_CNTVCT;
#endif
    return read_clocksource(clocksource) && is_counter(clocksource) ? CLOCK_KIND_TSC
                                                                    : CLOCK_KIND_MONOTONIC;
}

bool clock_is_distrusted(enum clock_kind kind)
{
    char clocksource[CLOCKSOURCE_BYTES];
    return kind == CLOCK_KIND_TSC && read_clocksource(clocksource) && !is_counter(clocksource);
}

struct clock_point clock_point_take(enum clock_kind kind)
{
    struct clock_point best = {0};
    uint64_t narrowest = UINT64_MAX;
    // Keep the attempt in which the two CLOCK_MONOTONIC readings are closest together.
    for (unsigned i = 0; i < 5; i++) {
        uint64_t before = clock_monotonic_ns(), ticks = clock_ticks(kind),
                 after = clock_monotonic_ns();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = (struct clock_point){ticks, before + narrowest / 2};
        }
    }
    return best;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

uint64_t clock_hz_since(enum clock_kind kind, struct clock_point start)
{
    if (kind == CLOCK_KIND_MONOTONIC)
        return 1000000000u;
#if defined(__aarch64__)
    uint64_t hz;
    (void)start;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
#else
    struct clock_point now;
    while (now = clock_point_take(kind), now.ns - start.ns < CLOCK_POINTS_NS)
        sleep_ns(CLOCK_POINTS_NS - (now.ns - start.ns));
    return (uint64_t)((unsigned __int128)(now.ticks - start.ticks) * 1000000000u /
                      (now.ns - start.ns));
#endif
}

uint64_t clock_hz(enum clock_kind kind)
{
    struct clock_point start = clock_point_take(kind);
    if (kind == CLOCK_KIND_TSC)
        sleep_ns(20000000);
    return clock_hz_since(kind, start);
}

const char *clock_kind_name(enum clock_kind kind)
{
    static const char *const names[] = {[CLOCK_KIND_MONOTONIC] = "monotonic",
                                        [CLOCK_KIND_TSC] = "tsc",
                                        [CLOCK_KIND_CNTVCT] = "cntvct"};
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "unknown";
}
