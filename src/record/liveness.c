// Which processes live, from /proc.
#include "record/drain_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Reads /proc/PID/FILE as a C string. The bytes read, or -1.
static ssize_t read_proc(pid_t pid, const char *file, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    if (n >= 0)
        text[n] = 0;
    return n;
}

// State letter and start time. The command's name stands in parentheses and may hold anything.
static bool read_stat(pid_t pid, char *state, uint64_t *start_time)
{
    char text[1024];
    if (read_proc(pid, "stat", text, sizeof text) <= 0)
        return false;
    const char *p = strrchr(text, ')');
    if (!p || p[1] != ' ' || !p[2])
        return false;
    p += 2;
    *state = *p;
    for (unsigned field = 3; field < 22 && p; field++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    if (!p)
        return false;
    *start_time = strtoull(p, NULL, 10);
    return true;
}

uint64_t drain_start_time(pid_t pid)
{
    char state;
    uint64_t start_time;
    return read_stat(pid, &state, &start_time) ? start_time : 0;
}

bool drain_is_gone(pid_t pid, uint64_t start_time)
{
    char state;
    uint64_t found;
    return !read_stat(pid, &state, &found) || found != start_time || state == 'Z' || state == 'X';
}

// The pid that the process has in its innermost pid namespace.
static uint32_t inner_pid(pid_t pid)
{
    char text[4096];
    if (read_proc(pid, "status", text, sizeof text) <= 0)
        return 0;
    const char *p = strstr(text, "\nNSpid:");
    if (!p)
        return 0;
    const char *end = strchrnul(p + 1, '\n'), *last = p + 7;
    for (const char *q = last; q < end; q++) {
        if (*q == '\t')
            last = q + 1;
    }
    return (uint32_t)strtoul(last, NULL, 10);
}

static pid_t find_in_namespaces(uint32_t pid, uint64_t start_time)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    pid_t found = 0;
    struct dirent *d;
    while (!found && (d = readdir(proc))) {
        pid_t candidate = (pid_t)strtol(d->d_name, NULL, 10);
        if (candidate > 0 && drain_start_time(candidate) == start_time && inner_pid(candidate) == pid)
            found = candidate;
    }
    closedir(proc);
    return found;
}

pid_t drain_find_own(uint32_t pid, uint64_t start_time)
{
    uint64_t found = drain_start_time((pid_t)pid);
    return found && (found == start_time || start_time == 0) ? (pid_t)pid : 0;
}

pid_t drain_find_process(uint32_t pid, uint64_t start_time)
{
    pid_t found = drain_find_own(pid, start_time);
    return found ? found : find_in_namespaces(pid, start_time);
}

bool drain_is_own_namespace(const char *pid_namespace)
{
    char own[sizeof((struct spool_header *)0)->pid_namespace] = "";
    return readlink("/proc/self/ns/pid", own, sizeof own - 1) > 0 && strncmp(own, pid_namespace, sizeof own) == 0;
}
