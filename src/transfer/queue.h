// The upload spool: a directory with traces HOST/PROCESS/NAME.ht, or a subtree of such a directory.
// A trace is removed after its upload.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_file {
    char *path; // relative to the directory
    uint64_t bytes;
    int64_t time_ns; // time of the last modification
};

// Traces in a directory, sorted by directory and number. Initialize with zeros.
struct queue {
    struct queue_file *files;
    size_t n, capacity;
    uint64_t bytes; // total size of all files
};

// Adds the files *.ht in the directory, up to NAMES_MAX_PARTS levels deep. Ignores symbolic links,
// names that begin with ".", and files that disappear during the call. Returns 0, or a negative
// errno with the message set.
int queue_read(struct queue *q, const char *folder, struct err *e);
void queue_release(struct queue *q);

// Locks the directory, so that only one process uploads its files. Returns a file descriptor,
// -EWOULDBLOCK if another process holds the lock, or another negative errno. The lock is held until
// all duplicates of the descriptor are closed.
int queue_lock(const char *folder);

// Locks an open file during its upload, so that it is not dropped. Returns 0, or a negative errno:
// -ENOENT if it was already dropped, -EBUSY if it is still being written.
int queue_hold(int fd);

// Removes the oldest segments of a spool, HOST/PROGRAM-TIME-PID/N.ht, until they total at most
// `limit` bytes. Keeps files that are not segments, the last segment of the recording `own` (the
// recording's path in the spool), files locked by queue_hold, and segments of other running
// recordings. Calls `dropped` for each removed file.
int queue_limit(const char *spool, const char *own, uint64_t limit,
                void (*dropped)(void *context, const char *path, uint64_t bytes), void *context,
                struct err *e);

// Returns true if the path names an entry of the directory `folder`.
bool queue_is_in(const char *path, const char *folder);

// Removes the directory of `path`, and its parents below `folder`, while they are empty.
void queue_clean(const char *folder, const char *path);
