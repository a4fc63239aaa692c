// The folder that a receiver fills: files get their names when they are whole and on the disk.
#ifndef HEAPTAPE_TRANSFER_STORE_H
#define HEAPTAPE_TRANSFER_STORE_H

#include "base/err.h"
#include "transfer/digest.h"

#include <stddef.h>
#include <stdint.h>

struct store {
    int folder; // file descriptor
    int incoming; // … of .incoming in it, where files are until they are whole. Locked: one receiver has a folder
};

struct store_file {
    int fd; // -1: none
    uint64_t bytes;
    struct digest *digest; // of the bytes; NULL without a file
    char name[32];         // in .incoming
};

enum store_result {
    STORE_NEW,
    STORE_SAME,      // a file of the same name and content was there
    STORE_DIFFERENT, // … with other content, which is kept
};

// Opens the folder, which is created if it is missing, and removes what another receiver left unfinished. 0 or a negative errno
// with the text set.
int store_open(struct store *s, const char *folder, struct err *e);
void store_close(struct store *s);

// Opens a file and reserves space of `bytes`, 0 if it is not known, where the file system can. 0 or a negative errno. Several
// threads may do so at a time, each with a file of its own.
int store_begin(const struct store *s, struct store_file *f, uint64_t bytes);

// Appends. 0 or a negative errno.
int store_write(struct store_file *f, const void *data, size_t n);

// Gives the file the name `path`, for which names_check is true, and closes it. 0 with the result, or a negative errno: nothing of
// the file is left then. The digest is valid until store_abort.
int store_commit(const struct store *s, struct store_file *f, const char *path,
                 enum store_result *result);

// Removes and closes the file unless it has its name, and frees the digest. Does nothing without a file.
void store_abort(const struct store *s, struct store_file *f);

#endif
