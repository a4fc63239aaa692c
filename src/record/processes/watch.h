// Reads page maps of processes in a separate thread, because reading a large process takes longer
// than the drain may wait.
#pragma once

#include "base/buf.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_watch;

// Times of the first request and of the last map; RSS and words at the last map; pause after the
// last map. The caller sets `words` to the number of words that the process has written. Initialize
// to zero.
struct proc_due {
    uint64_t first_ns, last_ns, rss_bytes, last_words, pause_ns, words;
};

// Distributes the time for maps among the processes in round-robin order. Initialize to zero.
struct proc_turns {
    struct proc_due *next; // process whose turn it is, or NULL; borrowed during a pass
    uint32_t number;
    pid_t pid;
    uint64_t rss_bytes;
    // Number of due processes in the previous pass, and so far in this pass.
    unsigned competing, counted;
    uint64_t rest_until_ns; // no map begins before this time
};

// Adds a process to the pass over all processes. A map is due if RSS has changed by 1/16, or if the
// last map is old enough. Among the due processes whose pause has ended, the process that has
// waited longest has the next turn. A pause grows with the number of due processes.
void proc_turns_add(struct proc_turns *t, struct proc_due *due, uint64_t now, uint32_t number,
                    pid_t pid, uint64_t rss_bytes);

// proc_turns_end ends the pass, and returns true if a map of the process t->number begins now. The
// next map cannot begin before proc_turns_charge is called with the CPU time and the duration of
// this map. proc_turns_charge returns how long the process must pause.
bool proc_turns_end(struct proc_turns *t, uint64_t now);
uint64_t proc_turns_charge(struct proc_turns *t, uint64_t now, uint64_t cpu_ns, uint64_t wall_ns);

// `recording` is a string that the paths of heaptape's own files contain; it is borrowed. Returns
// NULL on failure. The other functions accept NULL.
struct proc_watch *proc_watch_new(const char *recording, enum clock_kind clock);

void proc_watch_free(struct proc_watch *w);

// proc_watch_request requests a map of the process `number` of the trace in the process's turn.
// Call it for each process, and then call proc_watch_start, which begins to read at most one map.
// Both functions return immediately.
void proc_watch_request(struct proc_watch *w, struct proc_due *due, uint32_t number, pid_t pid,
                        uint64_t rss_bytes);
void proc_watch_start(struct proc_watch *w);

// Moves a PAGES payload into *payload, which must be empty, and sets the number and the pause of
// the process. *payload remains empty if the map could not be read. Returns false if no map has
// been completed.
bool proc_watch_collect(struct proc_watch *w, struct buf *payload, uint32_t *number,
                        uint64_t *pause_ns);
