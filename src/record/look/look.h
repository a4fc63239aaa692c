// Examines the memory of a running process from outside: the owners of its resident pages, and the
// state of glibc's malloc. A look reads only resident pages; it neither stops threads nor writes to
// memory.
//
// The process changes its memory during the look. Values that contradict each other are dropped.
// look_heap.lost_bytes counts the memory whose blocks are unknown for this reason.
#pragma once

#include "base/err.h"
#include "record/processes/software.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Owners of resident memory. Their bytes add up to RSS.
enum look_owner {
    LOOK_LIVE,      // malloc'ed blocks that the program has not freed
    LOOK_FREE,      // whole pages of free chunks, which malloc_trim(0) returns to the kernel
    LOOK_TOP,       // whole pages at the ends of arenas, which malloc_trim does not return
    LOOK_CACHED,    // freed blocks in thread caches and fastbins
    LOOK_PINNED,    // free memory in pages that also contain live blocks, and malloc's headers
    LOOK_UNREAD,    // malloc's memory with unknown blocks
    LOOK_STACKS,    // stacks of threads
    LOOK_RUNTIME,   // anonymous memory outside malloc in the process of a language runtime
    LOOK_JIT,       // anonymous executable memory
    LOOK_ANONYMOUS, // other anonymous memory outside malloc
    LOOK_SHARED,    // shared memory
    LOOK_FILES,     // code and data of files
    LOOK_OTHER,
    LOOK_OWNERS
};

struct look_heap {
    enum software_allocator allocator;
    char version[16]; // version of glibc, or "" if unknown
    // The state of glibc's arenas was read. If false, `why_not` is the reason.
    bool is_read;
    // live_bytes, free_bytes and the owners are known from another source: the allocator's own
    // statistics (see look_ask) or the segments of mimalloc.
    bool has_statistics;
    bool is_corrupt; // the same contradiction was found twice
    char why_not[200];
    uint32_t arenas, heaps;
    uint64_t arena_bytes;        // total size of the arenas
    uint64_t blocks, live_bytes; // live blocks, including mapped blocks, and their usable bytes
    uint64_t largest_bytes;      // usable bytes of the largest live block
    uint64_t free_bytes;         // size of the free chunks, including chunks that are not resident
    uint64_t mapped, mapped_bytes;  // live blocks with a separate mapping
    uint64_t mapped_resident_bytes; // resident part of mapped_bytes
    uint64_t main_top_bytes;        // resident whole pages in LOOK_FREE at the end of the main heap
    uint32_t free_arenas;      // number of arenas with at least 256 KiB of resident free memory
    uint64_t other_free_bytes; // resident free memory outside the main arena
    // Live blocks of less than 4 KiB, in pages where live blocks use less than half of the bytes.
    uint64_t pinning_blocks, pinning_bytes;
    // Resident bytes of the arenas whose chunks were read, and resident bytes that were skipped
    // because they contain no sequence of valid chunks.
    uint64_t read_bytes, lost_bytes;
    // malloc's parameters; arena_max is 0 for the default
    uint64_t trim_threshold, mmap_threshold, arena_max;
    // Address and size of the first invalid chunk; 0 if all chunks are valid.
    uint64_t bad_at, bad_size;
};

enum { LOOK_NAME = 256, LOOK_NAMES = 8, LOOK_COMMAND = 256 };

// Mappings with the same name.
struct look_name {
    char name[LOOK_NAME];
    enum look_owner owner;
    uint64_t rss_bytes, bytes;
    uint32_t mappings;
};

struct look_process {
    pid_t pid;
    uint64_t rss_bytes;
    char command[LOOK_COMMAND];
};

struct look_group {
    uint64_t used_bytes, limit_bytes, file_bytes; // UINT64_MAX if unknown or unlimited
};

struct look {
    pid_t pid;
    char command[LOOK_COMMAND]; // command line with spaces between the arguments
    char state;                 // letter of /proc/PID/status
    uint32_t uid, threads;
    uint64_t image;   // changes when the process calls exec
    uint64_t time_ns; // CLOCK_MONOTONIC in the middle of the look
    uint64_t cpu_ns;  // CPU time that the process has used; 0 if unknown
    uint64_t rss_bytes, peak_rss_bytes, swap_bytes, huge_bytes;
    uint64_t owners[LOOK_OWNERS];
    bool maps_cut;   // the list of mappings is incomplete because of the time limit
    uint32_t stacks; // number of mappings that are thread stacks
    uint64_t stack_bytes;
    const struct software_runtime *runtime; // NULL if no language runtime was recognized
    struct look_name names[LOOK_NAMES];     // names with the most resident memory first
    size_t n_names;
    struct look_heap heap;
    struct look_process largest_child; // its pid is 0 if there is no child
    uint32_t children;                 // number of descendants
    uint64_t children_bytes; // sum of the descendants' RSS; shared pages count in each descendant
    struct look_group group;
};

// Reads everything. Never blocks, and takes about `max_ns` at most, not counting the kernel's own
// time for /proc. Uses at most 16 bytes for each resident page. Returns 0, or a negative errno with
// *e set: -ESRCH (the process does not exist, or it ended or called exec), -EACCES, -ENOMEM.
int look_take(struct look *l, pid_t pid, uint64_t max_ns, struct err *e);

// Compares `now` with an earlier look at the same process. If both looks found the same invalid
// chunk, sets is_corrupt.
void look_compare(struct look *now, const struct look *before);

const char *look_owner_name(enum look_owner o); // for example "live"

struct attach_result;

// Reads the statistics of jemalloc or tcmalloc, and adds them to *l. Stops one of the process's
// threads to call functions in it. Returns 0, or a negative errno with *e set: -ENOTSUP for another
// allocator and for an allocator without statistics, or an error of attach_call.
int look_ask(struct look *l, struct attach_result *result, struct err *e);

// Makes the allocator return free memory to the kernel, by a call in the process. Returns 0, or a
// negative errno like attach_call with *e set.
int look_purge(pid_t pid, enum software_allocator a, struct attach_result *result, struct err *e);

// Returns the call that look_purge makes, such as "malloc_trim(0)", or NULL if it makes no call.
const char *look_purge_text(enum software_allocator a);
