// Call sites of the allocator. Like the rest of the producer, this code does not allocate and is
// async-signal-safe.
//
// A site is a list of return addresses, from the wrapper's caller outwards. The addresses are found
// with the unwind tables of the loaded objects. If the list has a single address, the site's ID is
// that address. Otherwise the ID is a hash of the addresses, so that threads do not have to agree
// on IDs. The first thread that uses a site not defined in this process writes the definition
// (HT_FRAMES) into its own stream, before the record that refers to the site. Executable mappings
// that contain the addresses are recorded as they are discovered (HT_MODULE).
#pragma once

#include "capture/spool/spool.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct producer_writer;

// Maximum number of frames per site, at most SPOOL_MAX_DEPTH, or 0 if sites are not recorded.
// Constant after the process has joined its session.
extern uint32_t producer_depth __attribute__((visibility("hidden")));

// Mean number of bytes allocated between recorded stacks, or 0 if every stack is recorded.
extern uint64_t producer_sample_bytes __attribute__((visibility("hidden")));

// Call if an allocation of `size` bytes has used up producer_tls.stack_left. Returns true if the
// allocation's stack is recorded. Also draws the number of bytes until the next recorded stack.
bool producer_site_choose(uint64_t size) __attribute__((visibility("hidden")));

enum {
    PRODUCER_SEEN_SITES = 1 << 18, // maximum size
    PRODUCER_SEEN_FIRST = 1 << 10, // initial size
    PRODUCER_SEEN_LINE = 8,        // entries per cache line; an ID may be in any entry of its line
    PRODUCER_CONFIGURATIONS = 256,
    // Maximum number of known executable mappings. Addresses in other mappings are recorded without
    // their file.
    PRODUCER_MAX_RANGES = 2048,
};

// A range of executable addresses.
struct producer_range {
    uint64_t start, end;
    uint64_t file; // identifies the file; 0 if there is no file
    uint64_t bias; // start minus the offset in the file
    uint32_t scan; // number of the last scan that found the mapping
};

// A set of replaced ranges, and the value of unwind_generation for that set.
struct producer_configuration {
    uint64_t sum;
    uint32_t generation;
};

enum {
    PRODUCER_LINES_BYTES = 6144, // more than a line of /proc/self/maps with the longest path
    PRODUCER_PIECE_BYTES = 4096, // bytes read from an ELF file at once
};

// Data of a process image. Wiped in a fork child, which therefore defines its sites again.
struct producer_sites {
    // 1 while a thread is scanning the mappings. That thread owns the members below, except `seen`.
    _Atomic uint32_t scanning;
    // Value of spool_header.restarts when the sites in `seen` were defined.
    _Atomic uint32_t restarts;
    uint32_t n_ranges;
    uint32_t scans, misses; // number of scans, and of addresses found in no mapping
    _Atomic uint32_t age;   // value of unwind_age at the last check for unloaded objects
    uint32_t n_configurations;
    uint64_t configuration; // identifies the set of replaced ranges
    struct producer_configuration configurations[PRODUCER_CONFIGURATIONS];
    struct producer_range ranges[PRODUCER_MAX_RANGES]; // in ascending order
    // Buffers that may be too large for a thread's stack.
    char lines[PRODUCER_LINES_BYTES], text[CODEC_MAX_TEXT_BYTES];
    _Alignas(8) char piece[PRODUCER_PIECE_BYTES];
    _Atomic uint32_t n_seen, growing;
    // Index mask of `seen`, without the bits of PRODUCER_SEEN_FIRST - 1. A fork child's wiped copy
    // contains 0, which is therefore a valid mask.
    _Atomic uint32_t seen_mask;
    // IDs of defined sites. If an ID has been replaced by other IDs, the next use of its site
    // defines the site again.
    _Alignas(64) _Atomic uint64_t seen[PRODUCER_SEEN_SITES];
};

// Enables recording of sites with up to `depth` frames.
void producer_sites_start(uint32_t depth, uint64_t sample_bytes);

// Disables recording of sites. No other thread may be running.
void producer_sites_stop(void);

// Returns the site of a call, a nonzero number of CODEC_NOTE_BITS bits, and defines the site in the
// stream if necessary. `caller` is the wrapper's return address. `frame` is the frame of a function
// called by the wrapper; the chain of frame pointers from there must lead to the wrapper's frame.
// If the thread has no state, the site is `caller`.
uint64_t producer_site_find(const struct producer_writer *w, const void *caller, const void *frame);

// Replaces the frames of Python's evaluator with the Python functions that the thread executes, and
// records the names of these functions, `depth` frames at most. `stack` must be the result of
// unwind_walk for `c`, with a cache and without a window.
struct unwind_cursor;
struct unwind_stack;
void producer_python_splice(const struct producer_writer *w, const struct unwind_cursor *c,
                            struct unwind_stack *stack, uint32_t depth);

// Marks the site `id` as defined.
void producer_site_add(struct producer_sites *sites, uint64_t id);

// Returns true if the ID is in another entry of the cache line that contains entry `place`.
bool producer_site_in_line(const struct producer_sites *sites, uint64_t place, uint64_t id)
    __attribute__((visibility("hidden")));

static inline uint64_t producer_site_place(const struct producer_sites *sites, uint64_t id)
{
    uint32_t mask =
        atomic_load_explicit(&sites->seen_mask, memory_order_relaxed) | (PRODUCER_SEEN_FIRST - 1);
    return (id ^ id >> 16) & mask;
}

// Returns true if the site has been defined. May return false for a defined site while the table
// grows.
static inline bool producer_site_seen(const struct producer_sites *sites,
                                      const struct spool_header *spool, uint64_t id)
{
    if (atomic_load_explicit(&sites->restarts, memory_order_relaxed) !=
        atomic_load_explicit(&spool->restarts, memory_order_relaxed))
        return false;
    uint64_t place = producer_site_place(sites, id);
    return atomic_load_explicit(&sites->seen[place], memory_order_relaxed) == id ||
           producer_site_in_line(sites, place, id);
}

// Records a call that allocated a block of `count` elements, together with its site. Returns false
// if the site is not defined or the block does not fit in the one-word form. The caller must then
// use producer_record; in that case nothing has changed.
bool producer_put_with_stack(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                             const void *caller, const void *frame)
    __attribute__((visibility("hidden")));

// Like producer_put_with_stack, for a calloc whose count is not 1. Works whether or not the stack
// of the call is recorded.
bool producer_put_calloc(uint64_t count, uint64_t size, uint64_t address, const void *caller,
                         const void *frame) __attribute__((visibility("hidden")));

// A line of /proc/self/maps.
struct producer_mapping {
    uint64_t start, end;
    uint64_t offset; // offset in the file
    uint64_t device, inode;
    bool executable;
    bool grows;       // set for the main thread's stack
    const char *path; // in producer_sites.lines; "" if the mapping has no path
};

// The caller of each of the following functions must own `sites->scanning`.

// Finds the mapping that contains an address. Returns false if there is no such mapping or /proc
// cannot be read.
bool producer_maps_find(struct producer_sites *sites, uint64_t address, struct producer_mapping *m);

// Returns true if the address lies in a known executable mapping.
bool producer_maps_has(const struct producer_sites *sites, uint64_t address);

// If the process or its parent unloaded objects before the first site, the earlier mappings are
// unknown, so starts a new generation of sites. Increments unwind_age.
void producer_maps_start(struct producer_sites *sites);

// Reads the mappings and records new executable mappings in the stream.
void producer_maps_scan(struct producer_sites *sites, const struct producer_writer *w);
