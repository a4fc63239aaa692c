// Shared by the files of the drain.
#ifndef HEAPTAPE_RECORD_DRAIN_PRIVATE_H
#define HEAPTAPE_RECORD_DRAIN_PRIVATE_H

#include "record/drain/drain.h"

// A chunk with something to take, as the scan saw it.
struct drain_candidate {
    uint32_t index, thread, stream, tid;
    uint32_t used; // words published
    bool done;
    uint64_t first_word, epoch0, base0;
};

// Collects the chunks in use in c->candidates, in order of stream and place. Their number, or -ENOMEM.
int64_t drain_scan(struct drain *c, struct drain_spool *s);

// Hands what is new in the chunk to the sink. 1 when words before it are missing and may yet come.
int drain_take(struct drain *c, struct drain_spool *s, const struct drain_candidate *k,
               const struct drain_sink *sink, struct err *e);

// A stream between the halves of a realloc, and what was done with the first.
enum drain_resizing {
    DRAIN_RESIZING_NONE = 0,
    DRAIN_RESIZING_KEPT = 1,
    DRAIN_RESIZING_DROPPED = 2
};

// Keeps a few descriptors for when no other is left. False when they are not to be had.
bool drain_keep_spares(struct drain *c);

// Wakes all who sleep on a futex; and the threads of a process that wait for a chunk.
void drain_wake(_Atomic uint32_t *futex);
void drain_wake_waiters(struct spool_header *h);

// Opens a file of the session's directory. When no descriptor is left, by one of those that are kept for that. -1 with errno.
int drain_open_file(struct drain *c, const char *name, int flags);

// Maps chunks [0, n), n ≤ max_chunks. 0, or a negative errno.
int drain_map_more(struct drain_spool *s, uint32_t n);

void drain_close_reserves(struct drain *c);

// Keeps a refused spool, for drain_check_refused; is that the name of one?
void drain_keep_refused(struct drain *c, const char *name, unsigned reserve);
bool drain_is_refused(const struct drain *c, const char *name);

// Takes the changes that processes have made. Before a drain's segments, after its look at what is published: a call that
// starts after a pause has returned is then known to be paused. 0, -ENOMEM, or -EBADMSG when the ring holds less than it
// says.
int drain_take_changes(struct drain_spool *s);

// Forgets changes that no event to come is older than; `all_seen`: no stream has unread events. Of very many some are
// forgotten in any case.
void drain_forget_changes(struct drain_spool *s, bool all_seen);

// Hands the records of recorded times on, in one segment or several. Fills in `g` as a sink does.
int drain_pass_recorded(struct drain_spool *s, struct drain_stream *l, struct trace_segment *g,
                        const struct drain_sink *sink, struct err *e);

// Finds the process that has made the spool in the open file, at `offset` of it, and fills in pidfd and visible_pid; or
// keeps the file, to see by it when the process has ended. 0, or -EMFILE.
int lifetime_find(struct drain_spool *s, const char *dir, int fd, uint64_t offset);

// Has the process ended? False where that cannot be known.
bool lifetime_is_over(const struct drain_spool *s);

// Does /proc show processes at all?
bool lifetime_sees_processes(void);

// Is this the only open file description, and is the file mapped by nobody who has another? False also when the kernel does
// not say.
bool lifetime_nobody_has(int fd);

// Does the process's environment name the session?
bool lifetime_is_of_session(pid_t pid, const char *dir);

// Does the process know itself by that number, in its own pid namespace?
bool lifetime_is_called(pid_t pid, uint32_t own_pid);

#define STALE_PREFIX "heaptape-" // of the names of recorders' folders

// Locks a session's file for as long as the descriptor is open. -EWOULDBLOCK: its recorder lives.
int stale_lock(int fd);

// Removes a folder and what is in it: spools of processes that came too late to be drained, and what programs have put there.
void stale_remove(const char *path);

// Removes the folders that recorders of this user have left behind.
void stale_sweep(const char *folder);

#endif
