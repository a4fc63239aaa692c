// Declarations shared by the files of the drain.
#ifndef HEAPTAPE_RECORD_DRAIN_PRIVATE_H
#define HEAPTAPE_RECORD_DRAIN_PRIVATE_H

#include "record/drain/drain.h"

// A chunk in use, as the scan saw it.
struct drain_candidate {
    uint32_t index, thread, stream, tid;
    uint32_t used; // words published
    bool done;
    uint64_t first_word, epoch0, base0;
};

// Collects the chunks in use in c->candidates, sorted by stream and first word. Returns their
// number, or -ENOMEM.
int64_t drain_scan(struct drain *c, struct drain_spool *s);

// Passes the new words of the chunk to the sink. Returns 0; 1 if earlier words of the stream are
// missing and may still arrive; or a negative errno.
int drain_take(struct drain *c, struct drain_spool *s, const struct drain_candidate *k,
               const struct drain_sink *sink, struct err *e);

// State of a stream between the two halves of a realloc: whether the first half was kept.
enum drain_resizing {
    DRAIN_RESIZING_NONE = 0,
    DRAIN_RESIZING_KEPT = 1,
    DRAIN_RESIZING_DROPPED = 2
};

// Reserves descriptors for drain_open_file. Returns false if not all could be reserved.
bool drain_keep_spares(struct drain *c);

// Wakes all waiters of a futex, or all threads of a process that wait for a chunk.
void drain_wake(_Atomic uint32_t *futex);
void drain_wake_waiters(struct spool_header *h);

// Opens a file of the session directory; if descriptors run out, closes a spare one first. Returns
// -1 with errno on failure.
int drain_open_file(struct drain *c, const char *name, int flags);

// Maps chunks [0, n); n <= max_chunks. Returns 0, or a negative errno.
int drain_map_more(struct drain_spool *s, uint32_t n);

void drain_close_reserves(struct drain *c);

// Remembers a refused spool for drain_check_refused; tests whether `name` is remembered.
void drain_keep_refused(struct drain *c, const char *name, unsigned reserve);
bool drain_is_refused(const struct drain *c, const char *name);

// Reads the state changes that processes have made. Call after drain_scan and before passing
// segments on: a call that starts after a pause has returned is then known to be paused. Returns 0,
// -ENOMEM, or -EBADMSG if the ring's counters are inconsistent.
int drain_take_changes(struct drain_spool *s);

// Drops the older half of many state changes. With all_seen (no stream has unread events), no later
// event precedes them; without it, the bound is higher and events may be misjudged.
void drain_forget_changes(struct drain_spool *s, bool all_seen);

// Passes the records of recorded times to the sink, in one or more segments. Sets n_words,
// epoch_end and base_end of `g` like a sink.
int drain_pass_recorded(struct drain_spool *s, struct drain_stream *l, struct trace_segment *g,
                        const struct drain_sink *sink, struct err *e);

// Finds the process that made the spool at `offset` of the open file and sets pidfd and
// visible_pid. If the process cannot be found, keeps the file open, to detect the end of the
// process with lifetime_is_over. Returns 0, or -EMFILE.
int lifetime_find(struct drain_spool *s, const char *dir, int fd, uint64_t offset);

// Returns true if the process has ended; false if that is unknown.
bool lifetime_is_over(const struct drain_spool *s);

// Returns true if /proc shows processes.
bool lifetime_sees_processes(void);

// Returns true if `fd` is the only open file description of the file and no other process maps it.
// False also if the kernel cannot tell.
bool lifetime_nobody_has(int fd);

// Returns true if the environment of the process names the session directory.
bool lifetime_is_of_session(pid_t pid, const char *dir);

// Returns true if `own_pid` is the process's pid in the recorder's or in its innermost pid
// namespace.
bool lifetime_is_called(pid_t pid, uint32_t own_pid);

#define STALE_PREFIX "heaptape-" // of the names of session directories

// Locks a session file until the descriptor is closed. Returns 0, or -EWOULDBLOCK if its recorder
// lives.
int stale_lock(int fd);

// Removes a directory and its contents, which may include late spools and files of programs.
void stale_remove(const char *path);

// Removes directories left behind by recorders of this user.
void stale_sweep(const char *folder);

#endif
