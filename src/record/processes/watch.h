// Reads page maps of processes in a separate thread, because reading a large process takes longer
// than the drain may wait.
#ifndef HEAPTAPE_PROC_WATCH_H
#define HEAPTAPE_PROC_WATCH_H

#include "base/buf.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_watch;

// Times of the first request and of the last map, and the RSS at the last map. Initialize to zero.
struct proc_due {
    uint64_t first_ns, last_ns, rss_bytes;
};

// `recording`: string contained in the paths of heaptape's own files, borrowed. Returns NULL on
// failure, which the other functions accept.
struct proc_watch *proc_watch_new(const char *recording, enum clock_kind clock);

void proc_watch_free(struct proc_watch *w);

// Requests a map if it is due and no other map is being read. Returns immediately. A map is due if
// RSS has changed by 1/16, or if the last map is old enough. The total time spent is limited.
// `number` is the number of the process in the trace.
void proc_watch_request(struct proc_watch *w, struct proc_due *due, uint32_t number, pid_t pid,
                        uint64_t rss_bytes);

// Moves a finished PAGES payload into *payload, which must be empty. Returns false if there is no
// map.
bool proc_watch_collect(struct proc_watch *w, struct buf *payload, uint32_t *number);

#endif
