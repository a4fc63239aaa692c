// The allocators that can be replayed on: names, where their libraries are, tunables.
#ifndef HEAPTAPE_REPLAY_ALLOCATORS_H
#define HEAPTAPE_REPLAY_ALLOCATORS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

// A row of the table of names.
struct allocator_info {
    const char *name;
    // File names, looked for in the loader's folders, best first; one with a '/' is a glob(7) pattern of its own. NULL
    // for libc.
    const char *files[4];
    const char *tunables; // where its environment variables are documented
};

// Ended by a row without a name.
extern const struct allocator_info allocator_infos[];

// An allocator to replay on. All zero owns nothing.
struct allocator {
    char *name;    // as in the table, or the library's file name
    char *library; // absolute path, NULL for libc
    char **tunables;
    size_t n_tunables; // VAR=value each
};

// Path of a preloaded library that malloc is from, as other players choose their allocator; NULL: malloc is libc's.
const char *allocator_preloaded(void);

// Parses NAME[,VAR=value…] or PATH[,VAR=value…]. -EINVAL when it is neither, -ENOENT when there is no such library
// on this machine.
int allocator_parse(struct allocator *a, const char *spec, struct err *e);
void allocator_release(struct allocator *a);

// Finds a library by its file name as ld.so would: LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, the standard ones.
// 0 and an absolute path that the caller frees, -ENOENT, -ENOMEM.
int allocator_find_file(const char *file, char **path);

// The library of a row of the table on this machine: 0 and a path that the caller frees (NULL for libc), -ENOENT, or
// -ENOMEM.
int allocator_find(const struct allocator_info *info, char **library);

#endif
