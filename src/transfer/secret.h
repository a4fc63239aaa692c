// Small files named by options: tokens, certificates and keys.
#pragma once

#include "base/err.h"

#include <sys/types.h>

enum secret_kind {
    SECRET_PUBLIC,
    SECRET_PRIVATE, // refuse the file if other users have access to it
};

// Reads the whole file, up to `size` bytes, into to[0..size). Accepts only regular files, so that
// the call does not block. Returns the number of bytes, or a negative errno with the message set.
// Returns -EFBIG without a message if the file is larger.
ssize_t secret_read(const char *path, enum secret_kind kind, char *to, size_t size, struct err *e);
