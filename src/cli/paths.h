// Finds heaptape's own files, wherever it was installed or built.
#ifndef HEAPTAPE_CLI_PATHS_H
#define HEAPTAPE_CLI_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

// The absolute path of this executable. False where it cannot be known.
bool paths_self(char self[PATH_MAX]);

// The absolute path of `name` (libheaptape.so, heaptape-replay, libheaptape-null.so, …) into out[size]: looked for relative
// to this executable, so that a moved prefix and the build folder work; in $HEAPTAPE_LIBEXEC alone when that is set.
// 0, -ENOENT when it is nowhere, -ENAMETOOLONG.
int paths_find(const char *name, char *out, size_t size);

// The same of a file that does not depend on the architecture, such as corpus/index.json: in share/heaptape, or in the build
// folder.
int paths_find_data(const char *name, char *out, size_t size);

#endif
