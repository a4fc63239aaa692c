// What the memory controller of a process's cgroup counts.
#ifndef HEAPTAPE_PROC_CGROUP_H
#define HEAPTAPE_PROC_CGROUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// UINT64_MAX: not known, or none.
struct proc_cgroup {
    uint64_t used;      // bytes (version 2: memory.current, version 1: memory.usage_in_bytes)
    uint64_t limit;     // the lowest one of it and of those above it that can be seen
    uint64_t oom_kills; // processes of it that the kernel has killed for want of memory
};

// `lines` is the text of /proc/PID/cgroup, `root` where cgroups are mounted (/sys/fs/cgroup).
void proc_cgroup_read(const char *lines, const char *root, struct proc_cgroup *c);

// That text of a process; "" when it has ended.
void proc_cgroup_lines(pid_t pid, char *lines, size_t bytes);

#endif
