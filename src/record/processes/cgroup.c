#include "record/processes/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// Version 1 represents "no limit" as the highest number of pages.
#define NO_LIMIT_V1 (1ull << 62)

static FILE *open_file(const char *folder, const char *name)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "re");
}

// Reads the first number from a file, or the second number if `second` is true. Returns UINT64_MAX
// if the file is missing or starts with "max" or "-1".
static uint64_t read_nth(const char *folder, const char *name, bool second)
{
    unsigned long long n;
    FILE *f = open_file(folder, name);
    bool found = f && fscanf(f, second ? "%*u %llu" : "%llu", &n) == 1;
    if (f)
        fclose(f);
    return found ? n : UINT64_MAX;
}

static uint64_t read_number(const char *folder, const char *name)
{
    return read_nth(folder, name, false);
}

// Returns the number that follows `word` at the start of a line, or UINT64_MAX if no line starts
// with `word`.
static uint64_t read_count(const char *folder, const char *name, const char *word)
{
    char line[128], found[64];
    unsigned long long n;
    uint64_t count = UINT64_MAX;
    FILE *f = open_file(folder, name);
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s %llu", found, &n) == 2 && strcmp(found, word) == 0)
            count = n;
    }
    if (f)
        fclose(f);
    return count;
}

static uint64_t read_pressure(const char *folder, const char *name)
{
    unsigned whole, hundredths;
    FILE *f = open_file(folder, name);
    bool found = f && fscanf(f, "some avg10=%3u.%2u", &whole, &hundredths) == 2;
    if (f)
        fclose(f);
    return found ? 100ull * whole + hundredths : UINT64_MAX;
}

// Removes the last part of the path. Returns false if only the mount point is left.
static bool move_to_parent(char *folder, size_t root_bytes)
{
    char *slash = strrchr(folder + root_bytes, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

// Reads the counters in the directory of a cgroup, and the limits of its ancestors. Unless c->files
// is 0, also reads the size of the page cache. The first root_bytes of `folder` are the mount
// point.
static bool read_memory(char *folder, size_t root_bytes, bool v2, void *to)
{
    struct proc_cgroup *c = to;
    const char *limit_name = v2 ? "memory.max" : "memory.limit_in_bytes";
    c->used = read_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (c->used == UINT64_MAX)
        return false;
    c->oom_kills = read_count(folder, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
    c->pressure = read_pressure(folder, "memory.pressure");
    if (c->files)
        c->files = read_count(folder, "memory.stat", v2 ? "file" : "total_cache");
    do {
        uint64_t here = read_number(folder, limit_name);
        c->limit = here < c->limit && (v2 || here < NO_LIMIT_V1) ? here : c->limit;
    } while (move_to_parent(folder, root_bytes));
    return true;
}

// If the lowest quota of a cgroup and its ancestors is below *to, sets *to to that quota, in CPUs,
// rounded down.
static bool read_cpus(char *folder, size_t root_bytes, bool v2, void *to)
{
    uint64_t *cpus = to;
    bool found = false;
    do {
        uint64_t quota = read_number(folder, v2 ? "cpu.max" : "cpu.cfs_quota_us"),
                 period = v2 ? read_nth(folder, "cpu.max", true)
                             : read_number(folder, "cpu.cfs_period_us");
        found |= period != UINT64_MAX;
        if (quota != UINT64_MAX && period && quota / period < *cpus)
            *cpus = quota / period;
    } while (move_to_parent(folder, root_bytes));
    return found;
}

// A controller: its name and mount points in version 1, and the function that reads a directory.
struct controller {
    const char *name, *mounts[2];
    bool (*read)(char *folder, size_t root_bytes, bool v2, void *to);
};

// Parses a line ID:CONTROLLERS:PATH. In version 2, the list of controllers is empty.
static bool read_line(const char *line, size_t bytes, const char *root, const struct controller *k,
                      void *to)
{
    static const char *const unified[2] = {"", "/unified"};
    const char *list = memchr(line, ':', bytes),
               *path = list ? memchr(list + 1, ':', bytes - (size_t)(list + 1 - line)) : NULL;
    if (!path)
        return false;
    char controllers[256], name[32], folder[PATH_MAX];
    snprintf(controllers, sizeof controllers, ",%.*s,", (int)(path - list - 1), list + 1);
    snprintf(name, sizeof name, ",%s,", k->name);
    bool v2 = path == list + 1;
    if (!v2 && !strstr(controllers, name))
        return false;
    int n = (int)(bytes - (size_t)(path + 1 - line));
    // In a container, PATH may be a path on the host while the cgroup itself is mounted at the
    // root.
    for (unsigned i = 0; i < 4; i++) {
        const char *mount = v2 ? unified[i / 2] : k->mounts[i / 2];
        if (!mount)
            break;
        int length =
            snprintf(folder, sizeof folder, "%s%s%.*s", root, mount, i % 2 ? 0 : n, path + 1);
        size_t root_bytes = strlen(root) + strlen(mount);
        if (length < (int)sizeof folder && k->read(folder, root_bytes, v2, to))
            return true;
    }
    return false;
}

static const struct proc_cgroup unknown = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                           UINT64_MAX, false,      0};

static void read_lines(const char *lines, const char *root, const struct controller *k, void *to)
{
    for (const char *end; *lines; lines = *end ? end + 1 : end) {
        end = strchrnul(lines, '\n');
        if (read_line(lines, (size_t)(end - lines), root, k, to))
            break;
    }
}

static const struct controller memory = {"memory", {"/memory"}, read_memory};

void proc_cgroup_read_files(const char *lines, const char *root, struct proc_cgroup *c)
{
    *c = unknown;
    c->files = UINT64_MAX;
    read_lines(lines, root, &memory, c);
}

void proc_cgroup_read(const char *lines, const char *root, const char *host, struct proc_cgroup *c)
{
    *c = unknown;
    read_lines(lines, root, &memory, c);
    if (c->pressure == UINT64_MAX && host) {
        c->pressure = read_pressure(host, "memory");
        c->pressure_of_host = c->pressure != UINT64_MAX;
    }
}

uint64_t proc_cgroup_cpus(const char *lines, const char *root)
{
    static const struct controller cpu = {"cpu", {"/cpu", "/cpu,cpuacct"}, read_cpus};
    uint64_t cpus = UINT64_MAX;
    read_lines(lines, root, &cpu, &cpus);
    return cpus ? cpus : 1;
}
