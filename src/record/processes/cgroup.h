// What the memory controller of a process's cgroup counts.
#ifndef HEAPTAPE_PROC_CGROUP_H
#define HEAPTAPE_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// UINT64_MAX: not known, or none.
struct proc_cgroup {
    uint64_t used;      // bytes (version 2: memory.current, version 1: memory.usage_in_bytes)
    uint64_t limit;     // the lowest one of it and of those above it that can be seen
    uint64_t oom_kills; // processes of it that the kernel has killed for want of memory
    // Share of the last 10 s in which at least one task waited for memory, in hundredths of a percent: PSI's "some avg10" of the
    // cgroup (version 2), or where that is not known, of the host. https://docs.kernel.org/accounting/psi.html
    uint64_t pressure;
    bool pressure_of_host;
};

// `lines` is the text of /proc/PID/cgroup, `root` where cgroups are mounted (/sys/fs/cgroup), `host` the folder of the host's
// pressure (/proc/pressure), or NULL.
void proc_cgroup_read(const char *lines, const char *root, const char *host, struct proc_cgroup *c);

// That text of a process; "" when it has ended.
void proc_cgroup_lines(pid_t pid, char *lines, size_t bytes);

#endif
