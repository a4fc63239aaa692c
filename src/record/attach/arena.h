// Layout of glibc's malloc state, as in malloc/malloc.c and malloc/arena.c. The state is not
// exported, but two invariants identify it: an empty bin of an arena points to itself, and the
// parameters contain the limits of the thread caches.
#pragma once

#include "record/attach/remote.h"

#include <stddef.h>

enum {
    ARENA_BINS = 127,
    ARENA_FASTBINS = 10,
    ARENA_CACHED_SIZES = 64,
    ARENA_MAX = 8192, // maximum number of arenas
    ARENA_NONCONTIGUOUS = 2,
};

// Maximum size and alignment of a heap outside the main arena.
#define ARENA_HEAP_BYTES (64ull << 20)
#define ARENA_SIZE_FLAGS 7ull
#define ARENA_PREV_INUSE 1ull
#define ARENA_MMAPPED    2ull
#define ARENA_NON_MAIN   4ull

struct arena {
    int32_t mutex, flags, have_fastchunks, pad;
    uint64_t fastbins[ARENA_FASTBINS], top, last_remainder, bins[2 * ARENA_BINS], binmap[2], next,
        next_free, attached_threads, system_mem, max_system_mem;
};

struct arena_heap {
    uint64_t arena, prev, size, mprotect_size, pagesize, pad;
};

struct arena_parameters {
    uint64_t trim_threshold, top_pad, mmap_threshold, arena_test, arena_max, thp_pagesize,
        hp_pagesize;
    int32_t hp_flags, n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold, pad;
    uint64_t mmapped_mem, max_mmapped_mem, sbrk_base, cached_sizes, cached_max, cached_count,
        unsorted_limit;
};

struct arena_cache {
    uint16_t counts[ARENA_CACHED_SIZES];
    uint64_t entries[ARENA_CACHED_SIZES];
};

_Static_assert(sizeof(struct arena) == 2200 && sizeof(struct arena_heap) == 48 &&
                   sizeof(struct arena_parameters) == 136 && sizeof(struct arena_cache) == 640,
               "as gdb prints them for glibc 2.36");

// Copy of libc's variables. The caller must free `bytes`.
struct arena_data {
    uint64_t start, end;
    uint8_t *bytes;
};

// Returns true if this header describes the layout in this version of glibc, for example "2.36".
bool arena_is_known(const char *version);

// Returns 0, -ENOMEM or -EACCES.
int arena_read_data(struct arena_data *d, const struct remote *r);

// Returns the number of possible addresses of malloc's parameters, and sets *p to the parameters at
// the last of these addresses.
unsigned arena_find_parameters(const struct arena_data *d, struct arena_parameters *p);

// Returns the address that the links of an empty bin contain.
static inline uint64_t arena_bin(uint64_t arena, unsigned i)
{
    return arena + offsetof(struct arena, bins) + 16ull * i - 16;
}

static inline bool arena_has_empty_bin(const struct arena *a, uint64_t at)
{
    unsigned i = 0;
    while (i < ARENA_BINS && a->bins[2 * i] != arena_bin(at, i))
        i++;
    return i < ARENA_BINS;
}
