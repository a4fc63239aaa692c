// What a plan is made of: streams of 64-bit words, one stream a thread, read strictly forwards by the player.
//
//   bits    0-6   7        8-31    32-63
//   a call  op    publish  place   size
//
// and then the words that plan_extra_words() says. `place` is an entry of the player's table of blocks; entry 0 is NULL
// for ever. A place or size that does not fit stands in the two words after a PLAN_WIDE, which comes first and has the
// op in its place field. What is no call uses the fields as said below.
#ifndef HEAPTAPE_PLAN_OPS_H
#define HEAPTAPE_PLAN_OPS_H

#include "event/event.h"

#include <stdbool.h>
#include <stdint.h>

// Every event kind by its wire number, so that a new kind without a case in the player does not compile, and the
// player's own ops in numbers that kinds do not have (a clash does not compile either).
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields) PLAN_##SYMBOL = wire,
enum plan_op {
    PLAN_STOP = 0,     // the end of the stream
    PLAN_WAIT = 1,     // size field: a thread; extra: the word number that this thread must have published
    PLAN_SAMPLE = 2,   // bits 8-63: calls since the last SAMPLE or COUNT; extra: change of live bytes since (signed).
                       // Memory is looked at
    PLAN_COUNT = 3,    // as PLAN_SAMPLE, but memory is not looked at
    PLAN_HOLD = 110,   // all threads stand still here: where the blocks are is noted
    PLAN_MORE = 111,   // the end of a thread's part of a window: the stream goes on in a later one
    PLAN_STATS = 116,  // the allocator's own statistics are looked at
    PLAN_TRIM = 117,   // the allocator is told to give memory back
    PLAN_SWITCH = 118, // all threads in one: the ops that follow are those of the thread in bits 9-63
    PLAN_PACE = 119,   // bits 8-63: nanoseconds after the start before which nobody goes on
    HT_EVENT_TABLE(HT_X) PLAN_CALLOC_MANY = 121, // calloc with a count other than 1. Extra: count
    PLAN_REALLOCARRAY_NEW = 122,                 // of NULL. Extra: count
    PLAN_REALLOC_FREE = 123,                     // realloc(p, 0) that freed p
    PLAN_REALLOC_NEW = 124,                      // of NULL
    PLAN_SKIPPED = 125,                          // an op of the workload that the player does not do
    PLAN_WIDE = 126,                             // bits 8-15: the op. Extra: place, size, and the op's own
    PLAN_JUMP = 127,                             // bits 8-63: number of the word where the stream goes on
    PLAN_OP_LIMIT = 128,
};
#undef HT_X

#define PLAN_PUBLISH     0x80u  // other threads wait for this op: say when it is done
#define PLAN_SWITCH_OVER 0x100u // of SWITCH: the thread before has ended

enum {
    PLAN_PLACE_BITS = 24,
    PLAN_SIZE_BITS = 32,
    PLAN_PLACE_AT = 8,
    PLAN_SIZE_AT = PLAN_PLACE_AT + PLAN_PLACE_BITS,
    PLAN_MAX_OP_WORDS = 5, // WIDE, place, size, and reallocarray's two
    PLAN_AHEAD_WORDS = 16, // how far the player looks ahead: so many words follow the last stream
};
_Static_assert(PLAN_SIZE_AT + PLAN_SIZE_BITS == 64, "a call is one word");

static inline enum plan_op plan_op_of(uint64_t word)
{
    return (enum plan_op)(word & (PLAN_OP_LIMIT - 1));
}

static inline uint32_t plan_place_of(uint64_t word)
{
    return (uint32_t)(word >> PLAN_PLACE_AT) & ((1u << PLAN_PLACE_BITS) - 1);
}

static inline uint64_t plan_size_of(uint64_t word)
{
    return word >> PLAN_SIZE_AT;
}

static inline uint64_t plan_word(enum plan_op op, uint64_t place, uint64_t size)
{
    return (uint64_t)op | place << PLAN_PLACE_AT | size << PLAN_SIZE_AT;
}

// Words after the op's first one, PLAN_WIDE's place and size not counted. Aligned calls: the alignment. realloc and
// reallocarray: the bytes that the block had, after the count.
static inline unsigned plan_extra_words(enum plan_op op)
{
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields) [wire] = ((fields)&HT_F_ALIGN) != 0,
    static const uint8_t by_fields[PLAN_OP_LIMIT] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X
    switch ((unsigned)op) {
    case PLAN_WAIT:
    case PLAN_SAMPLE:
    case PLAN_COUNT:
    case PLAN_CALLOC_MANY:
    case PLAN_REALLOCARRAY_NEW:
    case PLAN_REALLOC:
        return 1;
    case PLAN_REALLOCARRAY:
    case PLAN_PREEXISTING: // its alignment, at least 1; the kind that makes it
        return 2;
    default:
        return by_fields[op];
    }
}

// Words of the op that starts with `word`.
static inline unsigned plan_op_words(uint64_t word)
{
    enum plan_op op = plan_op_of(word);
    return op == PLAN_WIDE ? 3 + plan_extra_words(plan_op_of(word >> 8)) : 1 + plan_extra_words(op);
}

// Does it stand for an op of the workload? The others are the plan's own.
static inline bool plan_is_numbered(enum plan_op op)
{
    return op > PLAN_COUNT && op != PLAN_JUMP && op != PLAN_MORE && op != PLAN_HOLD &&
           (op < PLAN_STATS || op > PLAN_PACE);
}

#endif
