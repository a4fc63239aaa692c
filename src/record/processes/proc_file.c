#include "record/processes/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int proc_file_open(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

ssize_t proc_file_read(pid_t pid, const char *name, char *to, size_t room)
{
    int fd = proc_file_open(pid, name);
    ssize_t n = fd < 0 ? fd : read(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    if (fd < 0)
        return fd;
    close(fd);
    return n > 0 ? n : 0;
}

uint64_t proc_file_start_ticks(const char *stat)
{
    // The name, in parentheses, may contain any character. Field 3 of proc(5) follows it; the start
    // time is field 22.
    const char *name_end = strrchr(stat, ')');
    unsigned long long ticks = 0;
    if (name_end)
        sscanf(name_end + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &ticks);
    return ticks;
}
