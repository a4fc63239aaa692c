// Which process images of a trace began as forks of others: what a converter has to know before it reads the events, since
// the frame of a child may stand behind the events, and even the end, of its parent.
#ifndef HEAPTAPE_TRACE_FORKS_H
#define HEAPTAPE_TRACE_FORKS_H

#include "base/map.h"
#include "trace/file.h"

struct trace_fork {
    uint32_t parent, child; // numbers of process images, the parent's is lower
    uint64_t stamp;         // the child has what was live in the parent then
    bool seen; // by the recorder; else `stamp` is that of the child's start, which is later
};

// In the order of their children. All zero is empty.
struct trace_forks {
    struct trace_fork *items;
    size_t n, capacity;
};

void trace_forks_release(struct trace_forks *f);

// Tells which processes are forks as they come, in the order of their numbers. All zero has seen none.
struct trace_forks_finder {
    struct map by_pid; // the last image + 1
    struct forks_image *images;
    size_t n, capacity;
};

void trace_forks_finder_release(struct trace_forks_finder *s);

// Takes the next process. 1: it is a fork, and *fork says of which; 0: of none that came before; -ENOMEM.
int trace_forks_finder_add(struct trace_forks_finder *s, const struct trace_process *p,
                           struct trace_fork *fork);

// Finds all forks, from where the trace begins, and starts again there. Events are not read; what is damaged ends the
// search. Nothing is found in a pipe. 0 or a negative errno with the text set.
int trace_forks_find(struct trace_forks *f, struct trace_file *t, struct err *e);

// Leaves the fork that the process began with, that of its parent, and so on.
void trace_forks_keep(struct trace_forks *f, uint32_t process);

#endif
