#include "proc/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Version 1 has no word for "no limit": it is the highest number of pages.
#define NO_LIMIT_V1 (1ull << 62)

// UINT64_MAX: no such file, or "max".
static uint64_t read_number(const char *folder, const char *name)
{
    char path[PATH_MAX + 32];
    unsigned long long n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    bool found = f && fscanf(f, "%llu", &n) == 1;
    if (f)
        fclose(f);
    return found ? n : UINT64_MAX;
}

// In `folder`, whose first root_bytes are where the hierarchy is mounted.
static bool read_folder(char *folder, size_t root_bytes, bool v2, uint64_t *used, uint64_t *limit)
{
    const char *limit_name = v2 ? "memory.max" : "memory.limit_in_bytes";
    *used = read_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    while (*used != UINT64_MAX) {
        uint64_t here = read_number(folder, limit_name);
        *limit = here < *limit && (v2 || here < NO_LIMIT_V1) ? here : *limit;
        char *slash = strrchr(folder + root_bytes, '/');
        if (!slash)
            break;
        *slash = 0;
    }
    return *used != UINT64_MAX;
}

// A line is ID:CONTROLLERS:PATH; version 2 names no controllers.
static bool read_line(const char *line, size_t bytes, const char *root, uint64_t *used, uint64_t *limit)
{
    static const char *const mounts[][2] = {{"/memory", NULL}, {"", "/unified"}};
    const char *list = memchr(line, ':', bytes),
               *path = list ? memchr(list + 1, ':', bytes - (size_t)(list + 1 - line)) : NULL;
    if (!path)
        return false;
    char controllers[256], folder[PATH_MAX];
    snprintf(controllers, sizeof controllers, ",%.*s,", (int)(path - list - 1), list + 1);
    bool v2 = path == list + 1;
    if (!v2 && !strstr(controllers, ",memory,"))
        return false;
    int n = (int)(bytes - (size_t)(path + 1 - line));
    // In a container the path may be one of the host, and what is mounted be that cgroup itself.
    for (unsigned i = 0; i < 4; i++) {
        const char *mount = mounts[v2][i / 2];
        if (!mount)
            break;
        int length = snprintf(folder, sizeof folder, "%s%s%.*s", root, mount, i % 2 ? 0 : n, path + 1);
        size_t root_bytes = strlen(root) + strlen(mount);
        if (length < (int)sizeof folder && read_folder(folder, root_bytes, v2, used, limit))
            return true;
    }
    return false;
}

void proc_cgroup_read(const char *lines, const char *root, uint64_t *used, uint64_t *limit)
{
    *used = *limit = UINT64_MAX;
    for (const char *end; *lines; lines = *end ? end + 1 : end) {
        end = strchrnul(lines, '\n');
        if (read_line(lines, (size_t)(end - lines), root, used, limit))
            return;
    }
}
