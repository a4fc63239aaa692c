// Reads the page maps of processes from time to time, in a separate thread: a large process takes
// longer than its threads should wait for the drain.
#ifndef HEAPTAPE_PROC_WATCH_H
#define HEAPTAPE_PROC_WATCH_H

#include "base/buf.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_watch;

// When the last map of a process was read. All zero before the first.
struct proc_due {
    uint64_t first_ns, last_ns, rss_bytes;
};

// Starts the thread. `recording`: part of the paths of heaptape's own files, borrowed. Returns NULL
// on failure; the other functions accept NULL and do nothing.
struct proc_watch *proc_watch_new(const char *recording, enum clock_kind clock);

// Stops the thread. `w` may be NULL.
void proc_watch_free(struct proc_watch *w);

// Requests a map if it is due and the thread is idle; returns at once. A map is due when RSS has
// changed by 1/16 or a certain part of the process's age has passed. The CPU time of all maps is
// limited. `number`: the process in the trace.
void proc_watch_ask(struct proc_watch *w, struct proc_due *due, uint32_t number, pid_t pid,
                    uint64_t rss_bytes);

// Moves the payload of a complete PAGES frame into *payload, which must be empty. Returns false if
// no map is complete.
bool proc_watch_take(struct proc_watch *w, struct buf *payload, uint32_t *number);

#endif
