// Resident anonymous memory that no recorded block explains: the program's own mappings, and the
// heaps of allocators whose functions are not recorded.
#pragma once

#include "base/progress.h"
#include "trace/file.h"

enum {
    UNEXPLAINED_MIN_BYTES = 10 << 20,
    UNEXPLAINED_MIN_PERCENT = 10, // percentage of the resident memory
};

// Memory of a process in the page map with the most resident anonymous memory.
struct unexplained_process {
    uint32_t process; // number in the trace
    uint32_t pid;
    uint64_t bytes, rss_bytes;
    // The process ran before the recording, or its recording was paused. In that case, earlier
    // blocks are not recorded, so `bytes` is the growth since the first page map.
    bool is_growth;
};

struct unexplained {
    struct unexplained_process *items; // most bytes first; owned
    size_t n;
};

// Finds the processes whose unexplained memory exceeds both limits, and whose recording has no
// known gaps. Omits fork children, which may use blocks of their parents. Memory counts as
// explained if a recorded block or recorded mapping was ever within the same MiB. Rewinds the
// trace, which must have been opened for reading twice. Reads the page maps first, and then reads
// events only while a process may still reach the limits: a sample first, then all. Returns 0, or a
// negative errno with *e set. The caller must release *u in either case.
int unexplained_find(struct unexplained *u, struct trace_file *t, struct progress *progress,
                     struct err *e);
void unexplained_release(struct unexplained *u);
