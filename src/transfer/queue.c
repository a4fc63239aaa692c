#include "transfer/queue.h"

#include "base/buf.h"
#include "transfer/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trace(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".ht") == 0;
}

static int add(struct queue *q, char *path, uint64_t bytes)
{
    if (HT_GROW(&q->files, &q->capacity, q->n + 1) < 0) {
        free(path);
        return -ENOMEM;
    }
    q->files[q->n++] = (struct queue_file){path, bytes};
    q->bytes += bytes;
    return 0;
}

static int read_folder(struct queue *q, int fd, const char *prefix, int depth);

static int read_entry(struct queue *q, int folder, const char *prefix, const char *name, int depth)
{
    struct stat st;
    char *path = NULL;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    bool trace = S_ISREG(st.st_mode) && is_trace(name);
    if (!trace && !(S_ISDIR(st.st_mode) && depth < NAMES_MAX_PARTS))
        return 0;
    if (asprintf(&path, "%s%s%s", prefix, name, trace ? "" : "/") < 0)
        return -ENOMEM;
    if (trace)
        return add(q, path, (uint64_t)st.st_size);
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd >= 0 ? read_folder(q, fd, path, depth + 1) : errno == ENOENT ? 0 : -errno;
    free(path);
    return rc;
}

// Closes `fd`.
static int read_folder(struct queue *q, int fd, const char *prefix, int depth)
{
    const struct dirent *entry;
    int rc = 0;
    DIR *all = fdopendir(fd);
    if (!all) {
        rc = -errno;
        close(fd);
        return rc;
    }
    while (rc == 0 && (entry = readdir(all))) {
        if (entry->d_name[0] != '.')
            rc = read_entry(q, fd, prefix, entry->d_name, depth);
    }
    closedir(all);
    return rc;
}

static int compare(const void *a, const void *b)
{
    return strverscmp(((const struct queue_file *)a)->path, ((const struct queue_file *)b)->path);
}

int queue_read(struct queue *q, const char *folder, struct err *e)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, "%s", folder);
    int rc = read_folder(q, fd, "", 1);
    if (q->n)
        qsort(q->files, q->n, sizeof *q->files, compare);
    return rc < 0 ? err_set(e, rc, "%s: %s", folder, strerror(-rc)) : 0;
}

void queue_release(struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->files[i].path);
    free(q->files);
    *q = (struct queue){0};
}

int queue_lock(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

int queue_hold(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_nlink ? 0 : -ENOENT;
}

// True if it was removed.
static bool drop(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool removed = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, path, 0) == 0;
    if (fd >= 0)
        close(fd);
    return removed;
}

int queue_limit(const char *folder, uint64_t limit, void (*dropped)(void *context, const char *path, uint64_t bytes),
                void *context, struct err *e)
{
    struct queue q = {0};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? err_set_errno(e, "%s", folder) : queue_read(&q, folder, e);
    for (size_t i = 0; rc == 0 && i + 1 < q.n && q.bytes > limit; i++) {
        const struct queue_file *f = &q.files[i];
        if (!drop(fd, f->path))
            continue;
        q.bytes -= f->bytes;
        dropped(context, f->path, f->bytes);
    }
    queue_release(&q);
    if (fd >= 0)
        close(fd);
    return rc;
}

void queue_clean(const char *folder, const char *path)
{
    char *all = NULL;
    if (asprintf(&all, "%s/%s", folder, path) < 0)
        return;
    for (char *slash; (slash = strrchr(all, '/')) > all + strlen(folder);) {
        *slash = 0;
        if (rmdir(all) < 0)
            break;
    }
    free(all);
}
