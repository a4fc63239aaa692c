// Reads from /proc which of a process's pages are resident.
#pragma once

#include "trace/pages.h"

#include <sys/types.h>
#include <time.h>

// A mapping of any kind.
struct proc_mapping {
    struct trace_mapping mapping; // without runs
    char permissions[8];          // "rw-p"
    bool is_file;                 // the mapping has an inode
    const char *name;             // path or [name]; borrowed
};

struct proc_pages_how {
    const char *recording; // string contained in the paths of heaptape's own files
    uint64_t max_ns;       // time limit, measured with `clock`
    clockid_t clock;
    // If not NULL, called for each mapping in the order of addresses. Returns 0 or -ENOMEM.
    int (*each)(void *context, const struct proc_mapping *m);
    void *context;
};

// Sets all members of *p except process and stamps. The caller must release *p, even on failure.
// Takes about 1 us per mapping and 15 ns per resident page. During this time, the kernel repeatedly
// holds the process's mmap lock for reading, each time for part of the memory. Returns 0, -ETIME
// after max_ns, or another negative errno, such as -EACCES.
int proc_pages_read(struct trace_pages *p, pid_t pid, const struct proc_pages_how *how);
