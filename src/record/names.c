#include "record/names.h"

#include "base/varint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 1024, NAME_BYTES = 64 };

// The name ends in a newline.
static size_t read_name(int tasks_fd, const char *tid, char name[NAME_BYTES])
{
    char path[300];
    snprintf(path, sizeof path, "%s/comm", tid);
    int fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, name, NAME_BYTES) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n - (name[n - 1] == '\n') : 0;
}

static bool put_name(struct buf *names, unsigned long tid, const char *name, size_t n)
{
    if (buf_reserve(names, 2 * VARINT_MAX_BYTES + n) < 0)
        return false;
    names->size += varint_put(names->data + names->size, tid);
    names->size += varint_put(names->data + names->size, n);
    return buf_put(names, name, n) == 0;
}

void names_look(struct buf *names, pid_t pid)
{
    char path[64], name[NAME_BYTES];
    struct dirent *d;
    unsigned found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir(path);
    while (tasks && found < MOST_THREADS && (d = readdir(tasks))) {
        unsigned long tid = strtoul(d->d_name, NULL, 10);
        size_t n = tid ? read_name(dirfd(tasks), d->d_name, name) : 0;
        if (n == 0)
            continue;
        if (found++ == 0)
            names->size = 0;
        if (!put_name(names, tid, name, n))
            break;
    }
    if (tasks)
        closedir(tasks);
}
