// What real_rss and the library that it preloads share.
#ifndef REAL_RSS_H
#define REAL_RSS_H

#include <stdint.h>

enum { REAL_RSS_RANGES = 65536, REAL_RSS_MAPS_BYTES = 65536 };

struct real_rss_range {
    uintptr_t from, to;
};

struct real_rss {
    int32_t pid;
    uint32_t starts; // processes so far
    uint32_t n;
    char maps_at_start[REAL_RSS_MAPS_BYTES]; // /proc/self/maps before main
    struct real_rss_range ranges[REAL_RSS_RANGES];
};

#endif
