// Resident pages of a process at one point in time: payload of a PAGES frame.
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Types of mappings. Wire values.
enum trace_memory {
    TRACE_MEMORY_HEAP = 0,      // brk(2)
    TRACE_MEMORY_ANONYMOUS = 1, // private mappings without a file
    TRACE_MEMORY_STACK = 2,     // the main thread's stack, and mappings named as stacks
    TRACE_MEMORY_FILE = 3,      // code and data of files
    TRACE_MEMORY_SHARED = 4,    // shared memory
    TRACE_MEMORY_RECORDING = 5, // heaptape's mappings in the process
    TRACE_MEMORY_OTHER = 6,
    TRACE_MEMORY_KINDS
};

// Consecutive resident pages, numbered by address / page_bytes.
struct trace_page_run {
    uint64_t first, n;
};

// A mapping of type HEAP or ANONYMOUS.
struct trace_mapping {
    uint64_t start, bytes;
    enum trace_memory kind;
    // True if the mapping directly follows a mapping of a file. Such a mapping usually contains the
    // zeroed data of a library.
    bool after_file;
    uint64_t rss_bytes, swap_bytes, huge_bytes;
    size_t first_run, n_runs;
};

// Name of a file, name of shared memory, or "[anon:NAME]", with the resident bytes of all mappings
// that have this name.
enum { TRACE_PAGES_NAME_BYTES = 200, TRACE_PAGES_NAMES = 8 };
struct trace_pages_name {
    enum trace_memory kind;
    uint64_t rss_bytes;
    char name[TRACE_PAGES_NAME_BYTES]; // truncated if longer
};

#define TRACE_PAGES_UNKNOWN UINT64_MAX

// A zeroed struct is empty. Release with trace_pages_release.
struct trace_pages {
    uint32_t process;
    uint64_t stamp, end_stamp; // stamps at which reading the maps started and ended
    uint64_t page_bytes;
    uint64_t rss_bytes, pss_bytes, swap_bytes,
        huge_bytes; // totals over all mappings; huge_bytes counts anonymous memory in huge pages
    uint64_t minor_faults, major_faults, cpu_ns; // since the start of the process
    uint64_t cgroup_bytes, cgroup_limit_bytes;   // or TRACE_PAGES_UNKNOWN
    uint64_t libraries;                          // mapped libraries, as in libraries.h
    uint64_t rss_of[TRACE_MEMORY_KINDS];         // totals of the mappings that are not listed
    struct trace_mapping *mappings;              // sorted by address
    size_t n_mappings, mappings_capacity;
    struct trace_page_run *runs;
    size_t n_runs, runs_capacity;
    struct trace_pages_name names[TRACE_PAGES_NAMES]; // most resident bytes first
    size_t n_names;
};

void trace_pages_release(struct trace_pages *p);

// Appends a mapping. Call trace_pages_add_run to append its runs. Returns 0 or -ENOMEM.
int trace_pages_add(struct trace_pages *p, const struct trace_mapping *m);

// Appends resident pages to the last mapping, above its other pages. Returns 0 or -ENOMEM.
int trace_pages_add_run(struct trace_pages *p, uint64_t first, uint64_t n);

// Reads the payload of a frame. Returns the resident bytes of heaptape's own mappings, or 0 if they
// are unknown.
uint64_t trace_pages_recording_bytes(const uint8_t *at, size_t n);

// Appends the payload of a frame. Returns 0, -ENOMEM, or -EMSGSIZE if the payload does not fit in a
// frame.
int trace_pages_put(struct buf *b, const struct trace_pages *p);

// Decodes a payload into an empty *p, which the caller must release even after an error. Returns 0,
// -EBADMSG or -ENOMEM. Checks that runs are sorted and inside their mapping, that mappings do not
// overlap, and that no sum of sizes exceeds 2^63.
int trace_pages_get(const uint8_t *at, size_t n, struct trace_pages *p);
