// What the memory controller of a process's cgroup counts.
#ifndef HEAPTAPE_PROC_CGROUP_H
#define HEAPTAPE_PROC_CGROUP_H

#include <stdint.h>

// `lines` is the text of /proc/PID/cgroup, `root` where cgroups are mounted (/sys/fs/cgroup). *used is what the cgroup uses
// (version 2: memory.current, version 1: memory.usage_in_bytes), *limit the lowest limit of it and of those above it that
// can be seen. UINT64_MAX: there is none.
void proc_cgroup_read(const char *lines, const char *root, uint64_t *used, uint64_t *limit);

#endif
