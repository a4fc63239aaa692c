// The upload spool: a folder of traces, HOST/PROCESS/NAME.ht or any part of that, from which they are removed when a server has
// them.
#ifndef HEAPTAPE_TRANSFER_QUEUE_H
#define HEAPTAPE_TRANSFER_QUEUE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct queue_file {
    char *path; // below the folder
    uint64_t bytes;
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

// The same for a file that is open, while it is uploaded: such a one is not dropped. 0 or a negative errno, -ENOENT where it was
// dropped before.
int queue_hold(int fd);

// Removes the oldest traces until those that are left have at most `limit` bytes; never the last one, nor one that is held.
// `dropped` is called for each.
int queue_limit(const char *folder, uint64_t limit, void (*dropped)(void *context, const char *path, uint64_t bytes),
                void *context, struct err *e);

// Removes the folder of `path` below `folder`, and those above it up to `folder`, which stays, as far as they are empty.
void queue_clean(const char *folder, const char *path);

#endif
