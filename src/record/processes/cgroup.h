// Counters of a cgroup's memory controller, and the quota of its CPU controller.
#ifndef HEAPTAPE_PROC_CGROUP_H
#define HEAPTAPE_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// UINT64_MAX: unknown, or no limit.
struct proc_cgroup {
    uint64_t used;      // bytes: memory.current (version 2), memory.usage_in_bytes (version 1)
    uint64_t limit;     // lowest limit of the cgroup and its visible ancestors
    uint64_t oom_kills; // number of processes killed by the OOM killer
    // Share of the last 10 s during which some task waited for memory, in units of 0.01 %: "some
    // avg10" of the cgroup (version 2) or the host. https://docs.kernel.org/accounting/psi.html
    uint64_t pressure;
    bool pressure_of_host;
    uint64_t files; // bytes of the page cache in `used`; set only by proc_cgroup_read_files
};

// Reads the counters. `lines` is the contents of /proc/PID/cgroup, `root` the mount point of
// cgroups, `host` the directory of the host's pressure files (/proc/pressure), or NULL.
void proc_cgroup_read(const char *lines, const char *root, const char *host, struct proc_cgroup *c);

// Like proc_cgroup_read without pressure, but also reads memory.stat, for which the kernel adds up
// counters of all CPUs.
void proc_cgroup_read_files(const char *lines, const char *root, struct proc_cgroup *c);

// Returns the number of CPUs whose time the cgroup and its visible ancestors may use, rounded down
// but at least 1, or UINT64_MAX without a quota. https://docs.kernel.org/scheduler/sched-bwc.html
uint64_t proc_cgroup_cpus(const char *lines, const char *root);

// Reads the contents of /proc/PID/cgroup into `lines`, or "" if the process has ended.
void proc_cgroup_lines(pid_t pid, char *lines, size_t bytes);

#endif
