// Finds the forks in a trace. A converter needs the forks before it reads events, because a child's
// PROCESS frame may come after events of its parent, or even after the parent's end.
#pragma once

#include "base/map.h"
#include "trace/file.h"

struct trace_fork {
    uint32_t parent, child; // process image numbers; the parent's number is lower
    uint64_t stamp;         // the child inherits the parent's blocks that are live at this stamp
    // True if the recorder saw the fork. Otherwise, `stamp` is the time when the child started,
    // some time after the fork.
    bool seen;
};

// Forks, ordered by child. A zeroed struct is an empty list.
struct trace_forks {
    struct trace_fork *items;
    size_t n, capacity;
};

void trace_forks_release(struct trace_forks *f);

// Finds forks while the caller reads PROCESS frames in order. Initialize to zero.
struct trace_forks_finder {
    struct map by_pid; // maps a pid to the index of its last image plus 1
    struct forks_image *images;
    size_t n, capacity;
};

void trace_forks_finder_release(struct trace_forks_finder *s);

// Adds the next process. Returns 1 and sets *fork if an earlier process is its parent, 0 if not, or
// -ENOMEM.
int trace_forks_finder_add(struct trace_forks_finder *s, const struct trace_process *p,
                           struct trace_fork *fork);

// Finds all forks of a trace and restarts at its first frame. Skips events, and stops at a damaged
// frame. Finds no forks in a pipe. Returns 0, or a negative errno with the message set.
int trace_forks_find(struct trace_forks *f, struct trace_file *t, struct err *e);

// Keeps only the forks of the process and its ancestors.
void trace_forks_keep(struct trace_forks *f, uint32_t process);
