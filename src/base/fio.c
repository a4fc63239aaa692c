#include "base/fio.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int input_regular_fd(const char *path, struct stat *st)
{
    // Opening a device can have side effects, and opening a pipe blocks until it has a writer.
    if (stat(path, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode))
        return -EINVAL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    // The name may refer to another file by now.
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    close(fd);
    return -EINVAL;
}

// Checks the type of an opened file. If the file cannot be an input, closes it.
static int check_type(struct input *in, const struct stat *st, struct err *e)
{
    int rc = 0;
    if (S_ISDIR(st->st_mode))
        rc = err_set(e, -EISDIR, "%s: is a directory", in->name);
    else if (S_ISREG(st->st_mode) && st->st_size == 0)
        rc = err_set(e, -ENODATA, "%s: is empty", in->name);
    else if (S_ISREG(st->st_mode))
        in->size_bytes = (uint64_t)st->st_size;
    if (rc < 0)
        input_close(in);
    return rc;
}

int input_open(struct input *in, const char *path, struct err *e)
{
    struct stat st;
    *in = (struct input){.fd = -1, .name = path};
    if (strcmp(path, "-") == 0) {
        in->fd = STDIN_FILENO;
        in->name = "(stdin)";
    } else {
        if (stat(path, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode)))
            return err_set(e, -EINVAL, "%s: is a device, not a file or pipe", path);
        in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (in->fd < 0)
            return err_set_errno(e, "%s", path);
        in->owns_fd = true;
    }
    if (fstat(in->fd, &st) == 0)
        return check_type(in, &st, e);
    int rc = err_set_errno(e, "%s", in->name);
    input_close(in);
    return rc;
}

int input_open_regular(struct input *in, const char *path, struct err *e)
{
    struct stat st = {0};
    *in = (struct input){.fd = -1, .name = path};
    int fd = input_regular_fd(path, &st);
    if (fd == -EINVAL)
        return S_ISDIR(st.st_mode) ? check_type(in, &st, e)
                                   : err_set(e, fd, "%s: is not a regular file", path);
    if (fd < 0)
        return err_set(e, fd, "%s: %s", path, strerror(-fd));
    in->fd = fd;
    in->owns_fd = true;
    return check_type(in, &st, e);
}

void input_close(struct input *in)
{
    if (in->owns_fd && in->fd >= 0)
        close(in->fd);
    buf_release(&in->ahead);
    *in = (struct input){.fd = -1, .name = in->name};
}

// Reads `want` bytes, or fewer at the end of the input. `at` is the offset of the first byte; error
// messages contain the offset.
static ssize_t read_full(struct input *in, uint64_t at, uint8_t *to, size_t want, struct err *e)
{
    size_t got = 0;
    while (got < want) {
        ssize_t n = read(in->fd, to + got, want - got);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, "%s: cannot read at byte %llu", in->name,
                                 (unsigned long long)(at + got));
        got += (size_t)n;
    }
    return (ssize_t)got;
}

ssize_t input_peek(struct input *in, size_t want, const uint8_t **bytes, struct err *e)
{
    size_t have = in->ahead.size - in->ahead_read;
    if (have < want) {
        // Drop the bytes that were read. Otherwise, a scan with peek and read would keep the whole
        // file in memory.
        if (in->ahead_read)
            memmove(in->ahead.data, in->ahead.data + in->ahead_read, have);
        in->ahead.size = have;
        in->ahead_read = 0;
        if (buf_reserve(&in->ahead, want - have) < 0)
            return err_no_memory(e, in->name);
        ssize_t n = read_full(in, in->offset + have, in->ahead.data + have, want - have, e);
        if (n < 0)
            return n;
        in->ahead.size += (size_t)n;
        have += (size_t)n;
    }
    *bytes = in->ahead.data ? in->ahead.data + in->ahead_read : (const uint8_t *)"";
    return (ssize_t)(have < want ? have : want);
}

int input_check_compressed(const struct input *in, const uint8_t *bytes, size_t n, struct err *e)
{
    static const struct {
        const char *magic, *command;
    } kinds[] = {{"\x1f\x8b", "zcat"},
                 {"\x28\xb5\x2f\xfd", "zstdcat"},
                 {"\x04\x22\x4d\x18", "lz4cat"},
                 {"\xfd\x37zXZ", "xzcat"},
                 {"BZh", "bzcat"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].magic);
        if (n >= length && memcmp(bytes, kinds[i].magic, length) == 0)
            return err_set(e, -EPROTO, "%s: is compressed: pipe the output of '%s' to heaptape",
                           in->name, kinds[i].command);
    }
    return 0;
}

ssize_t input_read(struct input *in, void *to, size_t want, struct err *e)
{
    size_t have = in->ahead.size - in->ahead_read, copied = have < want ? have : want;
    if (copied) {
        memcpy(to, in->ahead.data + in->ahead_read, copied);
        in->ahead_read += copied;
        if (in->ahead_read == in->ahead.size)
            in->ahead.size = in->ahead_read = 0;
        in->offset += copied;
    }
    ssize_t n = read_full(in, in->offset, (uint8_t *)to + copied, want - copied, e);
    if (n < 0)
        return n;
    in->offset += (uint64_t)n;
    return (ssize_t)copied + n;
}

ssize_t input_read_some(struct input *in, void *to, size_t most, struct err *e)
{
    size_t have = in->ahead.size - in->ahead_read;
    if (have)
        return input_read(in, to, have < most ? have : most, e);
    for (;;) {
        ssize_t n = read(in->fd, to, most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, "%s: cannot read at byte %llu", in->name,
                                 (unsigned long long)in->offset);
        in->offset += (uint64_t)n;
        return n;
    }
}

int input_read_all(struct input *in, struct buf *to, size_t max, struct err *e)
{
    enum { STEP = 1 << 16 };
    ssize_t n;
    do {
        if (buf_reserve(to, STEP) < 0)
            return err_no_memory(e, in->name);
        n = input_read(in, to->data + to->size, STEP, e);
        to->size += n > 0 ? (size_t)n : 0;
        if (to->size > max)
            return -EFBIG;
    } while (n > 0);
    return (int)n;
}

int input_read_file(const char *path, struct buf *to, size_t max, const char *what, struct err *e)
{
    struct input in;
    int rc = input_open_regular(&in, path, e);
    if (rc < 0)
        return rc;
    rc = input_read_all(&in, to, max, e);
    if (rc == -EFBIG)
        err_set(e, rc, "%s: is not %s, at byte %zu", path, what, max);
    input_close(&in);
    return rc;
}

int input_seek(struct input *in, uint64_t offset, struct err *e)
{
    if (lseek(in->fd, (off_t)offset, SEEK_SET) < 0)
        return err_set_errno(e, "%s: cannot seek to byte %llu", in->name,
                             (unsigned long long)offset);
    in->offset = offset;
    in->ahead.size = in->ahead_read = 0;
    return 0;
}

// Opens an unnamed temporary file. If O_TMPFILE is not supported, creates a file and removes its
// name immediately.
static int open_unnamed(struct err *e)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    if (!dir || !*dir)
        dir = "/tmp";
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/heaptape-XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, "%s: cannot create a temporary file", dir);
    unlink(path);
    return fd;
}

int input_copy(struct input *in, struct output *to, struct err *e)
{
    enum { STEP = 1 << 18 };
    uint8_t *step = malloc(STEP);
    if (!step)
        return err_no_memory(e, in->name);
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = input_read(in, step, STEP, e)) != 0)
        rc = n < 0 ? (int)n : output_write(to, step, (size_t)n, e);
    free(step);
    return rc;
}

int input_make_seekable(struct input *in, struct err *e)
{
    if (in->size_bytes)
        return 0;
    struct output copy;
    struct input read;
    int rc = output_open_unnamed(&copy, e);
    if (rc < 0)
        return rc;
    rc = input_copy(in, &copy, e);
    if (rc < 0) {
        output_close(&copy, false, NULL);
        return rc;
    }
    rc = input_from_output(&read, &copy, in->name, e);
    if (rc == 0) {
        input_close(in);
        *in = read;
    }
    return rc;
}

int output_open_unnamed(struct output *out, struct err *e)
{
    *out = (struct output){.fd = open_unnamed(e), .owns_fd = true, .name = "(temporary file)"};
    return out->fd < 0 ? out->fd : 0;
}

int input_from_output(struct input *in, struct output *out, const char *name, struct err *e)
{
    *in = (struct input){.fd = out->fd, .owns_fd = true, .name = name, .size_bytes = out->offset};
    *out = (struct output){.fd = -1};
    if (lseek(in->fd, 0, SEEK_SET) >= 0)
        return 0;
    int rc = err_set_errno(e, "%s: cannot read the temporary copy", name);
    input_close(in);
    return rc;
}

// Opens an unnamed file in the directory of `path`. Returns the descriptor, or -1 on failure.
static int open_nameless(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof folder || access("/proc/self/fd", X_OK) < 0)
        return -1;
    memcpy(folder, slash ? path : ".", slash ? n : 1);
    folder[slash ? n : 1] = 0;
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int link_unnamed(int fd, const char *path)
{
    char at[64];
    snprintf(at, sizeof at, "/proc/self/fd/%d", fd);
    unlink(path); // An earlier process with the same PID may have left this file.
    return linkat(AT_FDCWD, at, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int open_file(struct output *out, const char *path, unsigned flags, struct err *e)
{
    struct stat st;
    if (!*path)
        return err_set(e, -EINVAL, "the name of the output is empty");
    bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return err_set(e, -EISDIR, "%s: is a directory", path);
    // A path in /proc/self/fd or /dev/fd names a descriptor of this process. With OUTPUT_FORCE, the
    // file of the descriptor is overwritten in place.
    bool own = strncmp(path, "/proc/self/fd/", 14) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
    bool special = exists && (!S_ISREG(st.st_mode) || (own && (flags & OUTPUT_FORCE)));
    if (exists && !special && !(flags & OUTPUT_FORCE))
        return err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    if (is_link && !special)
        return err_set(e, -ELOOP, "%s: is a symbolic link; use the path of the file itself", path);
    const char *target = path;
    out->follows = !special;
    out->grows = exists && (flags & OUTPUT_GROWS);
    if ((exists || (flags & OUTPUT_ASIDE)) && !special) {
        if (asprintf(&out->aside, "%s.tmp-%ld", path, (long)getpid()) < 0) {
            out->aside = NULL;
            return err_no_memory(e, path);
        }
        target = out->aside;
        out->fd = open_nameless(path);
        out->unnamed = out->owns_fd = out->fd >= 0;
        if (out->unnamed)
            return 0;
    }
    if (out->aside)
        unlink(target); // An earlier process with the same PID may have left this file.
    // Another process may have created the file or a link after the stat above. O_EXCL ensures that
    // an existing file is not replaced.
    int how = special ? O_TRUNC : O_CREAT | O_EXCL;
    out->fd = open(target, (out->aside ? O_RDWR : O_WRONLY) | O_CLOEXEC | how, 0600);
    if (out->fd < 0)
        return err_set_errno(e, "%s: cannot create", path);
    out->owns_fd = true;
    return 0;
}

int output_open(struct output *out, const char *path, unsigned flags, struct err *e)
{
    *out = (struct output){.fd = -1, .name = path};
    if (strcmp(path, "-") == 0) {
        out->name = "(stdout)";
        if (isatty(STDOUT_FILENO))
            return err_set(e, -EINVAL, "(stdout): is a terminal; use -o FILE or redirect");
        out->fd = STDOUT_FILENO;
        return 0;
    }
    int rc = open_file(out, path, flags, e);
    if (rc < 0) {
        free(out->aside);
        out->aside = NULL;
    } else {
        // Lock the file until it is complete, because `upload` skips locked files.
        flock(out->fd, LOCK_SH | LOCK_NB);
    }
    return rc;
}

// Updates left_bytes if another process truncated the file.
static void note_truncation(struct output *out)
{
    struct stat st;
    if (out->follows && fstat(out->fd, &st) == 0 && (uint64_t)st.st_size < out->offset &&
        (!out->truncated || (uint64_t)st.st_size < out->left_bytes)) {
        out->truncated = true;
        out->left_bytes = (uint64_t)st.st_size;
    }
}

_Thread_local volatile sig_atomic_t output_cancelled, output_writing, output_writes;

static ssize_t write_parts(const struct output *out, const struct iovec *parts, size_t n)
{
    output_writing = 1;
    ssize_t w = output_cancelled ? 0 : writev(out->fd, parts, (int)n);
    output_writing = 0;
    output_writes = output_writes + (w > 0);
    return w;
}

// Checks the result of a write. Returns 1 to retry, 0 on success, or a negative errno.
static int check_write(const struct output *out, ssize_t w, struct err *e)
{
    if (w <= 0 && output_cancelled)
        return err_set(e, -ECANCELED, "%s: accepts no data: cut off at byte %llu", out->name,
                       (unsigned long long)out->offset);
    if (w < 0 && errno == EINTR)
        return 1;
    if (w <= 0)
        return err_set_errno(e, "%s: cannot write at byte %llu", out->name,
                             (unsigned long long)out->offset);
    return 0;
}

static int name_aside(struct output *out, struct err *e)
{
    if (out->unnamed && link_unnamed(out->fd, out->aside) < 0)
        return err_set_errno(e, "%s: cannot create", out->aside);
    out->unnamed = false;
    return 0;
}

static int rename_aside(struct output *out, struct err *e)
{
    if (rename(out->aside, out->name) < 0)
        return err_set_errno(e, "%s: cannot rename the temporary file", out->name);
    free(out->aside);
    out->aside = NULL;
    return 0;
}

int output_commit(struct output *out, struct err *e)
{
    out->grows = false;
    int rc = out->aside ? name_aside(out, e) : 0;
    return rc == 0 && out->aside ? rename_aside(out, e) : rc;
}

// Skips the first `done` bytes. Returns the number of parts that were completely written.
static size_t skip_parts(struct iovec *parts, size_t n, size_t done)
{
    size_t i = 0;
    while (i < n && done >= parts[i].iov_len)
        done -= parts[i++].iov_len;
    if (i < n) {
        parts[i].iov_base = (char *)parts[i].iov_base + done;
        parts[i].iov_len -= done;
    }
    return i;
}

int output_write_parts(struct output *out, struct iovec *parts, size_t n, struct err *e)
{
    size_t i = skip_parts(parts, n, 0);
    uint64_t start = clock_monotonic_ns();
    note_truncation(out);
    while (i < n) {
        ssize_t w = write_parts(out, parts + i, n - i);
        int rc = check_write(out, w, e);
        if (rc > 0)
            continue;
        if (rc < 0)
            return rc;
        out->offset += (uint64_t)w;
        i += skip_parts(parts + i, n - i, (size_t)w);
    }
    out->write_ns += clock_monotonic_ns() - start;
    return 0;
}

int output_write(struct output *out, const void *bytes, size_t n, struct err *e)
{
    int rc = out->grows && n ? output_commit(out, e) : 0;
    struct iovec all = {(void *)(uintptr_t)bytes, n};
    return rc < 0 ? rc : output_write_parts(out, &all, 1, e);
}

int output_restart(struct output *out, struct err *e)
{
    struct stat st;
    if (!out->owns_fd || fstat(out->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -ESPIPE, "%s: is not a regular file", out->name);
    if (ftruncate(out->fd, 0) < 0 || lseek(out->fd, 0, SEEK_SET) < 0)
        return err_set_errno(e, "%s: cannot truncate", out->name);
    out->offset = 0;
    out->truncated = false;
    return 0;
}

// Creates all directories in the path. Returns 0, or the negative errno of the last mkdir.
static int make_folders(char *path)
{
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int output_make_folder(const char *folder, struct err *e)
{
    enum { TRIES = 3 };
    struct stat st;
    char *path = strdup(folder);
    int rc = path ? -ENOENT : -ENOMEM;
    // Another process may remove an empty directory in the meantime.
    for (int i = 0; i < TRIES && rc == -ENOENT; i++)
        rc = make_folders(path);
    if (rc == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        rc = -ENOTDIR;
    free(path);
    return rc < 0 ? err_set(e, rc, "%s: %s", folder, strerror(-rc)) : 0;
}

int output_check_aside(const char *path, bool force, const char *why, struct err *e)
{
    struct stat st;
    struct output out;
    if (strcmp(path, "-") == 0 ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return why ? err_set(e, -EINVAL, "%s: is not a regular file, %s", path, why) : 0;
    int rc = output_open(&out, path, OUTPUT_ASIDE | (force ? OUTPUT_FORCE : 0), e);
    return rc < 0 ? rc : output_close(&out, false, e);
}

// Formats a path through which the file can be reopened, even if it has no name.
static const char *descriptor_path(const struct output *out, char at[static 64])
{
    snprintf(at, 64, "/proc/self/fd/%d", out->fd);
    return at;
}

static bool refers_to(const char *path, const struct stat *st)
{
    struct stat named;
    return lstat(path, &named) == 0 && named.st_ino == st->st_ino && named.st_dev == st->st_dev;
}

// Returns the current path of the file, which the caller frees, or NULL.
static char *find_current_path(const struct output *out, const struct stat *st)
{
    char at[64], *name = calloc(1, PATH_MAX);
    ssize_t n = name && st->st_nlink ? readlink(descriptor_path(out, at), name, PATH_MAX - 1) : 0;
    if (n > 0 && refers_to(name, st))
        return name;
    free(name);
    return NULL;
}

static int copy_bytes(int from, int to)
{
    enum { STEP = 1 << 18 };
    char *step = malloc(STEP);
    ssize_t n = step ? 1 : -1, written = 0;
    errno = step ? 0 : ENOMEM;
    while (n > 0 && (n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0)) > 0)
        ;
    // copy_file_range(2) fails between some file systems.
    for (n = n < 0 ? 1 : n; n > 0 && (n = read(from, step, STEP)) > 0 && written >= 0;) {
        for (ssize_t done = 0; done < n && written >= 0; done += written)
            written = write(to, step + done, (size_t)(n - done));
    }
    int rc = n < 0 || written < 0 ? -errno : 0;
    free(step);
    return rc;
}

// Copies the file to `path`, which must not exist. A removed file cannot be linked again, so this
// function copies its data.
static int copy_file(const struct output *out, const char *path)
{
    char at[64];
    int from = open(descriptor_path(out, at), O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = to < 0 ? -errno : copy_bytes(from, to);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) < 0 && rc == 0)
        rc = -errno;
    if (to >= 0 && rc < 0)
        unlink(path);
    return rc;
}

static int link_or_copy(const struct output *out, const char *path)
{
    char at[64];
    if (linkat(AT_FDCWD, descriptor_path(out, at), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return errno == EEXIST ? -errno : copy_file(out, path);
}

// Recreates the file at `path`. If its directory was removed, recreates the directory too.
static int recreate_file(const struct output *out, const char *path)
{
    int rc = link_or_copy(out, path);
    const char *slash = strrchr(path, '/');
    char *folder =
        rc == -ENOENT && slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    if (folder && output_make_folder(folder, NULL) == 0)
        rc = link_or_copy(out, path);
    free(folder);
    return rc;
}

// Recreates the file at `path` or, if another file has that name now, at PATH.kept-PID. Returns 0
// and sets *at to the path, which the caller frees, or returns a negative errno.
static int keep_file(const struct output *out, const char *path, bool replaced, char **at)
{
    *at = replaced ? NULL : strdup(path);
    if (replaced && asprintf(at, "%s.kept-%ld", path, (long)getpid()) < 0)
        *at = NULL;
    int rc = *at ? recreate_file(out, *at) : -ENOMEM;
    if (rc < 0) {
        free(*at);
        *at = NULL;
    }
    return rc;
}

static int report_lost_name(const struct output *out, const char *path, bool replaced, bool *kept,
                            struct err *e)
{
    struct stat st = {0};
    fstat(out->fd, &st);
    char *now = find_current_path(out, &st), *at = NULL;
    int rc = keep_file(out, path, replaced, &at);
    const char *what = now           ? "was moved"
                       : replaced    ? "was replaced"
                       : st.st_nlink ? "was unmounted"
                                     : "was removed";
    char rest[300];
    if (at)
        snprintf(rest, sizeof rest, "the data is kept as %.250s", at);
    else if (now)
        snprintf(rest, sizeof rest, "the data is now %.250s", now);
    else
        snprintf(rest, sizeof rest, "the data is lost: %s", strerror(-rc));
    *kept = at && !replaced;
    free(now);
    free(at);
    return err_set(e, -ESTALE, "%s: %s while it was written; %s", out->name, what, rest);
}

// Before the output is closed, checks that `path` still refers to the file and that no bytes are
// missing. Otherwise, keeps the data if possible, and returns -ESTALE with the message set. Sets
// *kept to true if the file is at `path`, else to false.
static int check_name(const struct output *out, const char *path, bool *kept, struct err *e)
{
    struct stat mine, named;
    *kept = true;
    if (!out->follows || fstat(out->fd, &mine) < 0)
        return 0;
    if (!refers_to(path, &mine))
        return report_lost_name(out, path, lstat(path, &named) == 0, kept, e);
    if (out->truncated)
        return err_set(e, -ESTALE, "%s: was truncated to %llu of %llu bytes while it was written",
                       out->name, (unsigned long long)out->left_bytes,
                       (unsigned long long)out->offset);
    return 0;
}

int output_close(struct output *out, bool commit, struct err *e)
{
    bool named = commit && !out->grows, whole = true;
    bool was_named = !out->unnamed;
    int rc = out->aside && named ? name_aside(out, e) : 0, stale = 0;
    note_truncation(out);
    if (rc == 0 && named && (was_named || out->truncated))
        stale = check_name(out, out->aside ? out->aside : out->name, &whole, e);
    // Network file systems may report a full disk only on close.
    if (out->owns_fd && out->fd >= 0 && close(out->fd) < 0)
        rc = err_set_errno(e, "%s: cannot finish writing", out->name);
    if (rc == 0 && named && whole && out->aside)
        rc = rename_aside(out, e);
    if (out->aside && !out->unnamed)
        unlink(out->aside);
    free(out->aside);
    *out = (struct output){.fd = -1, .name = out->name};
    return rc < 0 ? rc : stale;
}

int output_finish(struct output *out, int rc, struct err *e)
{
    int closed = output_close(out, rc == 0, rc == 0 ? e : NULL);
    return rc < 0 ? rc : closed;
}
