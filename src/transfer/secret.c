#include "transfer/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, const char *path, enum secret_kind kind, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set_errno(e, "%s", path);
    if (S_ISDIR(st.st_mode))
        return err_set(e, -EISDIR, "%s: is a directory", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, -EINVAL, "%s: is not a regular file", path);
    if (kind == SECRET_PRIVATE && st.st_mode & S_IRWXO)
        return err_set(e, -EACCES,
                       "%s: every user has access (mode %04o): expected mode 0600 or 0640; run 'chmod 600 %s'", path,
                       (unsigned)st.st_mode & 07777, path);
    return 0;
}

static ssize_t read_all(int fd, char *to, size_t size)
{
    size_t n = 0;
    ssize_t got;
    char more;
    while (n < size && (got = read(fd, to + n, size - n)) != 0) {
        if (got < 0 && errno != EINTR)
            return -errno;
        n += got > 0 ? (size_t)got : 0;
    }
    return n == size && read(fd, &more, 1) == 1 ? -EFBIG : (ssize_t)n;
}

ssize_t secret_read(const char *path, enum secret_kind kind, char *to, size_t size, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_set_errno(e, "%s", path);
    ssize_t n = check(fd, path, kind, e);
    if (n == 0)
        n = read_all(fd, to, size);
    close(fd);
    if (n < 0 && n != -EFBIG) {
        errno = (int)-n;
        err_set_errno(e, "%s", path);
    }
    return n;
}
