// Counters of a cgroup's memory controller, and the quota of its CPU controller.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A member is UINT64_MAX if it is unknown or unlimited.
struct proc_cgroup {
    uint64_t used;      // in bytes; memory.current (version 2) or memory.usage_in_bytes (version 1)
    uint64_t limit;     // lowest limit of the cgroup and its visible ancestors
    uint64_t oom_kills; // number of processes killed by the OOM killer
    // Share of the last 10 s during which some task waited for memory, in units of 0.01 %. This is
    // "some avg10" of the cgroup (version 2) or the host. See
    // https://docs.kernel.org/accounting/psi.html.
    uint64_t pressure;
    bool pressure_of_host;
    // Bytes in `used` that belong to the page cache; set only by proc_cgroup_read_files.
    uint64_t files;
};

// Reads the counters. `lines` is the contents of /proc/PID/cgroup. `root` is the mount point of
// cgroups. `host` is the directory of the host's pressure files (/proc/pressure), or NULL.
void proc_cgroup_read(const char *lines, const char *root, const char *host, struct proc_cgroup *c);

// Like proc_cgroup_read without pressure, but also reads memory.stat. This is slower, because the
// kernel must add up the counters of all CPUs.
void proc_cgroup_read_files(const char *lines, const char *root, struct proc_cgroup *c);

// Returns the number of CPUs whose time the cgroup and its visible ancestors may use, rounded down
// but at least 1. Returns UINT64_MAX if there is no quota. See
// https://docs.kernel.org/scheduler/sched-bwc.html.
uint64_t proc_cgroup_cpus(const char *lines, const char *root);
