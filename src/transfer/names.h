// Names of recordings on a receiver: HOST/PROCESS/NAME.ht, in characters that are safe on all
// systems.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    NAMES_MIN_PARTS = 3,
    NAMES_MAX_PARTS = 8, // other directories may precede HOST
    NAMES_MAX_PART_BYTES = 128,
    NAMES_MAX_BYTES = 512, // including slashes
};

// Checks a name without a leading slash. A part of the name consists of letters, digits and "._+-"
// and does not begin with "." or "-". Only the last part ends with ".ht". Returns the number of
// parts, or -EINVAL.
int names_check(const char *path);

// Returns true if the name of `n` bytes ends with ".ht" and is longer than that suffix.
bool names_is_trace(const char *part, size_t n);

// Converts `text` to a part of a name in out[0..size). Replaces characters that are not allowed
// with "_" and truncates long strings. Converts an empty string to "_". `size` must be at least 2.
void names_make(const char *text, char *out, size_t size);
