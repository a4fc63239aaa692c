// The directory of a receiver. A file gets its final name when it is complete and on disk.
#pragma once

#include "base/err.h"
#include "transfer/digest.h"

#include <stddef.h>
#include <stdint.h>

struct store {
    int folder; // file descriptor
    // File descriptor of .incoming, the directory of incomplete files. A receiver locks it.
    int incoming;
};

struct store_file {
    int fd; // -1 if there is no file
    uint64_t bytes;
    struct digest *digest; // digest of the file's bytes, or NULL if there is no file
    char name[32];         // name in .incoming
};

enum store_result {
    STORE_NEW,
    STORE_SAME,      // a file with this name and content exists
    STORE_DIFFERENT, // a file with this name and other content exists and was not replaced
};

// Opens or creates the directory, and removes incomplete files of an earlier receiver. Returns 0,
// or a negative errno with the message set.
int store_open(struct store *s, const char *folder, struct err *e);
void store_close(struct store *s);

// Creates a file. If the file system supports it, reserves `bytes` bytes. Pass 0 if the size is
// unknown. Returns 0 or a negative errno. Threads may call this function concurrently with
// different files.
int store_begin(const struct store *s, struct store_file *f, uint64_t bytes);

// Appends to the file. Returns 0 or a negative errno.
int store_write(struct store_file *f, const void *data, size_t n);

// Renames the file to `path` and closes it. names_check must accept `path`. Returns 0 with *result
// set, or a negative errno after removing the file. The digest is valid until store_abort.
int store_commit(const struct store *s, struct store_file *f, const char *path,
                 enum store_result *result);

// If the file was not committed, removes and closes it. Frees the digest. If there is no file, does
// nothing.
void store_abort(const struct store *s, struct store_file *f);
