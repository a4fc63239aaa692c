// Call sites: who called the allocator. Malloc-free and async-signal-safe, as all of the producer.
//
// A site is a list of return addresses, from the wrapper's caller outwards, found by the unwind tables of the loaded objects. Its id
// is the address when it is one, else a hash of them, so that nobody has to hand ids out: whoever comes first with a site that the process has not
// defined yet writes its definition (HT_FRAMES) into its own stream, before the record that names it. The executable
// mappings that the addresses lie in are recorded too (HT_MODULE), as they become known.
#ifndef HEAPTAPE_CAPTURE_PRODUCER_SITE_H
#define HEAPTAPE_CAPTURE_PRODUCER_SITE_H

#include "capture/spool/spool.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct producer_process;
struct producer_thread;
struct producer_stream;

// Frames of a site that are asked for, at most SPOOL_MAX_DEPTH; 0: sites are not recorded. Constant once the process
// has joined its session.
extern uint32_t producer_depth __attribute__((visibility("hidden")));

// Bytes allocated for each stack that is recorded, on average; 0: the stacks of all calls are.
extern uint64_t producer_sample_bytes __attribute__((visibility("hidden")));

// For a call that has used up producer_tls.stack_left: is its stack recorded? Draws the bytes up to the next one.
bool producer_site_chosen(uint64_t size) __attribute__((visibility("hidden")));

enum {
    PRODUCER_SEEN_SITES = 1 << 16, // at most
    PRODUCER_SEEN_FIRST = 1 << 10, // at first
    PRODUCER_SEEN_LINE = 8,        // of them: an id may be in any place of its cache line
    PRODUCER_MAX_RANGES =
        2048, // executable mappings; what lies in more is recorded, but without its file
};

// A piece of executable memory.
struct producer_range {
    uint64_t start, end;
    uint64_t identity; // of the file, and of what part of it is mapped there
};

enum {
    PRODUCER_LINES_BYTES = 6144, // more than a line of /proc/self/maps with the longest path
    PRODUCER_PIECE_BYTES = 4096, // of an ELF file, read at once
};

// Of a process image; wiped in a fork child, which defines its sites anew.
struct producer_sites {
    _Atomic uint32_t
        scanning; // a thread is looking at the mappings: what follows but for `seen` is its own
    _Atomic uint32_t restarts; // of the spool, when what is known here was written
    uint32_t n_ranges;
    uint32_t scans, misses; // times that was done; addresses that lay in no mapping
    struct producer_range ranges[PRODUCER_MAX_RANGES]; // in ascending order
    // Buffers, since a thread's stack may be small.
    char lines[PRODUCER_LINES_BYTES], text[CODEC_MAX_TEXT_BYTES];
    _Alignas(8) char piece[PRODUCER_PIECE_BYTES];
    _Atomic uint32_t n_seen, growing;
    _Atomic uint32_t
        seen_mask; // of places, but for the bits of PRODUCER_SEEN_FIRST - 1, since a fork child begins with 0
    // Ids that have been defined; one that has been replaced by others is defined again when it comes again.
    _Alignas(64) _Atomic uint64_t seen[PRODUCER_SEEN_SITES];
};

// Makes the process able to record sites of up to `depth` frames.
void producer_sites_start(uint32_t depth, uint64_t sample_bytes);

// The opposite, when no other thread runs.
void producer_sites_stop(void);

// The site of a call, which it defines in the stream if that has not been done: a number of CODEC_NOTE_BITS, never 0.
// `caller` is the wrapper's return address, and the frame pointers lead from `frame`, of a function that the wrapper called,
// to the wrapper's. The thread may be one without state: then the site is the caller.
uint64_t producer_site_find(struct producer_process *p, struct producer_thread *t,
                            struct producer_stream *stream, const void *caller, const void *frame);

// The id stands for a site that has been defined.
void producer_site_add(struct producer_sites *sites, uint64_t id);

// Is it in another place of its cache line?
bool producer_site_near(const struct producer_sites *sites, uint64_t place, uint64_t id)
    __attribute__((visibility("hidden")));

static inline uint64_t producer_site_place(const struct producer_sites *sites, uint64_t id)
{
    uint32_t mask =
        atomic_load_explicit(&sites->seen_mask, memory_order_relaxed) | (PRODUCER_SEEN_FIRST - 1);
    return (id ^ id >> 16) & mask;
}

// Has the site been defined? While the table grows, one that has may be missed.
static inline bool producer_site_seen(const struct producer_sites *sites,
                                      const struct spool_header *spool, uint64_t id)
{
    if (atomic_load_explicit(&sites->restarts, memory_order_relaxed) !=
        atomic_load_explicit(&spool->restarts, memory_order_relaxed))
        return false;
    uint64_t place = producer_site_place(sites, id);
    return atomic_load_explicit(&sites->seen[place], memory_order_relaxed) == id ||
           producer_site_near(sites, place, id);
}

// The words of a call that took a block of `count` elements, when its site is known and its record is the one-word form.
// False: nothing was done and producer_record must be called.
bool producer_put_called(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                         const void *caller, const void *frame)
    __attribute__((visibility("hidden")));

// The same of a calloc whose count is not 1, whether its stack is to be recorded or not.
bool producer_put_counted(uint64_t count, uint64_t size, uint64_t address, const void *caller,
                          const void *frame) __attribute__((visibility("hidden")));

// A mapping of the process, as in /proc/self/maps.
struct producer_mapping {
    uint64_t start, end;
    uint64_t offset; // in the file
    uint64_t device, inode;
    bool executable;
    bool grows;       // the main thread's stack
    const char *path; // "" when there is none; of the buffer in struct producer_sites
};

// All of these want `sites->scanning` to be the caller's.

// The mapping that an address lies in. False: none, or /proc cannot be read.
bool producer_maps_find(struct producer_sites *sites, uint64_t address, struct producer_mapping *m);

// Is the address in one of the executable mappings that are known?
bool producer_maps_has(const struct producer_sites *sites, uint64_t address);

// Looks at the mappings and records the executable ones that are new, into the stream.
void producer_maps_scan(struct producer_sites *sites, struct producer_process *p,
                        struct producer_thread *t, struct producer_stream *stream);

#endif
