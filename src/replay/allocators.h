// The allocators that can be replayed on: names, libraries, tunables.
#ifndef HEAPTAPE_REPLAY_ALLOCATORS_H
#define HEAPTAPE_REPLAY_ALLOCATORS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

// An allocator that can be named.
struct allocator_info {
    const char *name;
    // File names to find in the loader's folders, best first; a name with a '/' is a glob(7)
    // pattern. NULL: libc.
    const char *files[4];
    const char *tunables; // where the environment variables are documented
};

// The last row has no name.
extern const struct allocator_info allocator_infos[];

// An allocator to replay on. Valid if all zero.
struct allocator {
    char *name;    // as in the table, or the library's file name
    char *library; // absolute path, NULL: libc
    char **tunables;
    size_t n_tunables; // VAR=value
};

// Returns the path of a preloaded library that provides malloc, or NULL if malloc is libc's. Other
// players choose their allocator by a preload.
const char *allocator_preloaded(void);

// Parses NAME[,VAR=value…] or PATH[,VAR=value…]. Returns 0, -EINVAL for another syntax or name, or
// -ENOENT if the library is not installed.
int allocator_parse(struct allocator *a, const char *spec, struct err *e);
void allocator_release(struct allocator *a);

// Finds a library by its file name like ld.so: in LD_LIBRARY_PATH, the folders of /etc/ld.so.conf,
// the standard folders. Returns 0 and an absolute path that the caller frees, -ENOENT, or -ENOMEM.
int allocator_find_file(const char *file, char **path);

// Finds the library of a row. Returns 0 and a path that the caller frees (NULL: libc), -ENOENT, or
// -ENOMEM.
int allocator_find(const struct allocator_info *info, char **library);

#endif
