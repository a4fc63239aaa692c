// The ops of a plan: a stream of 64-bit words for each thread, which the player reads strictly forwards.
//
//   bits    0-6   7        8-31    32-63
//   a call  op    publish  entry   size
//
// followed by plan_extra_words() more words. `entry` is an index into the player's slot table, which holds the address
// of each live block; entry 0 is always NULL. If an entry or size does not fit, the op begins with a PLAN_WIDE word:
// the op is in its entry field, and the next two words are entry and size. Ops that are not calls use the fields as
// described below.
#ifndef HEAPTAPE_PLAN_OPS_H
#define HEAPTAPE_PLAN_OPS_H

#include "trace/event/event.h"

#include <stdbool.h>
#include <stdint.h>

// The calls of the malloc API keep the wire number of their event kind, so a kind added to the event table does not
// compile without a case in the player. Events of other classes (mappings, threads, marks) are no ops of their own.
#define PLAN_IF_ALLOC(...)  __VA_ARGS__
#define PLAN_IF_FREE(...)   __VA_ARGS__
#define PLAN_IF_RESIZE(...) __VA_ARGS__
#define PLAN_IF_HALF(...)
#define PLAN_IF_MAP(...)
#define PLAN_IF_THREAD(...)
#define PLAN_IF_MARK(...)
#define PLAN_IF_POOL(...)
#define PLAN_IF_META(...)

// The player's own ops have the numbers from PLAN_OWN_FIRST to PLAN_OWN_LAST, which no call of the event table may
// have, and 0, so that zeroed memory is a STOP. Those before PLAN_FIRST_NUMBERED stand between the ops of the workload;
// those from it on each stand for one of them.
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    PLAN_IF_##class(PLAN_##SYMBOL = wire, )
enum plan_op {
    PLAN_STOP = 0, // end of the stream
    HT_EVENT_TABLE(HT_X) PLAN_OWN_FIRST = 64,
    // A dependency. Size field: a thread; extra: the word number which that thread must have published
    PLAN_WAIT = PLAN_OWN_FIRST,
    PLAN_COUPLE, // as PLAN_WAIT, but not a dependency of the program's: it keeps threads as close as they were recorded
    PLAN_SAMPLE, // bits 8-63: calls since the last SAMPLE or COUNT; extra: change of live bytes since then (signed).
    // Takes a sample of resident memory
    PLAN_COUNT, // as PLAN_SAMPLE, but without a sample
    PLAN_STATS, // query the allocator's own statistics
    PLAN_TRIM,  // ask the allocator to return free memory to the kernel
    PLAN_SNAPSHOT, // while all threads stand still: copy the slot table, which tells where each block is
    // Bits 8-63: 4 KiB pages that the program used of the block that the next call allocates or resizes, of those that belong to
    // it alone; extra: KiB used from its start on, and from bit 32 on how many of the pages are left to TOUCH_LATE
    PLAN_TOUCH,
    // More of the pages of the entry's block. Size field: up to this one of those used, by number; extra: from this one, from bit
    // 32 on pages used, and in bit 63 whether the block is from calloc; pages used at the start, and from bit 32 on pages of the
    // block
    PLAN_TOUCH_LATE,
    PLAN_PACE, // bits 8-63: nanoseconds after the start. At a pace the thread does not go on before that; else the
    // allocator's clock is set to it
    PLAN_SWITCH, // all threads in one: the following ops were recorded in the thread in bits 9-63
    PLAN_JUMP,   // bits 8-63: words to skip
    PLAN_NEXT_SEGMENT, // end of the thread's ops in this window; the stream goes on in a later window or ends
    PLAN_FIRST_NUMBERED,
    PLAN_CALLOC_MANY = PLAN_FIRST_NUMBERED, // calloc with a count other than 1. Extra: count
    PLAN_REALLOCARRAY_NEW,                  // of NULL. Extra: count
    PLAN_REALLOC_FREE,                      // realloc(p, 0) that freed p
    PLAN_REALLOC_NEW,                       // of NULL
    PLAN_START_THREAD,                      // size field: the thread
    PLAN_SKIPPED, // an op of the workload for which the player makes no call
    PLAN_WIDE,    // bits 8-15: the op. Extra: entry, size, and the op's own
    PLAN_OWN_LAST = PLAN_WIDE,
    PLAN_OP_LIMIT = 128,
};
#undef HT_X

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    PLAN_IF_##class(                                                                               \
        _Static_assert((wire) > PLAN_STOP && (wire) < PLAN_OP_LIMIT &&                             \
                           ((wire) < PLAN_OWN_FIRST || (wire) > PLAN_OWN_LAST),                    \
                       "an event kind has the number of one of the player's own ops");)
HT_EVENT_TABLE(HT_X)
#undef HT_X

#define PLAN_PUBLISH       0x80u  // other threads depend on this op: publish when it is done
#define PLAN_SWITCH_EXITED 0x100u // of SWITCH: the thread of the ops before has exited

enum {
    PLAN_ENTRY_BITS = 24,
    PLAN_SIZE_BITS = 32,
    PLAN_ENTRY_AT = 8,
    PLAN_SIZE_AT = PLAN_ENTRY_AT + PLAN_ENTRY_BITS,
    PLAN_MAX_OP_WORDS = 5, // WIDE, entry, size, and reallocarray's two
    PLAN_AHEAD_WORDS =
        16, // the player prefetches this far ahead, so this many words follow the last stream
};
_Static_assert(PLAN_SIZE_AT + PLAN_SIZE_BITS == 64, "a call is one word");

static inline enum plan_op plan_op_of(uint64_t word)
{
    return (enum plan_op)(word & (PLAN_OP_LIMIT - 1));
}

static inline uint32_t plan_entry_of(uint64_t word)
{
    return (uint32_t)(word >> PLAN_ENTRY_AT) & ((1u << PLAN_ENTRY_BITS) - 1);
}

static inline uint64_t plan_size_of(uint64_t word)
{
    return word >> PLAN_SIZE_AT;
}

static inline uint64_t plan_word(enum plan_op op, uint64_t entry, uint64_t size)
{
    return (uint64_t)op | entry << PLAN_ENTRY_AT | size << PLAN_SIZE_AT;
}

// Words after the op's first one, not counting PLAN_WIDE's entry and size. Of aligned calls: the alignment. Of realloc
// and reallocarray: the old size of the block, after the count.
static inline unsigned plan_extra_words(enum plan_op op)
{
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    PLAN_IF_##class([wire] = ((fields)&HT_F_ALIGN) != 0, )
    static const uint8_t by_fields[PLAN_OP_LIMIT] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X
    switch ((unsigned)op) {
    case PLAN_WAIT:
    case PLAN_COUPLE:
    case PLAN_SAMPLE:
    case PLAN_COUNT:
    case PLAN_TOUCH:
    case PLAN_CALLOC_MANY:
    case PLAN_REALLOCARRAY_NEW:
    case PLAN_REALLOC:
        return 1;
    case PLAN_TOUCH_LATE:
    case PLAN_REALLOCARRAY:
    case PLAN_PREEXISTING: // its alignment, at least 1; the kind of call that allocates it
        return 2;
    default:
        return by_fields[op];
    }
}

// Words of the op whose first word is `word`.
static inline unsigned plan_op_words(uint64_t word)
{
    enum plan_op op = plan_op_of(word);
    return op == PLAN_WIDE ? 3 + plan_extra_words(plan_op_of(word >> 8)) : 1 + plan_extra_words(op);
}

// The kind of call that a call's op makes; 0 of other ops.
static inline unsigned plan_kind_of(unsigned op)
{
    switch (op) {
    case PLAN_CALLOC_MANY:
        return HT_CALLOC;
    case PLAN_REALLOCARRAY_NEW:
        return HT_REALLOCARRAY;
    case PLAN_REALLOC_FREE:
    case PLAN_REALLOC_NEW:
        return HT_REALLOC;
    default:
        return op < PLAN_OWN_FIRST ? op : 0;
    }
}

// Does it stand for an op of the workload? Only these count in op numbers.
static inline bool plan_is_numbered(enum plan_op op)
{
    return op != PLAN_STOP && (op < PLAN_OWN_FIRST || op >= PLAN_FIRST_NUMBERED);
}

#endif
