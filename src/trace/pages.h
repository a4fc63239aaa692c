// Which pages of a process were resident at one moment, as its SAMPLES' finer sister: the payload of a PAGES frame.
#ifndef HEAPTAPE_TRACE_PAGES_H
#define HEAPTAPE_TRACE_PAGES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a mapping is. Wire values.
enum trace_memory {
    TRACE_MEMORY_HEAP = 0,      // of brk(2)
    TRACE_MEMORY_ANONYMOUS = 1, // private and of no file
    TRACE_MEMORY_STACK = 2,     // of the main thread, and those that have a name which says so
    TRACE_MEMORY_FILE = 3,      // of files: code, and data that was written or not
    TRACE_MEMORY_SHARED = 4,    // shared memory
    TRACE_MEMORY_RECORDING = 5, // heaptape's own in the process
    TRACE_MEMORY_OTHER = 6,
    TRACE_MEMORY_KINDS
};

// Resident pages in a row, by page number: address / page_bytes.
struct trace_page_run {
    uint64_t first, n;
};

// A mapping of the kinds HEAP and ANONYMOUS. Sizes are in bytes.
struct trace_mapping {
    uint64_t start, bytes;
    enum trace_memory kind;
    bool after_file; // directly behind a file's: most often the zeroed data of that library
    uint64_t rss_bytes, swap_bytes, huge_bytes;
    size_t first_run, n_runs;
};

#define TRACE_PAGES_UNKNOWN UINT64_MAX

// All zero is an empty one. Release with trace_pages_release.
struct trace_pages {
    uint32_t process;
    uint64_t stamp, end_stamp; // while it was read
    uint64_t page_bytes;
    uint64_t rss_bytes, pss_bytes, swap_bytes,
        huge_bytes; // of all mappings; huge: anonymous memory in huge pages
    uint64_t minor_faults, major_faults, cpu_ns; // of the process, since it started
    uint64_t cgroup_bytes, cgroup_limit_bytes;   // TRACE_PAGES_UNKNOWN: there is none
    uint64_t rss_of[TRACE_MEMORY_KINDS];         // in mappings that are not listed
    struct trace_mapping *mappings;              // by address
    size_t n_mappings, mappings_capacity;
    struct trace_page_run *runs;
    size_t n_runs, runs_capacity;
};

void trace_pages_release(struct trace_pages *p);

// Appends a mapping; its runs follow. 0 or -ENOMEM.
int trace_pages_add(struct trace_pages *p, const struct trace_mapping *m);

// Appends resident pages to the mapping added last, behind those that it has. 0 or -ENOMEM.
int trace_pages_add_run(struct trace_pages *p, uint64_t first, uint64_t n);

// Appends the payload of a frame. 0, -ENOMEM, or -EMSGSIZE if it does not fit a frame.
int trace_pages_put(struct buf *b, const struct trace_pages *p);

// Fills an empty *p in from a payload; to be released in any case. 0, -EBADMSG or -ENOMEM. Runs lie in their mappings, in
// order; mappings do not overlap, and no sum of them exceeds 2^63.
int trace_pages_get(const uint8_t *at, size_t n, struct trace_pages *p);

#endif
