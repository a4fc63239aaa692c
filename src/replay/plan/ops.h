// The ops of a plan: for each thread, a stream of 64-bit words, which the player reads strictly in
// sequence.
//
//   bits    0-6   7        8-31    32-63
//   a call  op    publish  entry   size
//
// The op's extra words follow, if there are any. `entry` is an index into the player's slot table,
// which holds the address of each live block; entry 0 is always NULL. If the entry or size does not
// fit, the op begins with a PLAN_WIDE word: the actual op is in its entry field, and the next two
// words are entry and size. Ops that are not calls use the fields as described at PLAN_OTHER_OPS.
#pragma once

#include "trace/event/event.h"

#include <stdbool.h>
#include <stdint.h>

// The tables of ops. Each op is defined by its row here and by the macro PLAY_handler in
// replay/player/loop.c, which executes the op. The row alone determines how many words the plan
// writes, checks and skips, and how many words the player consumes.
//
// X(number, SYMBOL, kind, numbered, words, handler)
//   number    number in the lowest bits of the word. For a call of the malloc API, the number is
//             the wire number of its event kind
//   SYMBOL    name in enum plan_op, without PLAN_
//   kind      kind of call that the op makes, or 0 if it makes no call
//   numbered  1 if the op replays an op of the workload and counts in op numbers, else 0
//   words     number of extra words after the op's first word, not counting PLAN_WIDE's entry and
//             size
//   handler   name of the macro that executes the op, without PLAY_
// clang-format off

// Calls. Extra words: the alignment of aligned calls; the count of calloc and reallocarray; then
// the old size of a block being resized. For PREEXISTING: the alignment, at least 1, and the kind
// of call that allocates the block.
#define PLAN_CALL(X, SYMBOL, words, handler) X(HT_##SYMBOL, SYMBOL, HT_##SYMBOL, 1, words, handler)
#define PLAN_CALLS(X) \
    PLAN_CALL(X, MALLOC,                        0, MALLOC) \
    PLAN_CALL(X, FREE,                          0, FREE) \
    PLAN_CALL(X, CALLOC,                        0, CALLOC) \
    X(77, CALLOC_MANY, HT_CALLOC,            1, 1, CALLOC_MANY) \
    PLAN_CALL(X, REALLOC,                       1, REALLOC) \
    X(80, REALLOC_NEW, HT_REALLOC,           1, 0, REALLOC_NEW) \
    X(79, REALLOC_FREE, HT_REALLOC,          1, 0, REALLOC_FREE) \
    PLAN_CALL(X, REALLOCARRAY,                  2, REALLOCARRAY) \
    X(78, REALLOCARRAY_NEW, HT_REALLOCARRAY, 1, 1, REALLOCARRAY_NEW) \
    PLAN_CALL(X, VALLOC,                        0, ALLOCATE) \
    PLAN_CALL(X, PVALLOC,                       0, ALLOCATE) \
    PLAN_CALL(X, NEW,                           0, ALLOCATE) \
    PLAN_CALL(X, NEW_ARRAY,                     0, ALLOCATE) \
    PLAN_CALL(X, NEW_NOTHROW,                   0, ALLOCATE_NOTHROW) \
    PLAN_CALL(X, NEW_ARRAY_NOTHROW,             0, ALLOCATE_NOTHROW) \
    PLAN_CALL(X, MEMALIGN,                      1, ALLOCATE_ALIGNED) \
    PLAN_CALL(X, ALIGNED_ALLOC,                 1, ALLOCATE_ALIGNED) \
    PLAN_CALL(X, POSIX_MEMALIGN,                1, POSIX_MEMALIGN) \
    PLAN_CALL(X, NEW_ALIGNED,                   1, NEW_ALIGNED) \
    PLAN_CALL(X, NEW_ARRAY_ALIGNED,             1, NEW_ALIGNED) \
    PLAN_CALL(X, NEW_ALIGNED_NOTHROW,           1, NEW_ALIGNED_NOTHROW) \
    PLAN_CALL(X, NEW_ARRAY_ALIGNED_NOTHROW,     1, NEW_ALIGNED_NOTHROW) \
    PLAN_CALL(X, DELETE,                        0, DEALLOCATE) \
    PLAN_CALL(X, DELETE_ARRAY,                  0, DEALLOCATE) \
    PLAN_CALL(X, FREE_SIZED,                    0, DEALLOCATE_SIZED) \
    PLAN_CALL(X, DELETE_SIZED,                  0, DEALLOCATE_SIZED) \
    PLAN_CALL(X, DELETE_ARRAY_SIZED,            0, DEALLOCATE_SIZED) \
    PLAN_CALL(X, DELETE_NOTHROW,                0, DEALLOCATE_NOTHROW) \
    PLAN_CALL(X, DELETE_ARRAY_NOTHROW,          0, DEALLOCATE_NOTHROW) \
    PLAN_CALL(X, DELETE_ALIGNED,                1, DEALLOCATE_ALIGNED) \
    PLAN_CALL(X, DELETE_ARRAY_ALIGNED,          1, DEALLOCATE_ALIGNED) \
    PLAN_CALL(X, FREE_ALIGNED_SIZED,            1, FREE_ALIGNED_SIZED) \
    PLAN_CALL(X, DELETE_SIZED_ALIGNED,          1, DEALLOCATE_SIZED_ALIGNED) \
    PLAN_CALL(X, DELETE_ARRAY_SIZED_ALIGNED,    1, DEALLOCATE_SIZED_ALIGNED) \
    PLAN_CALL(X, DELETE_ALIGNED_NOTHROW,        1, DEALLOCATE_ALIGNED_NOTHROW) \
    PLAN_CALL(X, DELETE_ARRAY_ALIGNED_NOTHROW,  1, DEALLOCATE_ALIGNED_NOTHROW) \
    PLAN_CALL(X, PREEXISTING,                   2, PREEXISTING)

// The player's own ops. Number 0 is STOP, so that zeroed memory reads as a STOP.
//   WAIT          waits until another thread has published a word number. The size field contains
//                 the thread, the extra word contains the word number
//   COUPLE        like WAIT, but keeps threads as close together as when they were recorded. If the
//                 size field contains the thread itself, waits until the number of exited threads
//                 has reached the extra word
//   SAMPLE        samples resident memory. Bits 8-63 contain the number of calls since the last
//                 SAMPLE or COUNT, the extra word the change in live bytes since then (signed)
//   COUNT         like SAMPLE, but without sampling memory
//   STATS         queries the allocator's own statistics
//   TRIM          asks the allocator to return free memory to the kernel
//   SNAPSHOT      copies the slot table while no other thread is running
//   TOUCH         applies to the next call's block. Bits 8-63 contain the number of pages that the
//                 program used, among the 4 KiB pages that belong only to the block. The low 32
//                 bits of the extra word contain the KiB used contiguously from the start of the
//                 block; the high 32 bits, the number of pages that are left to a TOUCH_LATE
//   TOUCH_LATE    writes to more pages of the entry's block: a range of its used pages. The size
//                 field contains the end of the range. The low 32 bits of the first extra word
//                 contain the start of the range; the bits above them, the number of used pages.
//                 Bit 63 is set if the block is from calloc. The low 32 bits of the second extra
//                 word contain the number of pages used at the start of the block; the high 32
//                 bits, the number of pages in the block
//   PACE          bits 8-63 contain nanoseconds since the start. A paced thread sleeps until then.
//                 If there is no pace, the op sets the allocator's clock to that time
//   SWITCH        used when one thread plays all ops. Bits 9-63 contain the recorded thread of the
//                 following ops
//   JUMP          bits 8-63 contain the number of words to skip
//   NEXT_SEGMENT  ends the thread's ops in this window. The stream continues in a later window or
//                 ends here
//   START_THREAD  starts the thread in the size field. The entry field contains the number of
//                 threads that must exit first
//   SKIPPED       represents an op of the workload for which the player makes no call
//   WIDE          bits 8-15 contain the actual op. The extra words are entry and size, followed by
//                 the extra words of the actual op
#define PLAN_OTHER_OPS(X) \
    X(64, WAIT,         0, 0, 1, WAIT) \
    X(65, COUPLE,       0, 0, 1, COUPLE) \
    X(66, SAMPLE,       0, 0, 1, SAMPLE) \
    X(67, COUNT,        0, 0, 1, COUNT) \
    X(68, STATS,        0, 0, 0, STATS) \
    X(69, TRIM,         0, 0, 0, TRIM) \
    X(74, SWITCH,       0, 0, 0, SWITCH) \
    X(71, TOUCH,        0, 0, 1, TOUCH) \
    X(72, TOUCH_LATE,   0, 0, 2, TOUCH_LATE) \
    X(73, PACE,         0, 0, 0, PACE) \
    X(70, SNAPSHOT,     0, 0, 0, SNAPSHOT) \
    X(75, JUMP,         0, 0, 0, JUMP) \
    X(83, WIDE,         0, 1, 2, WIDE) \
    X(81, START_THREAD, 0, 1, 0, START_THREAD) \
    X(76, NEXT_SEGMENT, 0, 0, 0, NEXT_SEGMENT) \
    X(0, STOP,          0, 0, 0, STOP) \
    X(82, SKIPPED,      0, 1, 0, SKIPPED)
// clang-format on

#define PLAN_OPS(X)                                          PLAN_CALLS(X) PLAN_OTHER_OPS(X)

#define HT_X(number, SYMBOL, kind, numbered, words, handler) PLAN_##SYMBOL = number,
enum plan_op { PLAN_OPS(HT_X) PLAN_OP_LIMIT = 128 };
#undef HT_X

#define HT_X(number, SYMBOL, kind, numbered, words, handler) PLAN_WORDS_##SYMBOL = words,
enum { PLAN_OPS(HT_X) };
#undef HT_X

// For each kind of call that allocates: the kind of call that can free the block. C++ allocators
// may have a separate heap for each family of calls. Calls that reallocate belong to FREE's family.
#define PLAN_FAMILIES(X)                                                                           \
    X(MALLOC, FREE)                                                                                \
    X(CALLOC, FREE)                                                                                \
    X(MEMALIGN, FREE)                                                                              \
    X(ALIGNED_ALLOC, FREE)                                                                         \
    X(POSIX_MEMALIGN, FREE)                                                                        \
    X(VALLOC, FREE)                                                                                \
    X(PVALLOC, FREE)                                                                               \
    X(PREEXISTING, FREE)                                                                           \
    X(NEW, DELETE)                                                                                 \
    X(NEW_NOTHROW, DELETE)                                                                         \
    X(NEW_ARRAY, DELETE_ARRAY)                                                                     \
    X(NEW_ARRAY_NOTHROW, DELETE_ARRAY)                                                             \
    X(NEW_ALIGNED, DELETE_ALIGNED)                                                                 \
    X(NEW_ALIGNED_NOTHROW, DELETE_ALIGNED)                                                         \
    X(NEW_ARRAY_ALIGNED, DELETE_ARRAY_ALIGNED)                                                     \
    X(NEW_ARRAY_ALIGNED_NOTHROW, DELETE_ARRAY_ALIGNED)
#define HT_X(SYMBOL, FREED_BY) PLAN_FREED_BY_##SYMBOL = HT_##FREED_BY,
enum { PLAN_FAMILIES(HT_X) };
#undef HT_X

// Select the assertions for an event class: `call` if its kinds are replayed, `alloc` if they
// allocate, and the variadic arguments if they resize.
#define PLAN_FOR_ALLOC(call, alloc, ...)  call alloc
#define PLAN_FOR_FREE(call, alloc, ...)   call
#define PLAN_FOR_RESIZE(call, alloc, ...) call __VA_ARGS__
#define PLAN_FOR_HALF(call, alloc, ...)
#define PLAN_FOR_MAP(call, alloc, ...)
#define PLAN_FOR_THREAD(call, alloc, ...)
#define PLAN_FOR_MARK(call, alloc, ...)
#define PLAN_FOR_POOL(call, alloc, ...)
#define PLAN_FOR_META(call, alloc, ...)
// Checks that every replayed kind has a row, and that every kind that allocates has a family.
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    PLAN_FOR_##class(                                                                              \
        _Static_assert((int)PLAN_##SYMBOL == (wire) && (wire) < (int)PLAN_OP_LIMIT,                \
                       "the op of a call has the number of its event kind");                       \
        _Static_assert(!((fields)&HT_F_ALIGN) || (int)PLAN_WORDS_##SYMBOL > 0,                     \
                       "the op of an aligned call has a word for the alignment");                  \
        , _Static_assert((int)PLAN_FREED_BY_##SYMBOL > 0, "a kind that allocates has a family");   \
        , _Static_assert((int)PLAN_WORDS_##SYMBOL == (int)PLAN_WORDS_##SYMBOL##_NEW + 1,           \
                         "the op of a resize has the words of its op for NULL and the old size");  \
        _Static_assert((int)PLAN_WORDS_##SYMBOL##_NEW == !!((fields)&HT_F_COUNT),                  \
                       "the op of a resize has a word for the count if the call has a count");)
HT_EVENT_TABLE(HT_X)
#undef HT_X

#define PLAN_PUBLISH       0x80u  // other threads depend on this op: publish progress after the op
#define PLAN_SWITCH_EXITED 0x100u // SWITCH: the thread of the preceding ops has exited

enum {
    PLAN_ENTRY_BITS = 24,
    PLAN_SIZE_BITS = 32,
    PLAN_ENTRY_AT = 8,
    PLAN_SIZE_AT = PLAN_ENTRY_AT + PLAN_ENTRY_BITS,
    PLAN_MAX_OP_WORDS = 5, // PLAN_WIDE, entry, size, and the two extra words of reallocarray
    // Distance of the player's prefetch; this many words follow the last stream.
    PLAN_AHEAD_WORDS = 16,
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

struct plan_op_info {
    uint8_t words; // number of words after the first word, not counting PLAN_WIDE's entry and size
    uint8_t kind;  // kind of call that the op makes, or 0 if the op is not a call
    bool is_numbered; // the op replays an op of the workload; only these ops are numbered
};

static inline struct plan_op_info plan_op_info(unsigned op)
{
    static const struct plan_op_info infos[PLAN_OP_LIMIT] = {
#define HT_X(number, SYMBOL, kind, numbered, words, handler)                                       \
    [PLAN_##SYMBOL] = {words, kind, numbered},
        PLAN_OPS(HT_X)
#undef HT_X
    };
    return infos[op];
}

// Returns the number of words in the op whose first word is `word`.
static inline unsigned plan_op_words(uint64_t word)
{
    enum plan_op op = plan_op_of(word);
    return 1 + plan_op_info(op).words +
           (op == PLAN_WIDE ? plan_op_info(plan_op_of(word >> 8)).words : 0);
}

// Returns the op of a RESIZE call with NULL.
static inline enum plan_op plan_op_for_null(unsigned kind)
{
    static const uint8_t ops[HT_KIND_LIMIT] = {
#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    PLAN_FOR_##class(, , [HT_##SYMBOL] = PLAN_##SYMBOL##_NEW, )
        HT_EVENT_TABLE(HT_X)
#undef HT_X
    };
    return (enum plan_op)ops[kind];
}
