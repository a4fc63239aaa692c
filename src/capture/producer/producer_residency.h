// Measures how much a program uses its big blocks: how many pages of a block are resident, and how
// many of these pages are not all zeros. A block is measured when it is freed or resized, or at
// exit if it is still live. An HT_RESIDENCY record, which precedes the record of the release,
// contains the result. Some blocks are also measured while they are live, and have additional
// records.
//
// Blocks of HT_BIG_BYTES or more are kept in a table. A free reads one byte of a filter to check
// whether the table may contain the block. This check adds no branch to the fast path. All
// functions are lock-free. Only the kernel reads pages of the program, so an unreadable page causes
// an error instead of a signal.
#pragma once

#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    // Size of the filter, which has a byte for each 4 KiB page of 256 MiB. Pages whose addresses
    // differ by a multiple of 256 MiB share a byte.
    RESIDENCY_PLACES = 1 << 16,
    RESIDENCY_PAGE_BITS = 12,
    RESIDENCY_CLASSES = 64, // number of size classes, by power of two
    // Bits of each byte in the filter. RESIDENCY_COUNT masks the number of big blocks.
    // RESIDENCY_ALWAYS is set in all bytes after heaptape has attached to the process.
    RESIDENCY_COUNT = 127,
    RESIDENCY_ALWAYS = 128,
};

// Total cost of the measurements since the start or exec of the process, and number of measured
// blocks per size class. Initialize to zero.
struct producer_residency_cost {
    _Atomic uint64_t ticks;
    _Atomic uint32_t measured[RESIDENCY_CLASSES];
    // 1 if the buffer for page contents, or the buffer for page residency, is in use.
    _Atomic uint32_t reading, counting;
    // Time in ticks of the next measurement of live blocks, or UINT64_MAX during a measurement.
    _Atomic uint64_t due;
};

// Number of big blocks that start in a page, indexed by page number modulo RESIDENCY_PLACES. A
// count that has reached RESIDENCY_COUNT no longer changes.
extern _Atomic uint8_t producer_residency_filter[RESIDENCY_PLACES]
    __attribute__((visibility("hidden")));

// Returns a nonzero value if a big block may start at the address, or if heaptape has attached to
// the process.
static inline uint32_t producer_residency_hint(uint64_t address)
{
    return atomic_load_explicit(
        &producer_residency_filter[address >> RESIDENCY_PAGE_BITS & (RESIDENCY_PLACES - 1)],
        memory_order_relaxed);
}

// Returns a nonzero value if a big block may start at the address.
static inline uint32_t producer_residency_big_hint(uint64_t address)
{
    return producer_residency_hint(address) & RESIDENCY_COUNT;
}

// producer_residency_hint_always makes producer_residency_hint return a nonzero value for all
// addresses. Call it while nothing is recorded. producer_residency_forget drops all blocks.
void producer_residency_hint_always(void);
void producer_residency_forget(void);

struct producer_writer;

// Maps the memory for measuring, unless a parent has mapped it. Returns false if out of memory, or
// if the program's resource limits are too low.
bool producer_residency_start(void);

// Returns true if this process may be measured. `filters` is the member of struct spool_session.
bool producer_residency_allowed(uint32_t filters);

// Call these functions before and after the record of `ev` is written. `recorded` is false if the
// event itself is not recorded.
void producer_residency_before(const struct producer_writer *w, const struct event *ev,
                               bool recorded);
void producer_residency_after(const struct producer_writer *w, const struct event *ev);

// Measures the live blocks at intervals. Writes an HT_RESIDENCY_STEP record for each block whose
// use has changed.
void producer_residency_follow(const struct producer_writer *w);

// Call at exit. Measures the blocks that are still live.
void producer_residency_finish(const struct producer_writer *w);
