// Reads from /proc which memory of a process is resident.
#ifndef HEAPTAPE_PROC_PAGES_H
#define HEAPTAPE_PROC_PAGES_H

#include "trace/pages.h"

#include <sys/types.h>

struct proc_pages_how {
    const char *recording; // part of the paths of heaptape's own files
    uint64_t max_ns;       // time limit
};

// Sets all of *p but process and stamps; release it also on failure. Takes about 1 us per mapping
// and 15 ns per resident page, and holds the process's mmap lock for reading, for part of the
// memory at a time. Returns 0, -ETIME after max_ns, or another negative errno, such as -EACCES.
int proc_pages_read(struct trace_pages *p, pid_t pid, const struct proc_pages_how *how);

#endif
