// The one way a library function says what went wrong.
#ifndef HEAPTAPE_BASE_ERR_H
#define HEAPTAPE_BASE_ERR_H

#include <stddef.h>

// Text of an error: what file, what is wrong, at which byte, without the program's name, a newline or a full
// stop. The caller owns it; an empty text means that nothing was said.
struct err {
    char text[600];
};

// Writes the text and returns `code`, a negative errno, so that `return err_set(e, -EINVAL, "…")` reads as
// one step. `e` may be NULL. The first text wins: a later, more general one does not hide what really
// happened.
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// As err_set, and appends ": " and strerror(errno). Returns -errno (-EIO if errno is 0).
int err_set_errno(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Describes a failed allocation: "FILE: out of memory", or "out of memory" if `file` is NULL.
// Returns -ENOMEM.
int err_no_memory(struct err *e, const char *file);

// Calls `note` with a text of any length, as one with paths may be; with "out of memory" where there is no room for it.
void err_note(void (*note)(const char *text), const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
