// Allocators available for replay: their names, libraries and tunables.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

// An allocator known by name.
struct allocator_info {
    const char *name;
    // File names to search for in the loader's directories, in order of preference. A name with a
    // '/' is a glob(7) pattern. NULL for libc.
    const char *files[4];
    const char *tunables; // environment variables that configure the allocator, for display
    // Names of these variables and of tunables in GLIBC_TUNABLES: alternatives of an fnmatch(3)
    // pattern, as in A|B*.
    const char *variables;
};

// The last row has no name.
extern const struct allocator_info allocator_infos[];

// An allocator to replay on. A zeroed struct is valid.
struct allocator {
    char *name;                        // name in the table, or the library's file name
    const struct allocator_info *info; // the row of the table, or NULL for a library's path
    char *library;                     // absolute path, or NULL for libc
    char **tunables;
    size_t n_tunables; // number of tunables, each VAR=value
};

// Returns the path of a preloaded library that provides malloc, or NULL if malloc belongs to libc.
// In players other than heaptape-replay, LD_PRELOAD selects the allocator.
const char *allocator_preloaded(void);

// Parses NAME[,VAR=value…] or PATH[,VAR=value…]. A tunable of glibc, glibc.NAME=value, is appended
// to GLIBC_TUNABLES. Returns 0, -EINVAL if the syntax or name is invalid, or -ENOENT if the library
// is not installed.
int allocator_parse(struct allocator *a, const char *spec, struct err *e);
void allocator_release(struct allocator *a);

// Returns true if an allocator of the table does not read one of its tunables, for example because
// the name is misspelt, and stores the name of the first such tunable.
bool allocator_find_unread(const struct allocator *a, char *name, size_t size);

// Finds a library by file name as ld.so does: in LD_LIBRARY_PATH, in the directories of
// /etc/ld.so.conf, and in the standard directories. Returns 0 and an absolute path that the caller
// frees, -ENOENT, or -ENOMEM.
int allocator_find_file(const char *file, char **path);

// Finds the library for a table row. Returns 0 and a path that the caller frees (NULL for libc),
// -ENOENT, or -ENOMEM.
int allocator_find(const struct allocator_info *info, char **library);
