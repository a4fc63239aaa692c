// The upload spool: a folder of traces, HOST/PROCESS/NAME.ht or any part of that, from which they are removed when a server has
// them.
#ifndef HEAPTAPE_TRANSFER_QUEUE_H
#define HEAPTAPE_TRANSFER_QUEUE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_file {
    char *path; // below the folder
    uint64_t bytes;
    int64_t time_ns; // of its last change
};

// The traces of a folder, folder by folder, those of each by number. All zero is an empty one.
struct queue {
    struct queue_file *files;
    size_t n, capacity;
    uint64_t bytes; // of all
};

// Adds the files *.ht below the folder, down to NAMES_MAX_PARTS. Links and names that begin with "." are left out. 0 or a negative
// errno with the text set. What is removed meanwhile is left out.
int queue_read(struct queue *q, const char *folder, struct err *e);
void queue_release(struct queue *q);

// Locks the folder, so that two processes do not upload the same files. A file descriptor that holds the lock until it is closed
// by every process that has it, -EWOULDBLOCK where another process has it, or a negative errno.
int queue_lock(const char *folder);

// Locks an open file while it is uploaded, so that it is not dropped. 0 or a negative errno: -ENOENT if it was dropped before,
// -EBUSY if an output still writes it.
int queue_hold(int fd);

// Removes the oldest segments of a spool, HOST/PROGRAM-TIME-PID/N.ht, and no other files, until those that are left have at most
// `limit` bytes; never the last one of the recording `own`, which is the path of its folder in the spool, nor one that is held, nor
// those of another recording that runs. `dropped` is called for each.
int queue_limit(const char *spool, const char *own, uint64_t limit,
                void (*dropped)(void *context, const char *path, uint64_t bytes), void *context,
                struct err *e);

// Is the path in that folder?
bool queue_is_in(const char *path, const char *folder);

// Removes the folder of `path` below `folder`, and those above it up to `folder`, which stays, as far as they are empty.
void queue_clean(const char *folder, const char *path);

#endif
