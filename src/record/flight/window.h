// Size limits of files, and their names.
#ifndef HEAPTAPE_FLIGHT_WINDOW_H
#define HEAPTAPE_FLIGHT_WINDOW_H

#include <stdint.h>

// Maximum stored bytes and duration; 0 and UINT64_MAX mean no limit.
struct flight_window {
    uint64_t bytes, ns;
};

// Parses "64M", "5min" or both, separated by a comma. Returns 0, or -EINVAL.
int flight_window_parse(const char *text, struct flight_window *w);

// Returns the pattern with %n replaced by `number`; freed by the caller. NULL: out of memory.
char *flight_path(const char *pattern, uint64_t number);

#endif
