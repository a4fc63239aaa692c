// Declarations shared by the files of the drain.
#pragma once

#include "record/drain/drain.h"
#include "record/processes/proc_file.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

struct drain_candidate {
    uint32_t index, thread, stream, tid;
    uint32_t used;
    bool done;
    uint64_t first_word, epoch0, base0;
};

// Fills c->candidates with the chunks in use, sorted by stream and first word. Returns their
// number, or -ENOMEM.
int64_t drain_scan(struct drain *c, struct drain_spool *s);

// Passes the chunk's new words to the sink. Returns 0, or a negative errno. Returns 1 if earlier
// words are missing and may still arrive.
int drain_pass_chunk(struct drain *c, struct drain_spool *s, const struct drain_candidate *k,
                     const struct drain_sink *sink, struct err *e);

// Whether the first half of a realloc was kept. Set between the two halves.
enum drain_resizing {
    DRAIN_RESIZING_NONE = 0,
    DRAIN_RESIZING_KEPT = 1,
    DRAIN_RESIZING_DROPPED = 2
};

// Reserves descriptors for the files of the session directory. Returns false on failure.
bool drain_keep_spares(struct drain *c);

// Wakes at most `most` waiters of a futex.
static inline void drain_wake(_Atomic uint32_t *futex, int most)
{
    syscall(SYS_futex, futex, FUTEX_WAKE, most, NULL, NULL, 0);
}

// Wakes threads that are waiting for a chunk.
static inline void drain_wake_waiters(struct spool_header *h, int most)
{
    atomic_fetch_add(&h->free_sequence, 1);
    if (atomic_load(&h->waiters))
        drain_wake(&h->free_sequence, most);
}

// Maps chunks [0, n). Requires n <= max_chunks. Returns 0, or a negative errno.
int drain_map_more(struct drain_spool *s, uint32_t n);

void drain_close_reserves(struct drain *c);

// Reads the state changes from the ring. Call after drain_scan and before passing on segments, so
// that a call counts as paused if it starts after the request to pause has returned. Returns 0,
// -ENOMEM, or -EBADMSG if the ring is corrupt.
int drain_read_changes(struct drain_spool *s);

// If there are many changes, drops the older half of them. The limit is lower if all_seen is true:
// no stream then has unread events, so later events do not need the dropped changes.
void drain_forget_changes(struct drain_spool *s, bool all_seen);

// Passes to the sink the records that were made while recording was on. Sets n_words, epoch_end and
// base_end like drain_sink.segment.
int drain_pass_recorded(struct drain_spool *s, struct drain_stream *l, struct trace_segment *g,
                        const struct drain_sink *sink, struct err *e);

// Finds the process that uses the spool at `offset`, and sets pidfd and visible_pid. If the process
// is not found, keeps the file open for lifetime_is_over. Returns 0, or -EMFILE.
int lifetime_find(struct drain_spool *s, const char *dir, int fd, uint64_t offset);

// Returns true if the process has ended. Returns false if it is alive or its state is unknown.
bool lifetime_is_over(const struct drain_spool *s);

bool lifetime_sees_processes(void);

// Returns true if no other process has the file open or mapped. Returns false if another process
// uses the file, or if this is unknown.
bool lifetime_is_unused(int fd);

bool lifetime_has_session(pid_t pid, const char *dir);

// Returns the process's pid in its innermost pid namespace, or 0 if unknown.
uint32_t lifetime_own_pid(pid_t pid);

// Returns true if own_pid is the process's pid, either here or in its innermost pid namespace.
bool lifetime_has_pid(pid_t pid, uint32_t own_pid);

#define STALE_PREFIX "heaptape-" // prefix of session directory names

// Locks a session file until the descriptor is closed. Returns 0, or -EWOULDBLOCK if the session's
// recorder is alive.
int stale_lock(int fd);

// Opens the directory that contains the session file: the directory itself or, if the recorder ran
// as root, a directory in it. Returns a descriptor, or -1 if there is no session file.
int stale_find_session(int dir_fd);

// Removes a directory and its contents.
void stale_remove(const char *path);

// Removes directories that were left behind when this user's recorders were killed.
void stale_sweep(const char *folder);
