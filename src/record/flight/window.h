// How much of a recording a file is to hold, and what the files are called.
#ifndef HEAPTAPE_FLIGHT_WINDOW_H
#define HEAPTAPE_FLIGHT_WINDOW_H

#include <stdint.h>

// So many bytes of stored frames, and no longer than this: 0 bytes and UINT64_MAX ns are no limit.
struct flight_window {
    uint64_t bytes, ns;
};

// Parses "64M", "5min" or both, separated by a comma. 0 or -EINVAL.
int flight_window_parse(const char *text, struct flight_window *w);

// The pattern with the number in the place of %n, to be freed. NULL when out of memory.
char *flight_path(const char *pattern, uint64_t number);

#endif
