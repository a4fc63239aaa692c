// The names that recordings have on a receiver: HOST/PROCESS/NAME.ht, of characters that are safe everywhere.
#ifndef HEAPTAPE_TRANSFER_NAMES_H
#define HEAPTAPE_TRANSFER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum {
    NAMES_MIN_PARTS = 3,
    NAMES_MAX_PARTS = 8, // folders before HOST are allowed
    NAMES_MAX_PART_BYTES = 128,
    NAMES_MAX_BYTES = 512, // of all parts with their slashes
};

// Is `path`, without a slash at its start, such a name? A part consists of letters, digits and "._+-" and begins with none of
// "." and "-"; the last part ends in ".ht", and no other part does. Returns the number of parts, or -EINVAL.
int names_check(const char *path);

// Does the name of `n` bytes end in ".ht", and has something before that?
bool names_is_trace(const char *part, size_t n);

// Makes a part of `text` into out[0..size): other characters become "_", and what is too long is cut off. An empty text
// becomes "_". `size` is at least 2.
void names_make(const char *text, char *out, size_t size);

#endif
