#include "transfer/store.h"

#include "transfer/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define INCOMING ".incoming"

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, COMPARED_BYTES = 65536 };

// Removes unfinished files. The caller holds the lock of the directory, so no other receiver writes
// the files.
static void remove_unfinished(int incoming)
{
    int fd = openat(incoming, ".", FOLDER);
    DIR *all = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (entry->d_name[0] != '.')
            unlinkat(incoming, entry->d_name, 0);
    }
    if (all)
        closedir(all);
    else if (fd >= 0)
        close(fd);
}

int store_open(struct store *s, const char *folder, struct err *e)
{
    s->incoming = -1;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return s->folder = -1, err_set_errno(e, "%s", folder);
    s->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0 || (mkdirat(s->folder, INCOMING, 0700) < 0 && errno != EEXIST) ||
        (s->incoming = openat(s->folder, INCOMING, FOLDER)) < 0 ||
        flock(s->incoming, LOCK_EX | LOCK_NB) < 0) {
        int rc = errno == EWOULDBLOCK
                     ? err_set(e, -EBUSY, "%s: another receiver uses this directory", folder)
                     : err_set_errno(e, "%s", folder);
        store_close(s);
        return rc;
    }
    remove_unfinished(s->incoming);
    return 0;
}

void store_close(struct store *s)
{
    if (s->incoming >= 0)
        close(s->incoming);
    if (s->folder >= 0)
        close(s->folder);
    s->incoming = s->folder = -1;
}

int store_begin(const struct store *s, struct store_file *f, uint64_t bytes)
{
    static atomic_ulong last;
    f->bytes = 0;
    f->digest = digest_new(false);
    if (!f->digest)
        return -ENOMEM;
    snprintf(f->name, sizeof f->name, "%lu.part", ++last);
    f->fd = openat(s->incoming, f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (f->fd < 0) {
        int rc = -errno;
        store_abort(s, f);
        return rc;
    }
    // posix_fallocate would write zeros on file systems without fallocate.
    if (bytes && fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        int rc = -errno;
        store_abort(s, f);
        return rc;
    }
    return 0;
}

int store_write(struct store_file *f, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = write(f->fd, (const char *)data + done, n - done);
        if (written < 0 && errno != EINTR)
            return -errno;
        done += written > 0 ? (size_t)written : 0;
    }
    f->bytes += n;
    digest_add(f->digest, data, n);
    return 0;
}

// Opens the parent directory of `path` below `at`. Creates missing directories durably. Sets *last
// to the last component. Returns a file descriptor or a negative errno.
static int open_parent(int at, const char *path, const char **last)
{
    char part[NAMES_MAX_PART_BYTES + 1];
    int folder = openat(at, ".", FOLDER);
    for (const char *slash; folder >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        bool there = mkdirat(folder, part, 0700) == 0 || errno == EEXIST;
        // Sync even an existing directory, because another thread may have just created it.
        int next = there && fsync(folder) == 0 ? openat(folder, part, FOLDER) : -1;
        int failed = errno;
        close(folder);
        errno = failed;
        folder = next;
    }
    *last = path;
    return folder < 0 ? -errno : folder;
}

static ssize_t read_full(int fd, char *to, size_t n, off_t at)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, to + done, n - done, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

// Returns 1 if the file `name` has the same content, 0 if it has other content, or a negative
// errno.
static int is_same(const struct store_file *f, int folder, const char *name)
{
    char a[COMPARED_BYTES], b[COMPARED_BYTES];
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ELOOP ? false : -errno;
    int same = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->bytes;
    for (uint64_t at = 0; same == true && at < f->bytes; at += sizeof a) {
        ssize_t n = read_full(fd, a, sizeof a, (off_t)at),
                m = read_full(f->fd, b, sizeof b, (off_t)at);
        same = n < 0 || m < 0 ? -errno : n == m && memcmp(a, b, (size_t)n) == 0;
    }
    // A success guarantees that the file is on disk.
    if (same == true && fsync(fd) < 0)
        same = -errno;
    close(fd);
    return same;
}

// Replaces an empty file, which contains no recording. Returns 0, or -EEXIST if the existing file
// is not empty.
static int replace_empty(const struct store *s, const struct store_file *f, int folder,
                         const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // only one upload replaces the file
    struct stat st;
    pthread_mutex_lock(&lock);
    bool replaced = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                    st.st_size == 0 && renameat(s->incoming, f->name, folder, name) == 0;
    pthread_mutex_unlock(&lock);
    return replaced ? 0 : -EEXIST;
}

// Renames without replacing a file that has content. Returns 0, -EEXIST, or another negative errno.
static int move_file(const struct store *s, const struct store_file *f, int folder,
                     const char *name)
{
    if (renameat2(s->incoming, f->name, folder, name, RENAME_NOREPLACE) == 0)
        return 0;
    // The file system does not support RENAME_NOREPLACE.
    if (errno == EINVAL && linkat(s->incoming, f->name, folder, name, 0) == 0)
        return unlinkat(s->incoming, f->name, 0) < 0 ? -errno : 0;
    return errno == EEXIST && f->bytes ? replace_empty(s, f, folder, name) : -errno;
}

static int commit_file(const struct store *s, struct store_file *f, const char *path,
                       enum store_result *result)
{
    const char *name;
    if (fsync(f->fd) < 0)
        return -errno;
    int folder = open_parent(s->folder, path, &name);
    if (folder < 0)
        return folder;
    int rc = move_file(s, f, folder, name), same = 0;
    *result = STORE_NEW;
    if (rc == -EEXIST) {
        same = is_same(f, folder, name);
        rc = same < 0 ? same : 0;
        *result = same ? STORE_SAME : STORE_DIFFERENT;
        unlinkat(s->incoming, f->name, 0);
    }
    if (rc == 0 && fsync(folder) < 0)
        rc = -errno;
    close(folder);
    return rc;
}

int store_commit(const struct store *s, struct store_file *f, const char *path,
                 enum store_result *result)
{
    // Release reserved space that was not used.
    int rc = ftruncate(f->fd, (off_t)f->bytes) < 0 ? -errno : commit_file(s, f, path, result);
    if (rc < 0) {
        store_abort(s, f);
        return rc;
    }
    close(f->fd);
    f->fd = -1;
    return 0;
}

void store_abort(const struct store *s, struct store_file *f)
{
    digest_free(f->digest);
    f->digest = NULL;
    if (f->fd < 0)
        return;
    unlinkat(s->incoming, f->name, 0);
    close(f->fd);
    f->fd = -1;
}
