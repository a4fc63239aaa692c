#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e && !e->text[0]) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_set_errno(struct err *e, const char *fmt, ...)
{
    int saved = errno ? errno : EIO;
    if (e && !e->text[0]) {
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof e->text)
            snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", strerror(saved));
    }
    return -saved;
}

int err_no_memory(struct err *e, const char *file)
{
    return file ? err_set(e, -ENOMEM, "%s: out of memory", file)
                : err_set(e, -ENOMEM, "out of memory");
}

void err_note(void (*note)(const char *text), const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    note(n < 0 ? "out of memory" : text);
    if (n >= 0)
        free(text);
}
