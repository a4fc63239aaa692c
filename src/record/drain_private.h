// Shared by the files of the consumer.
#ifndef HEAPTAPE_RECORD_DRAIN_PRIVATE_H
#define HEAPTAPE_RECORD_DRAIN_PRIVATE_H

#include "record/drain.h"

// A chunk with something to take, as the scan saw it.
struct drain_candidate {
    uint32_t index, thread, lane, tid;
    uint32_t used; // words published
    bool done;
    uint64_t first_word, epoch0, base0;
};

// Collects the chunks in use in c->candidates, in order of lane and place. Their number, or -ENOMEM.
int64_t drain_scan(struct drain *c, struct drain_spool *s);

// Hands what is new in the chunk to the sink. 1 when words before it are missing and may yet come.
int drain_take(struct drain *c, struct drain_spool *s, const struct drain_candidate *k, const struct drain_sink *sink,
               struct err *e);

// A lane between the halves of a realloc, and what was done with the first.
enum toggles_resizing { TOGGLES_NONE = 0, TOGGLES_KEPT = 1, TOGGLES_DROPPED = 2 };

// Wakes all who sleep on a futex.
void drain_wake(_Atomic uint32_t *futex);

// Takes the toggles that processes have made. Before a drain's segments, after its look at what is published: a call that
// starts after a pause has returned is then known to be paused. 0 or -ENOMEM.
int toggles_take(struct drain_spool *s);

// Forgets toggles that no event to come is older than.
void toggles_forget(struct drain_spool *s);

// Hands the records of recorded times on, in one segment or several. Fills in `g` as a sink does.
int toggles_pass(struct drain_spool *s, struct drain_lane *l, struct trace_segment *g, const struct drain_sink *sink,
                 struct err *e);

// Finds the process that wrote the header, among those that the recorder can see: its pid here, 0 when it has ended.
// A process in another pid namespace knows itself by another number. start_time 0: the process does not know its own.
pid_t drain_find_process(uint32_t pid, uint64_t start_time);

#define STALE_PREFIX "heaptape-" // of the names of recorders' folders

// Locks a session's file for as long as the descriptor is open. -EWOULDBLOCK: its recorder lives.
int stale_lock(int fd);

// Removes the folders that recorders of this user have left behind.
void stale_sweep(const char *folder);

// The same for a process whose pid is one of the recorder's own namespace: its end is seen without a look at all others.
pid_t drain_find_own(uint32_t pid, uint64_t start_time);

// Is the namespace, as in a spool's header, the recorder's own?
bool drain_is_own_namespace(const char *pid_namespace);

// Field 22 of /proc/PID/stat, 0 when there is no such process.
uint64_t drain_start_time(pid_t pid);

// Has the process ended? A zombie has. For processes without a pidfd.
bool drain_is_gone(pid_t pid, uint64_t start_time);

#endif
