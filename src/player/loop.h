// The replay loop. Included by player_loop_*.c, each of which makes its own copies of player_loop with constant `timed`
// and `touch`, so that what is not asked for is not even tested for.
#ifndef HEAPTAPE_PLAYER_LOOP_H
#define HEAPTAPE_PLAYER_LOOP_H

#include "player/player.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)

enum { PLAYER_PAGE_BYTES = 4096 };

// A stamp before a call: nothing of what came before is left to do. x86: LFENCE waits for all earlier instructions.
ALWAYS_INLINE uint64_t stamp_before(void)
{
#if defined(__x86_64__)
    _mm_lfence();
#endif
    return clock_counter();
}

// A stamp after a call: the call is done. RDTSCP waits for all earlier instructions.
ALWAYS_INLINE uint64_t stamp_after(void)
{
#if defined(__x86_64__)
    unsigned cpu;
    return __rdtscp(&cpu);
#else
    return clock_counter();
#endif
}

ALWAYS_INLINE uint64_t time_begin(bool timed)
{
    if (!timed)
        return 0;
    return player.results->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : stamp_before();
}

// The time goes to the call's kind, and to its size if it has one.
ALWAYS_INLINE void time_end(bool timed, struct player_thread *t, unsigned kind, uint64_t begin, const uint64_t *size)
{
    if (!timed)
        return;
    uint64_t end = player.results->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns() : stamp_after();
    // Two CPUs' counters may disagree by some ticks when the thread moves.
    uint64_t ticks = end > begin ? end - begin : 0;
    histogram_add(&t->calls[kind], ticks);
    if (size)
        histogram_add(&t->calls[RESULTS_KINDS + results_size_class(*size)], ticks);
}

// Writes one byte in each page of [from, to) of the block, the first one at `from`.
ALWAYS_INLINE void touch_pages(char *block, size_t from, size_t to)
{
    *(volatile char *)(block + from) = 1;
    uintptr_t end = (uintptr_t)block + to;
    uintptr_t page = ((uintptr_t)block + from + PLAYER_PAGE_BYTES) & ~(uintptr_t)(PLAYER_PAGE_BYTES - 1);
    for (; UNLIKELY(page < end); page += PLAYER_PAGE_BYTES)
        *(volatile char *)page = 1;
}

// A big block that grew: what it had is in use by now, and half of the new part is as good a guess as any. A buffer that
// is doubled whenever it is full is three quarters full on average.
ALWAYS_INLINE void touch_grown(char *block, size_t had, size_t size)
{
    touch_pages(block, had / 2, had + (size - had) / 2);
}

// Writes as the program will have done: `had` bytes of the block have been written before. Who asks for zeroes may never
// write to most of them: gcc's tables are like that, redis's are not.
ALWAYS_INLINE void touch_block(enum results_touch touch, unsigned kind, char *block, size_t had, size_t size)
{
    if (touch == RESULTS_TOUCH_NONE || had >= size)
        return;
    if (touch == RESULTS_TOUCH_ALL)
        memset(block + had, 1, size - had);
    else if (kind == HT_CALLOC && (size <= PLAYER_PAGE_BYTES || !player.plan->touch_zeroed))
        *(volatile char *)block = 1;
    else if (UNLIKELY(size - had > PLAYER_PAGE_BYTES) && had)
        touch_grown(block, had, size);
    else
        touch_pages(block, had, size);
}

// A block just taken by a call of `kind`; `had` bytes of it have been written before.
struct taken {
    unsigned kind;
    uint64_t place;
    char *block;
    size_t had, size;
};

ALWAYS_INLINE void fill_block(enum results_touch touch, struct player_thread *t, const uint64_t *pc, struct taken b)
{
    if (touch == RESULTS_TOUCH_USABLE) {
        t->requested_bytes += b.size;
        t->usable_bytes += player.usable_size && b.block ? player.usable_size(b.block) : 0;
        return;
    }
    if (touch != RESULTS_TOUCH_CHECKED) {
        touch_block(touch, b.kind, b.block, b.had, b.size);
        return;
    }
    t->pc = pc;
    player_verify_taken(t, b.kind, b.place, b.block, b.size);
}

ALWAYS_INLINE void wait_for(struct player_thread *t, uint32_t thread, uint64_t position)
{
    struct player_seen *seen = &t->seen[thread % PLAYER_SEEN];
    if (seen->thread == thread && seen->progress >= position)
        return;
    // Pairs with the release in publish(): what the other thread did up to there is seen.
    uint64_t progress = atomic_load_explicit(&player.lines[thread].progress, memory_order_acquire);
    if (UNLIKELY(progress < position)) {
        player_wait_slow(t, thread, position);
        return;
    }
    *seen = (struct player_seen){progress, thread};
}

ALWAYS_INLINE void publish(struct player_thread *t, const uint64_t *pc)
{
    struct player_line *line = t->line;
    uint64_t progress = t->base + (uint64_t)(pc - player.words);
    atomic_store_explicit(&line->progress, progress, memory_order_release);
    // The store must not come after the load of `wanted`. A sleeper sees to that with membarrier, which makes this
    // thread do a full fence; so here the compiler alone is held.
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(progress >= atomic_load_explicit(&line->wanted, memory_order_relaxed)))
        player_wake(line);
}

// The function that does `kind`, as a pointer of that type.
#define FUNCTION(kind, type) ((type)player_functions[kind])

// Makes the call, timed when asked for, and gives its value. `bytes` points to the size asked for, NULL: none.
#define CALL(kind, call, bytes)                                                                                        \
    ({                                                                                                                 \
        uint64_t begin_ = time_begin(timed);                                                                           \
        void *block_ = (call);                                                                                         \
        time_end(timed, t, kind, begin_, bytes);                                                                       \
        block_;                                                                                                        \
    })

// What the checking player does before a block is given up.
#define CHECK_GIVING(kind)                                                                                             \
    do {                                                                                                               \
        if (touch == RESULTS_TOUCH_CHECKED) {                                                                          \
            t->pc = pc;                                                                                                \
            player_verify_giving(t, kind, place);                                                                      \
        }                                                                                                              \
    } while (0)

// As CALL, for a function without a value.
#define GIVE(kind, call)                                                                                               \
    do {                                                                                                               \
        CHECK_GIVING(kind);                                                                                            \
        uint64_t begin_ = time_begin(timed);                                                                           \
        (call);                                                                                                        \
        time_end(timed, t, kind, begin_, NULL);                                                                        \
    } while (0)

// Takes a block of `bytes` in place of what `place` held, `had` bytes of which have been written.
#define TAKE(kind, bytes, had, call)                                                                                   \
    do {                                                                                                               \
        size_t bytes_ = (bytes), had_ = (had);                                                                         \
        CHECK_GIVING(kind);                                                                                            \
        char *taken_ = CALL(kind, call, &bytes_);                                                                      \
        if (UNLIKELY(!taken_) && bytes_) {                                                                             \
            t->pc = pc;                                                                                                \
            player_fail(RESULTS_OUT_OF_MEMORY, t, kind, bytes_, 0);                                                    \
        }                                                                                                              \
        fill_block(touch, t, pc, (struct taken){kind, place, taken_, had_, bytes_});                                   \
        places[place] = taken_;                                                                                        \
    } while (0)

// Takes the next op's first word; `pc` is behind it then. The place of an op to come is fetched into the cache: with a
// million live blocks that halves the player's own time, from 8 to 4 ns an event. What is no call has no place there, but
// looking ahead at a wrong address does no harm.
#define FETCH()                                                                                                        \
    do {                                                                                                               \
        __builtin_prefetch(&places[plan_place_of(pc[PLAN_AHEAD_WORDS])], 1);                                           \
        word = *pc++;                                                                                                  \
        place = plan_place_of(word);                                                                                   \
    } while (0)

#define PUBLISH()                                                                                                      \
    do {                                                                                                               \
        if (UNLIKELY(word & PLAN_PUBLISH))                                                                             \
            publish(t, pc);                                                                                            \
    } while (0)

// Goes on with the next op without a jump through the switch if it is one of those that most workloads are made of, and
// nobody waits for it. The word's lowest byte tells both.
#define NEXT()                                                                                                         \
    do {                                                                                                               \
        FETCH();                                                                                                       \
        if ((uint8_t)word == PLAN_MALLOC)                                                                              \
            goto quick_malloc;                                                                                         \
        if ((uint8_t)word == PLAN_FREE)                                                                                \
            goto quick_free;                                                                                           \
        goto any;                                                                                                      \
    } while (0)

typedef void *new_function(size_t);
typedef void *new_nothrow_function(size_t, const void *);
typedef void *new_aligned_function(size_t, size_t);
typedef void *new_aligned_nothrow_function(size_t, size_t, const void *);
typedef int posix_memalign_function(void **, size_t, size_t);
typedef void *reallocarray_function(void *, size_t, size_t);
typedef void delete_function(void *);
typedef void delete_number_function(void *, size_t); // size or alignment
typedef void delete_sized_aligned_function(void *, size_t, size_t);
typedef void delete_nothrow_function(void *, const void *);
typedef void delete_aligned_nothrow_function(void *, size_t, const void *);

// C++ passes std::nothrow by reference; nobody looks at it.
static const char nothrow;

ALWAYS_INLINE void *take_posix_memalign(size_t align, size_t size)
{
    void *block = NULL;
    return FUNCTION(HT_POSIX_MEMALIGN, posix_memalign_function *)(&block, align, size) ? NULL : block;
}

// The allocator may give a block where the recorded one gave none.
ALWAYS_INLINE void *realloc_to_nothing(void *block)
{
    void *rest = realloc(block, 0);
    if (UNLIKELY(rest))
        free(rest);
    return NULL;
}

ALWAYS_INLINE void player_loop(struct player_thread *t, const bool timed, const enum results_touch touch)
{
    const uint64_t *pc = t->pc;
    void **const places = player.places;
    uint64_t word, place, size;
    enum plan_op op;
    for (;;) {
        NEXT();
    quick_malloc:
        TAKE(HT_MALLOC, plan_size_of(word), 0, malloc(plan_size_of(word)));
        NEXT();
    quick_free:
        GIVE(HT_FREE, free(places[place]));
        NEXT();
    any:
        op = plan_op_of(word);
        size = plan_size_of(word);
    again:
        switch (op) {
        case PLAN_MALLOC:
            TAKE(HT_MALLOC, size, 0, malloc(size));
            break;
        case PLAN_FREE:
            GIVE(HT_FREE, free(places[place]));
            break;
        case PLAN_CALLOC:
            TAKE(HT_CALLOC, size, 0, calloc(1, size));
            break;
        case PLAN_CALLOC_MANY:
            TAKE(HT_CALLOC, size * *pc, 0, calloc(*pc, size));
            pc++;
            break;
        case PLAN_REALLOC:
            TAKE(HT_REALLOC, size, *pc, realloc(places[place], size));
            pc++;
            break;
        case PLAN_REALLOC_NEW:
            TAKE(HT_REALLOC, size, 0, realloc(NULL, size));
            break;
        case PLAN_REALLOC_FREE:
            CHECK_GIVING(HT_FREE);
            CALL(HT_REALLOC, realloc_to_nothing(places[place]), NULL);
            break;
        case PLAN_REALLOCARRAY:
            TAKE(HT_REALLOCARRAY, size * pc[0], pc[1],
                 FUNCTION(HT_REALLOCARRAY, reallocarray_function *)(places[place], pc[0], size));
            pc += 2;
            break;
        case PLAN_REALLOCARRAY_NEW:
            TAKE(HT_REALLOCARRAY, size * *pc, 0, FUNCTION(HT_REALLOCARRAY, reallocarray_function *)(NULL, *pc, size));
            pc++;
            break;

#define TAKE_NEW(SYMBOL)                                                                                               \
    case PLAN_##SYMBOL:                                                                                                \
        TAKE(HT_##SYMBOL, size, 0, FUNCTION(HT_##SYMBOL, new_function *)(size));                                       \
        break;
            TAKE_NEW(VALLOC)
            TAKE_NEW(PVALLOC)
            TAKE_NEW(NEW)
            TAKE_NEW(NEW_ARRAY)

#define TAKE_NOTHROW(SYMBOL)                                                                                           \
    case PLAN_##SYMBOL:                                                                                                \
        TAKE(HT_##SYMBOL, size, 0, FUNCTION(HT_##SYMBOL, new_nothrow_function *)(size, &nothrow));                     \
        break;
            TAKE_NOTHROW(NEW_NOTHROW)
            TAKE_NOTHROW(NEW_ARRAY_NOTHROW)

#define TAKE_ALIGNED(SYMBOL, call)                                                                                     \
    case PLAN_##SYMBOL:                                                                                                \
        TAKE(HT_##SYMBOL, size, 0, call);                                                                              \
        pc++;                                                                                                          \
        break;
            TAKE_ALIGNED(MEMALIGN, FUNCTION(HT_MEMALIGN, new_aligned_function *)(*pc, size))
            TAKE_ALIGNED(ALIGNED_ALLOC, FUNCTION(HT_ALIGNED_ALLOC, new_aligned_function *)(*pc, size))
            TAKE_ALIGNED(POSIX_MEMALIGN, take_posix_memalign(*pc, size))
            TAKE_ALIGNED(NEW_ALIGNED, FUNCTION(HT_NEW_ALIGNED, new_aligned_function *)(size, *pc))
            TAKE_ALIGNED(NEW_ARRAY_ALIGNED, FUNCTION(HT_NEW_ARRAY_ALIGNED, new_aligned_function *)(size, *pc))
            TAKE_ALIGNED(NEW_ALIGNED_NOTHROW,
                         FUNCTION(HT_NEW_ALIGNED_NOTHROW, new_aligned_nothrow_function *)(size, *pc, &nothrow))
            TAKE_ALIGNED(NEW_ARRAY_ALIGNED_NOTHROW,
                         FUNCTION(HT_NEW_ARRAY_ALIGNED_NOTHROW, new_aligned_nothrow_function *)(size, *pc, &nothrow))

#define GIVE_PLAIN(SYMBOL)                                                                                             \
    case PLAN_##SYMBOL:                                                                                                \
        GIVE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_function *)(places[place]));                                    \
        break;
            GIVE_PLAIN(DELETE)
            GIVE_PLAIN(DELETE_ARRAY)

#define GIVE_SIZED(SYMBOL)                                                                                             \
    case PLAN_##SYMBOL:                                                                                                \
        GIVE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_number_function *)(places[place], size));                       \
        break;
            GIVE_SIZED(FREE_SIZED)
            GIVE_SIZED(DELETE_SIZED)
            GIVE_SIZED(DELETE_ARRAY_SIZED)

#define GIVE_NOTHROW(SYMBOL)                                                                                           \
    case PLAN_##SYMBOL:                                                                                                \
        GIVE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_nothrow_function *)(places[place], &nothrow));                  \
        break;
            GIVE_NOTHROW(DELETE_NOTHROW)
            GIVE_NOTHROW(DELETE_ARRAY_NOTHROW)

#define GIVE_ALIGNED(SYMBOL, call)                                                                                     \
    case PLAN_##SYMBOL:                                                                                                \
        GIVE(HT_##SYMBOL, call);                                                                                       \
        pc++;                                                                                                          \
        break;
            GIVE_ALIGNED(DELETE_ALIGNED, FUNCTION(HT_DELETE_ALIGNED, delete_number_function *)(places[place], *pc))
            GIVE_ALIGNED(DELETE_ARRAY_ALIGNED,
                         FUNCTION(HT_DELETE_ARRAY_ALIGNED, delete_number_function *)(places[place], *pc))
            GIVE_ALIGNED(FREE_ALIGNED_SIZED, // alignment before size here, after it in operator delete
                         FUNCTION(HT_FREE_ALIGNED_SIZED, delete_sized_aligned_function *)(places[place], *pc, size))
            GIVE_ALIGNED(DELETE_SIZED_ALIGNED,
                         FUNCTION(HT_DELETE_SIZED_ALIGNED, delete_sized_aligned_function *)(places[place], size, *pc))
            GIVE_ALIGNED(
                DELETE_ARRAY_SIZED_ALIGNED,
                FUNCTION(HT_DELETE_ARRAY_SIZED_ALIGNED, delete_sized_aligned_function *)(places[place], size, *pc))
            GIVE_ALIGNED(DELETE_ALIGNED_NOTHROW, FUNCTION(HT_DELETE_ALIGNED_NOTHROW, delete_aligned_nothrow_function *)(
                                                     places[place], *pc, &nothrow))
            GIVE_ALIGNED(DELETE_ARRAY_ALIGNED_NOTHROW,
                         FUNCTION(HT_DELETE_ARRAY_ALIGNED_NOTHROW, delete_aligned_nothrow_function *)(places[place],
                                                                                                      *pc, &nothrow))

        case PLAN_PREEXISTING: // before the start: not a call of the program's that we know
            places[place] = player_take_preexisting((unsigned)pc[1], pc[0], size);
            if (UNLIKELY(!places[place]) && size) {
                t->pc = pc;
                player_fail(RESULTS_OUT_OF_MEMORY, t, HT_PREEXISTING, size, 0);
            }
            fill_block(touch, t, pc, (struct taken){HT_PREEXISTING, place, places[place], 0, size});
            pc += 2;
            break;
        case PLAN_WAIT:
            wait_for(t, (uint32_t)size, *pc++);
            continue;
        case PLAN_SAMPLE:
        case PLAN_COUNT:
            player_sample(word >> 8, *pc++, op == PLAN_SAMPLE);
            continue;
        case PLAN_STATS:
            player_stats();
            continue;
        case PLAN_TRIM:
            player_trim();
            continue;
        case PLAN_SWITCH:
            player_switch((uint32_t)(word >> 9), word & PLAN_SWITCH_OVER);
            continue;
        case PLAN_PACE:
            player_pace(t, word >> 8);
            continue;
        case PLAN_HOLD:
            player_hold(RESULTS_HOLD_HERE);
            continue;
        case PLAN_JUMP:
            pc = player.words + (word >> 8);
            continue;
        case PLAN_WIDE:
            op = plan_op_of(word >> 8);
            place = pc[0];
            size = pc[1];
            pc += 2;
            goto again;
        case PLAN_THREAD_CREATE:
            t->pc = pc;
            player_birth(t, (uint32_t)size);
            break;
        case PLAN_MORE:
            publish(t, pc);
            t->pc = pc;
            player_more(t);
            pc = t->pc;
            continue;
        case PLAN_STOP:
            t->pc = pc;
            if (t->window != PLAYER_NO_WINDOW) {
                publish(t, pc);
                player_leave_window(t);
            }
            return;
        case PLAN_SKIPPED:
        case PLAN_REALLOC_BEGIN:
        case PLAN_MMAP:
        case PLAN_MUNMAP:
        case PLAN_MREMAP:
        case PLAN_SBRK:
        case PLAN_BRK:
        case PLAN_THREAD_START:
        case PLAN_THREAD_END:
        case PLAN_MARK:
        case PLAN_MALLOC_STATS:
        case PLAN_MALLOC_INFO:
        case PLAN_MALLINFO:
        case PLAN_MALLINFO2:
        case PLAN_MALLOC_TRIM:
        case PLAN_MALLOPT:
        case PLAN_MALLCTL:
        case PLAN_STACK:
        case PLAN_MODULE:
        case PLAN_WAITED:
        case PLAN_LOST:
        case PLAN_OP_LIMIT:
            break; // no call
        }
        PUBLISH();
    }
}

#endif
