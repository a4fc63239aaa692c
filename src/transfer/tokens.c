#include "transfer/tokens.h"

#include "transfer/secret.h"

#include <errno.h>
#include <string.h>

int tokens_read(const char *path, struct tokens *t, struct err *e)
{
    char text[TOKENS_FILE_BYTES];
    ssize_t n = secret_read(path, SECRET_PRIVATE, text, sizeof text, e);
    char *to = t->text;
    t->n = 0;
    if (n == -EFBIG)
        return err_set(e, -EINVAL, "%s: expected a file of tokens of at most %d bytes", path,
                       TOKENS_FILE_BYTES);
    if (n < 0)
        return (int)n;
    for (ssize_t i = 0, begin = 0; i <= n; i++) {
        bool ends =
            i == n || text[i] == '\n' || (text[i] == '\r' && (i + 1 == n || text[i + 1] == '\n'));
        if (!ends && (text[i] <= ' ' || text[i] > '~'))
            return err_set(e, -EINVAL, "%s: expected one token per line, at byte %zd", path, i);
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
    return t->n ? 0 : err_set(e, -EINVAL, "%s: contains no token", path);
}

// Compares in a time that depends only on the length of `given`, so that timing reveals no token.
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
