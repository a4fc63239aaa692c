#include "transfer/secret.h"

#include "base/fio.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct stat st = {0};
    int fd = input_regular_fd(path, &st);
    if (fd == -EINVAL && !S_ISDIR(st.st_mode))
        return err_set(e, fd, "%s: is not a regular file", path);
    ssize_t n = fd == -EINVAL ? -EISDIR : fd;
    if (fd >= 0 && kind == SECRET_PRIVATE && st.st_mode & S_IRWXO)
        n = err_set(
            e, -EACCES,
            "%s: every user has access (mode %04o): expected mode 0600 or 0640; run 'chmod 600 %s'",
            path, (unsigned)st.st_mode & 07777, path);
    else if (fd >= 0)
        n = read_all(fd, to, size);
    if (fd >= 0)
        close(fd);
    return n >= 0 || n == -EFBIG ? n : err_set(e, (int)n, "%s: %s", path, strerror((int)-n));
}
