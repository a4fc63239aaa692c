#include "transfer/names.h"

#include <errno.h>
#include <string.h>

// Does not use isalnum, which depends on the locale.
static bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._+-", c));
}

static bool is_part(const char *part, size_t n)
{
    if (n == 0 || n > NAMES_MAX_PART_BYTES || part[0] == '.' || part[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_safe(part[i]))
            return false;
    }
    return true;
}

bool names_is_trace(const char *part, size_t n)
{
    return n > 3 && memcmp(part + n - 3, ".ht", 3) == 0;
}

int names_check(const char *path)
{
    int parts = 0;
    if (strnlen(path, NAMES_MAX_BYTES + 1) > NAMES_MAX_BYTES)
        return -EINVAL;
    for (const char *part = path;; parts++) {
        size_t n = strcspn(part, "/");
        bool last = part[n] == 0;
        if (!is_part(part, n) || names_is_trace(part, n) != last)
            return -EINVAL;
        if (last)
            break;
        part += n + 1;
    }
    parts++;
    return parts >= NAMES_MIN_PARTS && parts <= NAMES_MAX_PARTS ? parts : -EINVAL;
}

void names_make(const char *text, char *out, size_t size)
{
    size_t n = 0;
    size = size < NAMES_MAX_PART_BYTES + 1 ? size : NAMES_MAX_PART_BYTES + 1;
    for (; text[n] && n < size - 1; n++)
        out[n] = is_safe(text[n]) ? text[n] : '_';
    if (n == 0)
        out[n++] = '_';
    if (out[0] == '.' || out[0] == '-')
        out[0] = '_';
    out[n] = 0;
    // A directory's name must not end like the name of a trace.
    if (names_is_trace(out, n))
        out[n - 3] = '_';
}
