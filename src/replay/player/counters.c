// Hardware counters of all threads during the replay, if the kernel permits them.
#include "replay/player/player.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DTLB_READ_MISSES                                                                           \
    (PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |                                 \
     PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
    size_t figure; // offset within struct results_figures
    uint32_t type;
    uint64_t config;
} events[] = {
    {offsetof(struct results_figures, cycles), PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {offsetof(struct results_figures, instructions), PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_INSTRUCTIONS},
    {offsetof(struct results_figures, cache_misses), PERF_TYPE_HARDWARE,
     PERF_COUNT_HW_CACHE_MISSES},
    {offsetof(struct results_figures, dtlb_misses), PERF_TYPE_HW_CACHE, DTLB_READ_MISSES},
};

enum { COUNTERS = sizeof events / sizeof *events };

static int fds[COUNTERS];

static int open_counter(unsigned i, bool with_kernel)
{
    struct perf_event_attr attr = {
        .type = events[i].type,
        .size = sizeof attr,
        .config = events[i].config,
        .disabled = 1,
        .inherit = 1, // also counts threads that start later
        .exclude_kernel = !with_kernel,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

// Opens the counters. Also counts the kernel's work, if permitted.
void player_counters_init(void)
{
    struct results *r = player.results;
    r->report.counters_with_kernel = 1;
    for (unsigned i = 0; i < COUNTERS; i++) {
        fds[i] = open_counter(i, r->report.counters_with_kernel);
        if (fds[i] < 0 && (errno == EACCES || errno == EPERM) && i == 0) {
            r->report.counters_with_kernel = 0;
            fds[i] = open_counter(i, false);
        }
        if (fds[i] < 0 && !r->report.counters_errno)
            r->report.counters_errno = (uint32_t)errno;
    }
}

void player_counters_start(void)
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        if (fds[i] >= 0)
            ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
    }
}

// Reads a counter. If it shared the hardware and therefore ran only part of the time, scales its
// value.
static uint64_t read_counter(int fd)
{
    struct {
        uint64_t value, enabled, running;
    } count;
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) < 0 ||
        read(fd, &count, sizeof count) != sizeof count || !count.running)
        return RESULTS_UNKNOWN;
    return (uint64_t)((double)count.value * ((double)count.enabled / (double)count.running));
}

void player_counters_stop(void)
{
    for (unsigned i = 0; i < COUNTERS; i++)
        *(uint64_t *)((char *)&player.results->figures + events[i].figure) = read_counter(fds[i]);
}
