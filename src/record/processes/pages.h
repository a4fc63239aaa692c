// Reads from /proc which of a process's pages are resident.
#ifndef HEAPTAPE_PROC_PAGES_H
#define HEAPTAPE_PROC_PAGES_H

#include "trace/pages.h"

#include <sys/types.h>

struct proc_pages_how {
    const char *recording; // string contained in the paths of heaptape's own files
    uint64_t max_ns;       // time limit
};

// Sets all of *p except process and stamps. The caller must release *p, even on failure. Takes
// about 1 us per mapping and 15 ns per resident page, and holds the process's mmap lock for
// reading, for part of the memory at a time. Returns 0, -ETIME after max_ns, or another negative
// errno, such as -EACCES.
int proc_pages_read(struct trace_pages *p, pid_t pid, const struct proc_pages_how *how);

#endif
