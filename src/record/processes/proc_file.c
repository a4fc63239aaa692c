#include "record/processes/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
