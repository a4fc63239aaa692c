// The directory of a receiver. A file gets its name after it is complete and on disk.
#ifndef HEAPTAPE_TRANSFER_STORE_H
#define HEAPTAPE_TRANSFER_STORE_H

#include "base/err.h"
#include "transfer/digest.h"

#include <stddef.h>
#include <stdint.h>

struct store {
    int folder; // file descriptor
    // file descriptor of .incoming, the directory of incomplete files; locked by one receiver
    int incoming;
};

struct store_file {
    int fd; // -1: no file
    uint64_t bytes;
    struct digest *digest; // digest of the bytes; NULL without a file
    char name[32];         // name in .incoming
};

enum store_result {
    STORE_NEW,
    STORE_SAME,      // a file with this name and content exists
    STORE_DIFFERENT, // a file with this name and other content exists and is kept
};

// Opens or creates the directory, and removes incomplete files of an earlier receiver. Returns 0,
// or a negative errno with the message set.
int store_open(struct store *s, const char *folder, struct err *e);
void store_close(struct store *s);

// Creates a file and reserves `bytes`, if the file system supports that. Pass 0 if the size is
// unknown. Returns 0 or a negative errno. Threads may call it concurrently with different files.
int store_begin(const struct store *s, struct store_file *f, uint64_t bytes);

// Appends to the file. Returns 0 or a negative errno.
int store_write(struct store_file *f, const void *data, size_t n);

// Renames the file to `path`, for which names_check must be true, and closes it. Returns 0 with
// *result set, or a negative errno after removing the file. The digest is valid until store_abort.
int store_commit(const struct store *s, struct store_file *f, const char *path,
                 enum store_result *result);

// Removes and closes the file if it was not committed, and frees the digest. Does nothing without a
// file.
void store_abort(const struct store *s, struct store_file *f);

#endif
