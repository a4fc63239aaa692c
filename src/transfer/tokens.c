#include "transfer/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_all(const char *path, char *to, size_t size)
{
    size_t n = 0;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    while (got > 0 && n < size) {
        got = read(fd, to + n, size - n);
        n += got > 0 ? (size_t)got : 0;
    }
    int failed = errno;
    close(fd);
    errno = failed;
    return got < 0 ? -1 : (ssize_t)n;
}

int tokens_read(const char *path, struct tokens *t, struct err *e)
{
    char text[TOKENS_FILE_BYTES + 1];
    ssize_t n = read_all(path, text, sizeof text);
    char *to = t->text;
    t->n = 0;
    if (n < 0)
        return err_set_errno(e, "%s", path);
    if (n > TOKENS_FILE_BYTES)
        return err_set(e, -EINVAL, "%s: tokens have %d bytes at most", path, TOKENS_FILE_BYTES);
    for (ssize_t i = 0, begin = 0; i <= n; i++) {
        bool ends = i == n || text[i] == '\n' || (text[i] == '\r' && (i + 1 == n || text[i + 1] == '\n'));
        if (!ends && (text[i] <= ' ' || text[i] > '~'))
            return err_set(e, -EINVAL, "%s: expected a token in a line, at byte %zd", path, i);
        if (!ends)
            continue;
        if (i > begin) {
            memcpy(to, text + begin, (size_t)(i - begin));
            to[i - begin] = 0;
            to += i - begin + 1;
            t->n++;
        }
        begin = i + 1;
    }
    return t->n ? 0 : err_set(e, -EINVAL, "%s: has no token", path);
}

// As many steps for each text of the same length.
static bool is_equal(const char *token, const char *given, size_t given_bytes)
{
    size_t bytes = strlen(token);
    volatile unsigned char differ = bytes != given_bytes;
    for (size_t i = 0; i < given_bytes; i++)
        differ |= (unsigned char)(token[bytes ? i % bytes : 0] ^ given[i]);
    return !differ;
}

bool tokens_have(const struct tokens *t, const char *given)
{
    bool found = false;
    const char *token = t->text;
    size_t n = strlen(given);
    for (size_t i = 0; i < t->n; i++, token += strlen(token) + 1)
        found |= is_equal(token, given, n);
    return found;
}
