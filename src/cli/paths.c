#include "cli/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

// Directories to search, relative to the directory of the executable. The first directory exists in
// an installation, the others in a build directory.
static const char *const places[] = {HEAPTAPE_LIBEXEC_FROM_BIN, "src/capture", "src/replay/player",
                                     "src/transfer"};
static const char *const data_places[] = {HEAPTAPE_SHARE_FROM_BIN, "."};

static int try_place(const char *folder, const char *place, const char *name, char *out,
                     size_t size)
{
    char path[PATH_MAX], real[PATH_MAX];
    bool absolute = place[0] == '/';
    int n = snprintf(path, sizeof path, "%s%s%s/%s", absolute ? "" : folder, absolute ? "" : "/",
                     place, name);
    if (n >= (int)sizeof path)
        return -ENAMETOOLONG;
    if (!realpath(path, real) || access(real, R_OK) < 0)
        return -ENOENT;
    if (strlen(real) >= size)
        return -ENAMETOOLONG;
    strcpy(out, real);
    return 0;
}

// If /proc is not mounted, resolves the path that was executed. A relative path is correct only if
// the working directory has not changed.
bool paths_self(char self[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (n < 0) {
        const char *executed = (const char *)getauxval(AT_EXECFN);
        return executed && realpath(executed, self);
    }
    self[n] = 0;
    return self[0] == '/';
}

// Searches the `n` directories in `from`, which are relative to the directory of the executable.
static int find_in(const char *const *from, size_t n, const char *name, char *out, size_t size)
{
    char self[PATH_MAX];
    if (!paths_self(self))
        return -ENOENT;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < n; i++) {
        int rc = try_place(self, from[i], name, out, size);
        if (rc != -ENOENT)
            return rc;
    }
    return -ENOENT;
}

int paths_find(const char *name, char *out, size_t size)
{
    const char *only = getenv("HEAPTAPE_LIBEXEC");
    if (only && *only)
        return try_place(".", only, name, out, size);
    return find_in(places, sizeof places / sizeof *places, name, out, size);
}

int paths_find_data(const char *name, char *out, size_t size)
{
    return find_in(data_places, sizeof data_places / sizeof *data_places, name, out, size);
}
