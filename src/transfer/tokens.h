// Files of bearer tokens: one token a line. They are read at each use, so that tokens can be replaced meanwhile.
#ifndef HEAPTAPE_TRANSFER_TOKENS_H
#define HEAPTAPE_TRANSFER_TOKENS_H

#include "base/err.h"

#include <stdbool.h>

enum { TOKENS_FILE_BYTES = 8192 };

// The tokens of a file.
struct tokens {
    size_t n;
    char text[TOKENS_FILE_BYTES + 1]; // `n` strings, one after the other
};

// Reads all tokens, at least one, each of visible ASCII characters. Returns 0, or a negative errno with the text set: -EINVAL for
// other characters and for a file that is not regular, -EACCES for a file that every user can read.
int tokens_read(const char *path, struct tokens *t, struct err *e);

// Is `given` one of them? The time that this takes does not depend on where a token differs.
bool tokens_have(const struct tokens *t, const char *given);

#endif
