// Assigns numbers to strings, for formats that store each string once.
#pragma once

#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>

// A zeroed struct is empty. Strings are borrowed until intern_release.
struct intern {
    // Maps the hash of a string to the number of the string. Strings with the same hash use
    // consecutive keys.
    struct map numbers;
    const char **texts; // string 1 is texts[0]
    size_t n, capacity;
};

void intern_release(struct intern *s);

// Returns the number of the string, or 0 when out of memory. Numbers start at 1 and follow the
// order of first use. Sets *is_new to true if the string is new, else to false.
uint64_t intern_number(struct intern *s, const char *text, bool *is_new);
