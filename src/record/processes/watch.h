// Takes maps of the pages of processes now and then, in a thread of its own: reading one of a large process takes longer
// than programs could wait for their records to be drained.
#ifndef HEAPTAPE_PROC_WATCH_H
#define HEAPTAPE_PROC_WATCH_H

#include "base/buf.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_watch;

// When the last maps of a process were taken. All zero before the first.
struct proc_due {
    uint64_t first_ns, last_ns, rss_bytes;
};

// `recording`: a part of the paths of heaptape's own files, borrowed. NULL: no thread or no memory, and none is taken.
struct proc_watch *proc_watch_new(const char *recording, enum clock_kind clock);

// Ends the thread. NULL is allowed.
void proc_watch_free(struct proc_watch *w);

// Has a map taken, if it is time: the process has grown or shrunk by a sixteenth since its last one, or that is long ago
// in relation to how long it has run; no other map is being taken; and maps have cost no more than a part of the time up
// to now. Returns at once. `number` is that of the process in the trace.
void proc_watch_ask(struct proc_watch *w, struct proc_due *due, uint32_t number, pid_t pid,
                    uint64_t rss_bytes);

// Moves the payload of a PAGES frame of process *number into the empty *payload, when one is complete.
bool proc_watch_take(struct proc_watch *w, struct buf *payload, uint32_t *number);

#endif
