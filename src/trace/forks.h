// Finds the process images of a trace that started by fork. A converter needs the forks before it
// reads events, because the PROCESS frame of a child may follow events of the parent and even its
// end.
#ifndef HEAPTAPE_TRACE_FORKS_H
#define HEAPTAPE_TRACE_FORKS_H

#include "base/map.h"
#include "trace/file.h"

struct trace_fork {
    uint32_t parent, child; // numbers of process images; the parent's is lower
    uint64_t stamp; // the child inherits the blocks that are live in the parent at this stamp
    bool seen; // seen by the recorder; otherwise `stamp` is the start of the child, which is later
};

// Forks in the order of their children. All zero is empty.
struct trace_forks {
    struct trace_fork *items;
    size_t n, capacity;
};

void trace_forks_release(struct trace_forks *f);

// Finds forks while PROCESS frames are read in order. Initially zero.
struct trace_forks_finder {
    struct map by_pid; // last image of the pid + 1
    struct forks_image *images;
    size_t n, capacity;
};

void trace_forks_finder_release(struct trace_forks_finder *s);

// Adds the next process. Returns 1 with its fork in *fork, 0 if no earlier process is its parent,
// or -ENOMEM.
int trace_forks_finder_add(struct trace_forks_finder *s, const struct trace_process *p,
                           struct trace_fork *fork);

// Finds all forks of a trace and restarts at its first frame. Skips events and stops at damaged
// frames. Finds nothing in a pipe. Returns 0, or a negative errno with the text set.
int trace_forks_find(struct trace_forks *f, struct trace_file *t, struct err *e);

// Keeps only the forks of the process and its ancestors.
void trace_forks_keep(struct trace_forks *f, uint32_t process);

#endif
