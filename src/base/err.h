// Error messages of library functions.
#pragma once

#include <stddef.h>

// Error message: the file, the fault and the byte offset, without the program's name, a newline or
// a final period. Owned by the caller. An empty string means that there is no message.
struct err {
    char text[600];
};

// Formats the message and returns `code`, a negative errno, so that callers can write `return
// err_set(e, -EINVAL, "…")`. `e` may be NULL. An existing message is kept, because the first
// message is the most specific.
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Like err_set, with ": " and strerror(errno) appended. Returns -errno, or -EIO if errno is 0.
int err_set_errno(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Sets the message to "FILE: out of memory", or to "out of memory" if `file` is NULL. Returns
// -ENOMEM.
int err_no_memory(struct err *e, const char *file);

// Formats a message of any length and passes it to `note`. If memory runs out, the message is "out
// of memory".
void err_note(void (*note)(const char *text), const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
