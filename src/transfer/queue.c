#include "transfer/queue.h"

#include "base/buf.h"
#include "transfer/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int add_file(struct queue *q, char *path, const struct stat *st)
{
    const struct queue_file file = {path, (uint64_t)st->st_size,
                                    (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
    int rc = HT_APPEND(&q->files, &q->n, &q->capacity, file);
    q->bytes += rc == 0 ? file.bytes : 0;
    if (rc < 0)
        free(path);
    return rc;
}

static int read_folder(struct queue *q, int fd, const char *prefix, int depth);

static int read_entry(struct queue *q, int folder, const char *prefix, const char *name, int depth)
{
    struct stat st;
    char *path = NULL;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    bool trace = S_ISREG(st.st_mode) && names_is_trace(name, strlen(name));
    if (!trace && !(S_ISDIR(st.st_mode) && depth < NAMES_MAX_PARTS))
        return 0;
    if (asprintf(&path, "%s%s%s", prefix, name, trace ? "" : "/") < 0)
        return -ENOMEM;
    if (trace)
        return add_file(q, path, &st);
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd >= 0 ? read_folder(q, fd, path, depth + 1) : errno == ENOENT ? 0 : -errno;
    free(path);
    return rc;
}

// Reads a directory and closes `fd`.
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

static int compare_paths(const void *a, const void *b)
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
        qsort(q->files, q->n, sizeof *q->files, compare_paths);
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
    enum { TRIES = 20, WAIT_MS = 10 };
    struct stat st;
    int rc = -EWOULDBLOCK;
    // Retry: if a process is dropping the file, it holds the lock only briefly. A process that
    // writes the file holds the lock for a long time.
    for (int i = 0; i < TRIES && rc == -EWOULDBLOCK; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000}, NULL);
        rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
    }
    if (rc < 0)
        return rc == -EWOULDBLOCK ? -EBUSY : rc;
    if (fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && st.st_nlink ? 0 : -ENOENT;
}

// Returns true if the file was removed.
static bool drop_file(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool removed = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, path, 0) == 0;
    if (fd >= 0)
        close(fd);
    return removed;
}

bool queue_is_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

// Drops a file of an earlier recording. If another process has locked the recording's directory,
// keeps the file.
static bool drop_left(int fd, const char *spool, const char *path)
{
    char *folder = NULL;
    if (asprintf(&folder, "%s/%s", spool, path) < 0)
        return false;
    *strrchr(folder, '/') = 0;
    int lock = queue_lock(folder);
    bool dropped = lock >= 0 && drop_file(fd, path);
    if (lock >= 0)
        close(lock);
    if (dropped)
        queue_clean(spool, path);
    free(folder);
    return dropped;
}

// Returns true if a recording created the file. Other files in the spool must not be dropped.
static bool is_segment(const char *path)
{
#define DIGITS_6 "[0-9][0-9][0-9][0-9][0-9][0-9]"
    return fnmatch("*/*-[0-9][0-9]" DIGITS_6 "T" DIGITS_6 "Z-[0-9]*/[0-9]*.ht", path,
                   FNM_PATHNAME) == 0;
#undef DIGITS_6
}

// Removes all files except segments from the queue.
static void keep_segments(struct queue *q)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (is_segment(q->files[i].path)) {
            q->files[n++] = q->files[i];
            continue;
        }
        q->bytes -= q->files[i].bytes;
        free(q->files[i].path);
    }
    q->n = n;
}

static int compare_times(const void *a, const void *b)
{
    const struct queue_file *f = a, *g = b;
    return f->time_ns == g->time_ns ? compare_paths(a, b) : f->time_ns < g->time_ns ? -1 : 1;
}

int queue_limit(const char *spool, const char *own, uint64_t limit,
                void (*dropped)(void *context, const char *path, uint64_t bytes), void *context,
                struct err *e)
{
    struct queue q = {0};
    const char *last = NULL;
    int fd = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? err_set_errno(e, "%s", spool) : queue_read(&q, spool, e);
    keep_segments(&q);
    for (size_t i = 0; i < q.n; i++)
        last = queue_is_in(q.files[i].path, own) ? q.files[i].path : last;
    if (rc == 0 && q.bytes > limit)
        qsort(q.files, q.n, sizeof *q.files, compare_times);
    for (size_t i = 0; rc == 0 && i < q.n && q.bytes > limit; i++) {
        const struct queue_file *f = &q.files[i];
        bool is_own = queue_is_in(f->path, own);
        if (f->path == last || !(is_own ? drop_file(fd, f->path) : drop_left(fd, spool, f->path)))
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
