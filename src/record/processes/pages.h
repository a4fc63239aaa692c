// Reads what of a process is resident, and where, from /proc.
#ifndef HEAPTAPE_PROC_PAGES_H
#define HEAPTAPE_PROC_PAGES_H

#include "trace/pages.h"

#include <sys/types.h>

struct proc_pages_how {
    const char *recording; // a part of the paths of heaptape's own files in the process
    uint64_t max_ns;       // after which reading is given up
};

// Fills in an empty *p but for its process and stamps; to be released in any case. Costs about 1 us a mapping and 15 ns a
// resident page, and holds the process's mmap lock for reading meanwhile, a part of its memory at a time. 0, or a negative
// errno: -ETIME after max_ns, -EACCES and others where /proc does not show the process.
int proc_pages_read(struct trace_pages *p, pid_t pid, const struct proc_pages_how *how);

#endif
