// Size limits and names of files.
#ifndef HEAPTAPE_FLIGHT_WINDOW_H
#define HEAPTAPE_FLIGHT_WINDOW_H

#include <stdint.h>

// Maximum number of stored bytes (0 if unlimited) and maximum duration (UINT64_MAX if unlimited).
struct flight_window {
    uint64_t bytes, ns;
};

enum { FLIGHT_MIN_BYTES = 1 << 20 };

// Parses "64M", "5min" or both, separated by a comma. Returns 0, -EINVAL, or -ERANGE if the number
// of bytes is below FLIGHT_MIN_BYTES.
int flight_window_parse(const char *text, struct flight_window *w);

// Returns the pattern with %n replaced with `number`, or NULL if out of memory. The caller must
// free the result.
char *flight_path(const char *pattern, uint64_t number);

#endif
