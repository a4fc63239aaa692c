// Shared by real_rss and the library that it preloads.
#ifndef REAL_RSS_H
#define REAL_RSS_H

#include <stdint.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REAL_RSS_RANGES = 65536,
    REAL_RSS_PAGE = 4096,
    REAL_RSS_LOOK_CALLS = 256, // minimum number of calls of the allocator between samples
    // The distance between samples grows by 1/REAL_RSS_LOOK_PART of all calls so far, because
    // samples take time, during which allocators release memory.
    REAL_RSS_LOOK_PART = 64,
};

struct real_rss_range {
    uintptr_t from, to;
};

struct real_rss {
    int32_t pid;
    uint32_t starts; // number of processes started so far
    uint32_t n;
    uint64_t calls;                 // calls of the allocator
    uint64_t next_look;             // number of calls at the next sample
    uint64_t stopped_ns;            // time stopped for samples
    uint64_t heap_at_start;         // result of real_rss_heap before any other constructor
    struct real_rss_range zeros[2]; // zero page frames, which do not count as RSS
    // Mappings made by the program itself, and its variables.
    struct real_rss_range ranges[REAL_RSS_RANGES];
};

static inline bool real_rss_is_own(const struct real_rss_range *own, uint32_t n, uintptr_t page)
{
    for (uint32_t i = 0; i < n; i++) {
        if (page >= own[i].from && page < own[i].to)
            return true;
    }
    return false;
}

static inline bool real_rss_is_zeros(const struct real_rss *r, uint64_t entry)
{
    uint64_t frame = entry & ((1ull << 55) - 1); // the kernel reports 0 without CAP_SYS_ADMIN
    return frame && ((frame >= r->zeros[0].from && frame < r->zeros[0].to) ||
                     (frame >= r->zeros[1].from && frame < r->zeros[1].to));
}

// Returns the resident private bytes in [from, to), without the program's own mappings.
static inline uint64_t real_rss_count(const struct real_rss *r, int pagemap, uintptr_t from,
                                      uintptr_t to)
{
    static uint64_t entries[16384];
    static struct real_rss_range own[REAL_RSS_RANGES]; // ranges that overlap [from, to)
    uint64_t bytes = 0;
    uint32_t n_own = 0;
    for (uint32_t i = 0; i < r->n && i < REAL_RSS_RANGES; i++) {
        if (r->ranges[i].from < to && r->ranges[i].to > from)
            own[n_own++] = r->ranges[i];
    }
    while (from < to) {
        size_t n = (to - from) / REAL_RSS_PAGE < 16384 ? (to - from) / REAL_RSS_PAGE : 16384;
        ssize_t got = pread(pagemap, entries, n * 8, (off_t)(from / REAL_RSS_PAGE * 8));
        if (got <= 0)
            break;
        for (size_t i = 0; i < (size_t)got / 8; i++) {
            // proc(5): bit 63: present; bit 61: file-mapped or shared.
            if (entries[i] >> 63 && !(entries[i] >> 61 & 1) && !real_rss_is_zeros(r, entries[i]) &&
                !real_rss_is_own(own, n_own, from + i * REAL_RSS_PAGE))
                bytes += REAL_RSS_PAGE;
        }
        from += (size_t)got / 8 * REAL_RSS_PAGE;
    }
    return bytes;
}

// Returns the resident bytes of a process's heap, given the text of its maps. Modifies the text.
static inline uint64_t real_rss_heap(const struct real_rss *r, int pagemap, char *maps)
{
    uint64_t bytes = 0;
    for (char *line = maps, *end; *line; line = end) {
        unsigned long from, to;
        char flags[8], name[256] = "";
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s%255[^\n]", &from, &to, flags, name) < 3)
            continue;
        const char *path = name + strspn(name, " ");
        if (strcmp(path, "[heap]") == 0 || (!*path && flags[1] == 'w'))
            bytes += real_rss_count(r, pagemap, from, to);
    }
    return bytes;
}

#endif
