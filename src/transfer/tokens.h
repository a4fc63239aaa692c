// Files with bearer tokens, one token per line. A file is read at each use, so that tokens can be
// replaced at any time.
#pragma once

#include "base/err.h"

#include <stdbool.h>

enum { TOKENS_FILE_BYTES = 8192 };

// The tokens of a file.
struct tokens {
    size_t n;
    char text[TOKENS_FILE_BYTES + 1]; // `n` NUL-terminated strings
};

// Reads the tokens of a file. Tokens consist of visible ASCII characters. Returns 0, or a negative
// errno with the message set: -EINVAL if the file is not regular, contains other characters or
// contains no token, -EACCES if other users have access to the file.
int tokens_read(const char *path, struct tokens *t, struct err *e);

// Returns true if `given` is one of the tokens. The time that the call takes does not depend on
// where the strings differ.
bool tokens_have(const struct tokens *t, const char *given);
