// How much of its big blocks a program uses: how many pages of a block are resident, and how many of those hold anything,
// measured when the block is freed or resized, and at exit for those that are still live. A HT_RESIDENCY record before
// the release says so.
// Of some blocks records say in between how much of them is used so far.
//
// Blocks of HT_BIG_BYTES and more stand in a table. A release looks at one byte to see that its block is none of
// them, which costs the fast path no branch of its own. Everything is lock-free, and no page of the program's is read
// but by the kernel: pages that it may not read cost an error and not a signal.
#ifndef HEAPTAPE_CAPTURE_PRODUCER_RESIDENCY_H
#define HEAPTAPE_CAPTURE_PRODUCER_RESIDENCY_H

#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    RESIDENCY_PLACES =
        1 << 16, // of the filter: a byte for each page of 256 MiB, above which they are shared
    RESIDENCY_PAGE_BITS = 12,
    RESIDENCY_CLASSES = 64, // of sizes, by power of two
};

// Of a process image: what measuring has cost so far, and how many blocks of each class were measured. All zero at first.
struct producer_residency_cost {
    _Atomic uint64_t ticks;
    _Atomic uint32_t measured[RESIDENCY_CLASSES];
    // Somebody uses the buffer for the contents of pages, or the one for their residency.
    _Atomic uint32_t reading, counting;
    _Atomic uint64_t
        due; // when live blocks are to be measured next, in ticks; UINT64_MAX: they are being measured
};

// Big blocks that begin in a page, by its number modulo RESIDENCY_PLACES; 255: there were ever so many.
extern _Atomic uint8_t producer_residency_filter[RESIDENCY_PLACES]
    __attribute__((visibility("hidden")));

// 0 unless there may be a big block at the address.
static inline uint32_t producer_residency_hint(uint64_t address)
{
    return atomic_load_explicit(
        &producer_residency_filter[address >> RESIDENCY_PAGE_BITS & (RESIDENCY_PLACES - 1)],
        memory_order_relaxed);
}

// From now on every release counts as that of a big block; or nothing is known of any block any more.
void producer_residency_hint_always(void);
void producer_residency_forget(void);

struct producer_process;
struct producer_thread;
struct producer_stream;

// Maps what measuring needs, unless a parent has done so. False: there is no memory, or the program's limits leave little.
bool producer_residency_start(void);

// May the process be measured? `filters`: system call filters that it is known to pass, as the session says.
bool producer_residency_allowed(uint32_t filters);

// Before and after the record of `ev` is put; `recorded`: false when the event itself is not.
void producer_residency_before(struct producer_process *p, struct producer_thread *t,
                               struct producer_stream *stream, const struct event *ev,
                               bool recorded);
void producer_residency_after(struct producer_process *p, struct producer_thread *t,
                              const struct event *ev);

// Now and then: measures the live blocks. Each of which more or less is used than before has a HT_RESIDENCY_STEP record.
void producer_residency_follow(struct producer_process *p, struct producer_thread *t,
                               struct producer_stream *stream);

// At the end of the process: the blocks that are still live.
void producer_residency_finish(struct producer_process *p, struct producer_thread *t,
                               struct producer_stream *stream);

#endif
