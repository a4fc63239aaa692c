// Finds heaptape's own files in a prefix or a build directory.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

// Writes the absolute path of this executable. Returns false if it is unknown.
bool paths_self(char self[PATH_MAX]);

// Writes the absolute path of a library or program such as libheaptape.so into out[size]. Searches
// relative to this executable, so that a prefix can be moved. If $HEAPTAPE_LIBEXEC is set, searches
// only there. Returns 0, -ENOENT or -ENAMETOOLONG.
int paths_find(const char *name, char *out, size_t size);

// Like paths_find, for data such as corpus/index.json. Searches in share/heaptape or the build
// directory.
int paths_find_data(const char *name, char *out, size_t size);
