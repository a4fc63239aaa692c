// The replay loop. For each combination of `timed` and `touch`, there is a copy of player_loop()
// with both as constants, so the loop does not test them.
#include "replay/player/player.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)

enum { PLAYER_PAGE_BYTES = 4096 };

ALWAYS_INLINE uint64_t time_begin(bool timed, struct player_thread *t)
{
    if (!timed)
        return 0;
    if (t->gap_ns)
        player_evict(t);
    return player.results->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns()
                                                         : clock_counter_ordered();
}

// Counts the latency for the call's kind and, if the call has a size, for its size class.
ALWAYS_INLINE void time_end(bool timed, struct player_thread *t, unsigned kind, uint64_t begin,
                            const uint64_t *size)
{
    if (!timed)
        return;
    uint64_t end = player.results->clock == CLOCK_KIND_MONOTONIC ? clock_monotonic_ns()
                                                                 : clock_counter_after();
    // The counters of two CPUs may differ by a few ticks.
    uint64_t ticks = end > begin ? end - begin : 0;
    unsigned class = size ? results_size_class(*size) : RESULTS_SIZES;
    t->latencies[t->n_latencies++] =
        (struct player_latency){.ticks = ticks, .kind = kind, .size_class = class};
    if (UNLIKELY(t->n_latencies == PLAYER_LATENCIES))
        player_add_latencies(t);
}

// Writes one byte to each page in [from, to) of the block. The first byte is at `from`.
ALWAYS_INLINE void touch_pages(char *block, size_t from, size_t to)
{
    *(volatile char *)(block + from) = 1;
    uintptr_t end = (uintptr_t)block + to;
    uintptr_t page =
        ((uintptr_t)block + from + PLAYER_PAGE_BYTES) & ~(uintptr_t)(PLAYER_PAGE_BYTES - 1);
    for (; UNLIKELY(page < end); page += PLAYER_PAGE_BYTES)
        *(volatile char *)page = 1;
}

// Pages that the program used, excluding pages that the block shares with other blocks. `front`
// pages are at the start; the other pages are spread evenly. Used pages `from` to `to` - 1 are
// touched.
struct player_use {
    uint64_t used, front, from, to;
    bool zeroed; // from calloc: the program reads these pages before it writes to them
};

static __attribute__((noinline)) void touch_used(char *block, size_t size, struct player_use u)
{
    uintptr_t mask = PLAYER_PAGE_BYTES - 1, start = ((uintptr_t)block + mask) & ~mask,
              end = ((uintptr_t)block + size) & ~mask;
    uint64_t pages = end > start ? (end - start) / PLAYER_PAGE_BYTES : 0;
    uint64_t used = u.used < pages ? u.used : pages, front = u.front < used ? u.front : used,
             to = u.to < used ? u.to : used;
    for (uint64_t i = u.from; i < to; i++) {
        uint64_t page = i < front ? i : front + (pages - front) * (i - front) / (used - front);
        volatile char *at = (char *)(start + page * PLAYER_PAGE_BYTES);
        if (u.zeroed)
            (void)*at;
        *at = 1;
    }
    // All pages are used, so the end of the block after its last whole page is used as well.
    if (u.to >= pages && u.to > u.from)
        ((volatile char *)block)[size - 1] = 1;
}

// A block that a call of `kind` allocated. The first `had` bytes have already been written.
struct player_block {
    unsigned kind;
    uint64_t entry;
    char *block;
    size_t had, size;
};

// Touches the pages that a TOUCH describes, except pages that the block already had before a
// realloc. A block's first page usually also contains other blocks, so it was not measured.
// Programs use the start of most blocks. A block from calloc may be entirely unused.
static __attribute__((noinline)) void touch_measured(struct player_thread *t, struct player_block b)
{
    uint64_t old = b.had / PLAYER_PAGE_BYTES, late = player.usable_size ? t->touch_late : 0,
             now = t->touch_pages > late ? t->touch_pages - late : 0,
             front = t->touch_front_kib * 1024 / PLAYER_PAGE_BYTES, end = t->touch_front_kib * 1024;
    t->touches = false;
    if (now || b.kind != HT_CALLOC)
        *(volatile char *)b.block = 1;
    touch_used(b.block, b.size,
               (struct player_use){t->touch_pages, front, front > old ? old : 0, now,
                                   b.kind == HT_CALLOC});
    // The used front of a block ends within a page, which may not be the page that it was in the
    // recording.
    if (front && now >= front && end - PLAYER_PAGE_BYTES / 2 < b.size)
        ((volatile char *)b.block)[end - PLAYER_PAGE_BYTES / 2] = 1;
}

// Touches pages some time after the allocation. Checks the size, because the plan's file may come
// from another user.
static __attribute__((noinline)) void touch_late(struct player_thread *t, char *block, uint64_t to,
                                                 uint64_t used, uint64_t pages)
{
    uint64_t size = (pages >> 32) * PLAYER_PAGE_BYTES, began_ns = clock_monotonic_ns();
    if (block && player.usable_size && player.usable_size(block) >= size)
        touch_used(block, size,
                   (struct player_use){used >> 32 & INT32_MAX, (uint32_t)pages, (uint32_t)used, to,
                                       used >> 63});
    t->touch_ns += clock_monotonic_ns() - began_ns;
}

// Writes to the block as the program probably did. The first `had` bytes of the block have already
// been written. Some programs never use most of their memory from calloc: gcc's tables stay mostly
// unused, for example, but redis's tables do not.
ALWAYS_INLINE void touch_block(enum results_touch touch, unsigned kind, char *block, size_t had,
                               size_t size)
{
    if (touch == RESULTS_TOUCH_NONE || had >= size)
        return;
    if (touch == RESULTS_TOUCH_ALL)
        memset(block + had, 1, size - had);
    else if (kind == HT_CALLOC && (size <= PLAYER_PAGE_BYTES || !player.plan->touch_zeroed))
        *(volatile char *)block = 1;
    else if (UNLIKELY(size - had > PLAYER_PAGE_BYTES) && had)
        // A large block has grown. Touch the second half of its old part and the first half of its
        // new part. The new part's half is an estimate, because a buffer that doubles whenever it
        // is full is on average three quarters full.
        touch_pages(block, had / 2, had + (size - had) / 2);
    else
        touch_pages(block, had, size);
}

// Touches a big block. The time is measured separately, because it is the program that does this
// work, not the call.
static __attribute__((noinline)) void touch_big(enum results_touch touch, struct player_thread *t,
                                                struct player_block b)
{
    uint64_t began_ns = clock_monotonic_ns();
    if (touch != RESULTS_TOUCH_PAGE || !t->touches)
        touch_block(touch, b.kind, b.block, b.had, b.size);
    else if (b.block)
        touch_measured(t, b);
    t->touch_ns += clock_monotonic_ns() - began_ns;
}

ALWAYS_INLINE void fill_block(enum results_touch touch, struct player_thread *t,
                              struct player_block b)
{
    if (touch == RESULTS_TOUCH_USABLE) {
        t->requested_bytes += b.size;
        t->usable_bytes += player.usable_size && b.block ? player.usable_size(b.block) : 0;
        return;
    }
    if (touch == RESULTS_TOUCH_VERIFY)
        player_verify_allocated(t, b.kind, b.entry, b.block, b.size);
    else if (UNLIKELY(b.size >= HT_BIG_BYTES))
        touch_big(touch, t, b);
    else
        touch_block(touch, b.kind, b.block, b.had, b.size);
}

ALWAYS_INLINE void wait_for(struct player_thread *t, struct player_waits *w, uint32_t thread,
                            uint64_t position)
{
    struct player_seen *seen = &t->seen[thread % PLAYER_SEEN];
    if (seen->thread == thread && seen->progress >= position)
        return;
    // Pairs with the release in publish(). All earlier work of the other thread is visible.
    uint64_t progress = atomic_load_explicit(&player.lines[thread].progress, memory_order_acquire);
    if (UNLIKELY(progress < position)) {
        player_wait_slow(w, thread, position);
        return;
    }
    *seen = (struct player_seen){progress, thread};
}

ALWAYS_INLINE void publish(struct player_thread *t, const uint64_t *pc)
{
    struct player_line *line = t->line;
    uint64_t progress = t->at->base + (uint64_t)(pc - player.words);
    atomic_store_explicit(&line->progress, progress, memory_order_release);
    // The load of `wanted` must not overtake the store. The sleeper's membarrier makes this thread
    // execute a full fence, so only the compiler needs a fence here.
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(progress >= atomic_load_explicit(&line->wanted, memory_order_relaxed)))
        player_wake(line);
}

// The function for `kind`, cast to its type.
#define FUNCTION(kind, type) ((type)player_functions[kind])

// Makes the call, times it if requested, and returns its value. `bytes` points to the requested
// size, or is NULL if there is no size.
#define CALL(kind, call, bytes)                                                                    \
    ({                                                                                             \
        uint64_t begin_ = time_begin(timed, t);                                                    \
        void *block_ = (call);                                                                     \
        time_end(timed, t, kind, begin_, bytes);                                                   \
        block_;                                                                                    \
    })

// With RESULTS_TOUCH_VERIFY, checks a block before it is freed.
#define VERIFY_FREE(kind)                                                                          \
    do {                                                                                           \
        if (touch == RESULTS_TOUCH_VERIFY)                                                         \
            player_verify_free(t, kind, entry);                                                    \
    } while (0)

// Makes a call that returns no value.
#define DEALLOCATE(kind, call)                                                                     \
    do {                                                                                           \
        VERIFY_FREE(kind);                                                                         \
        uint64_t begin_ = time_begin(timed, t);                                                    \
        (call);                                                                                    \
        time_end(timed, t, kind, begin_, NULL);                                                    \
    } while (0)

// Allocates a block of `bytes` for the entry. The new block replaces any old block of the entry.
// The first `had` bytes of the new block have already been written. Writes the entry atomically,
// because prefetch_block() may read it in another thread.
#define ALLOCATE(kind, bytes, had, call)                                                           \
    do {                                                                                           \
        size_t bytes_ = (bytes), had_ = (had);                                                     \
        VERIFY_FREE(kind);                                                                         \
        char *new_ = CALL(kind, call, &bytes_);                                                    \
        if (UNLIKELY(!new_) && bytes_)                                                             \
            player_refused(t, kind, bytes_);                                                       \
        else                                                                                       \
            fill_block(touch, t, (struct player_block){kind, entry, new_, had_, bytes_});          \
        __atomic_store_n(&slots[entry], new_, __ATOMIC_RELAXED);                                   \
    } while (0)

// Prefetches the block that a later op frees or resizes. Most programs use a block shortly before
// they free it, so the program has the cache miss, not the call.
ALWAYS_INLINE void prefetch_block(uint64_t word)
{
#define HT_X(wire, SYMBOL, name, symbol, class, ...)                                               \
    | (uint64_t)(HT_CLASS_##class == HT_CLASS_FREE || HT_CLASS_##class == HT_CLASS_RESIZE)         \
            << (wire & 63)
    static const uint64_t freeing = 0 HT_EVENT_TABLE(HT_X); // by kind; these kinds are below 64
#undef HT_X
    // If the word is not a call, its entry may be any number.
    uint64_t op = word & (PLAN_OP_LIMIT - 1), entry = plan_entry_of(word);
    bool frees = op < 64 && freeing >> op & 1 && entry < player.plan->slot_table_entries;
    __builtin_prefetch(__atomic_load_n(&player.slot_table[frees ? entry : 0], __ATOMIC_RELAXED));
}

// Fetches the next op word, advances pc and publishes it for the watchdog. Prefetches the slot
// table entry of a later op. With a million live blocks, this prefetch halves the overhead from 8
// to 4 ns per event. If the later word is not a call, the prefetched entry is wrong, which is
// harmless.
#define FETCH()                                                                                    \
    do {                                                                                           \
        __builtin_prefetch(&slots[plan_entry_of(pc[PLAN_AHEAD_WORDS])], 1);                        \
        if (timed)                                                                                 \
            prefetch_block(pc[PLAN_AHEAD_WORDS / 2]);                                              \
        word = *pc++;                                                                              \
        player_set_pc(at, pc);                                                                     \
        entry = plan_entry_of(word);                                                               \
    } while (0)

#define PUBLISH()                                                                                  \
    do {                                                                                           \
        if (UNLIKELY(word & PLAN_PUBLISH))                                                         \
            publish(t, pc);                                                                        \
    } while (0)

// Fast path: the most frequent ops bypass the switch if they do not have to publish. The lowest
// byte of the word contains both op and flag.
#define NEXT()                                                                                     \
    do {                                                                                           \
        FETCH();                                                                                   \
        if ((uint8_t)word == PLAN_MALLOC)                                                          \
            goto fast_malloc;                                                                      \
        if ((uint8_t)word == PLAN_FREE)                                                            \
            goto fast_free;                                                                        \
        goto any;                                                                                  \
    } while (0)

typedef void *new_function(size_t);
typedef void *new_nothrow_function(size_t, const void *);
typedef void *new_aligned_function(size_t, size_t);
typedef void *new_aligned_nothrow_function(size_t, size_t, const void *);
typedef int posix_memalign_function(void **, size_t, size_t);
typedef void *reallocarray_function(void *, size_t, size_t);
typedef void delete_function(void *);
typedef void delete_number_function(void *, size_t); // the number is a size or an alignment
typedef void delete_sized_aligned_function(void *, size_t, size_t);
typedef void delete_nothrow_function(void *, const void *);
typedef void delete_aligned_nothrow_function(void *, size_t, const void *);

// Passed as std::nothrow, which C++ passes by reference and never reads.
static const char nothrow;

ALWAYS_INLINE void *call_posix_memalign(size_t align, size_t size)
{
    void *block = NULL;
    int error = FUNCTION(HT_POSIX_MEMALIGN, posix_memalign_function *)(&block, align, size);
    if (UNLIKELY(error))
        errno = error;
    return error ? NULL : block;
}

// The allocator may return a block even though the recorded allocator returned NULL.
ALWAYS_INLINE void *realloc_to_zero(void *block)
{
    void *rest = realloc(block, 0);
    if (UNLIKELY(rest))
        free(rest);
    return NULL;
}

// Extra word i of the op. The op's row contains the number of extra words.
#define EXTRA(i)                                                                                   \
    ({                                                                                             \
        _Static_assert((i) < extra_words, "the op's row has fewer extra words");                   \
        pc[i];                                                                                     \
    })

// Handlers of ops, as named in the rows of replay/plan/ops.h. After a handler, the loop skips the
// extra words.
#define PLAY_MALLOC(SYMBOL)      ALLOCATE(HT_MALLOC, size, 0, malloc(size))
#define PLAY_FREE(SYMBOL)        DEALLOCATE(HT_FREE, free(slots[entry]))
#define PLAY_CALLOC(SYMBOL)      ALLOCATE(HT_CALLOC, size, 0, calloc(1, size))
#define PLAY_CALLOC_MANY(SYMBOL) ALLOCATE(HT_CALLOC, size *EXTRA(0), 0, calloc(EXTRA(0), size))
#define PLAY_REALLOC(SYMBOL)     ALLOCATE(HT_REALLOC, size, EXTRA(0), realloc(slots[entry], size))
#define PLAY_REALLOC_NEW(SYMBOL) ALLOCATE(HT_REALLOC, size, 0, realloc(NULL, size))
#define PLAY_REALLOC_FREE(SYMBOL)                                                                  \
    do {                                                                                           \
        VERIFY_FREE(HT_FREE);                                                                      \
        CALL(HT_REALLOC, realloc_to_zero(slots[entry]), NULL);                                     \
    } while (0)
#define PLAY_REALLOCARRAY(SYMBOL)                                                                  \
    ALLOCATE(HT_REALLOCARRAY, size *EXTRA(0), EXTRA(1),                                            \
             FUNCTION(HT_REALLOCARRAY, reallocarray_function *)(slots[entry], EXTRA(0), size))
#define PLAY_REALLOCARRAY_NEW(SYMBOL)                                                              \
    ALLOCATE(HT_REALLOCARRAY, size *EXTRA(0), 0,                                                   \
             FUNCTION(HT_REALLOCARRAY, reallocarray_function *)(NULL, EXTRA(0), size))

#define PLAY_ALLOCATE(SYMBOL)                                                                      \
    ALLOCATE(HT_##SYMBOL, size, 0, FUNCTION(HT_##SYMBOL, new_function *)(size))
#define PLAY_ALLOCATE_NOTHROW(SYMBOL)                                                              \
    ALLOCATE(HT_##SYMBOL, size, 0, FUNCTION(HT_##SYMBOL, new_nothrow_function *)(size, &nothrow))

// Clears errno before the call, because player_refused() reads errno.
#define ALLOCATE_ALIGNED(SYMBOL, call)                                                             \
    do {                                                                                           \
        errno = 0;                                                                                 \
        ALLOCATE(HT_##SYMBOL, size, 0, call);                                                      \
    } while (0)
#define PLAY_ALLOCATE_ALIGNED(SYMBOL)                                                              \
    ALLOCATE_ALIGNED(SYMBOL, FUNCTION(HT_##SYMBOL, new_aligned_function *)(EXTRA(0), size))
#define PLAY_POSIX_MEMALIGN(SYMBOL) ALLOCATE_ALIGNED(SYMBOL, call_posix_memalign(EXTRA(0), size))
#define PLAY_NEW_ALIGNED(SYMBOL)                                                                   \
    ALLOCATE_ALIGNED(SYMBOL, FUNCTION(HT_##SYMBOL, new_aligned_function *)(size, EXTRA(0)))
#define PLAY_NEW_ALIGNED_NOTHROW(SYMBOL)                                                           \
    ALLOCATE_ALIGNED(                                                                              \
        SYMBOL, FUNCTION(HT_##SYMBOL, new_aligned_nothrow_function *)(size, EXTRA(0), &nothrow))

#define PLAY_DEALLOCATE(SYMBOL)                                                                    \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_function *)(slots[entry]))
#define PLAY_DEALLOCATE_SIZED(SYMBOL)                                                              \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_number_function *)(slots[entry], size))
#define PLAY_DEALLOCATE_NOTHROW(SYMBOL)                                                            \
    DEALLOCATE(HT_##SYMBOL,                                                                        \
               FUNCTION(HT_##SYMBOL, delete_nothrow_function *)(slots[entry], &nothrow))
#define PLAY_DEALLOCATE_ALIGNED(SYMBOL)                                                            \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_number_function *)(slots[entry], EXTRA(0)))
#define PLAY_DEALLOCATE_ALIGNED_NOTHROW(SYMBOL)                                                    \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_aligned_nothrow_function *)(              \
                                slots[entry], EXTRA(0), &nothrow))
// free_aligned_sized() takes the alignment before the size; operator delete takes it after the
// size.
#define PLAY_FREE_ALIGNED_SIZED(SYMBOL)                                                            \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_sized_aligned_function *)(                \
                                slots[entry], EXTRA(0), size))
#define PLAY_DEALLOCATE_SIZED_ALIGNED(SYMBOL)                                                      \
    DEALLOCATE(HT_##SYMBOL, FUNCTION(HT_##SYMBOL, delete_sized_aligned_function *)(                \
                                slots[entry], size, EXTRA(0)))

// Allocates a preexisting block. The program's call was not recorded.
#define PLAY_PREEXISTING(SYMBOL)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        char *new_ = player_allocate_preexisting((unsigned)EXTRA(1), EXTRA(0), size);              \
        if (UNLIKELY(!new_) && size)                                                               \
            player_refused(t, HT_PREEXISTING, size);                                               \
        else                                                                                       \
            fill_block(touch, t, (struct player_block){HT_PREEXISTING, entry, new_, 0, size});     \
        __atomic_store_n(&slots[entry], new_, __ATOMIC_RELAXED);                                   \
    } while (0)

#define PLAY_WAIT(SYMBOL) wait_for(t, &t->waits, (uint32_t)size, EXTRA(0))
#define PLAY_COUPLE(SYMBOL)                                                                        \
    do {                                                                                           \
        if (player.results->task.coupled && size == t->number)                                     \
            player_wait_for_exits(EXTRA(0));                                                       \
        else if (player.results->task.coupled)                                                     \
            wait_for(t, &t->coupled_waits, (uint32_t)size, EXTRA(0));                              \
    } while (0)
#define PLAY_SAMPLE(SYMBOL)   player_sample(word >> 8, EXTRA(0), true)
#define PLAY_COUNT(SYMBOL)    player_sample(word >> 8, EXTRA(0), false)
#define PLAY_STATS(SYMBOL)    player_stats()
#define PLAY_TRIM(SYMBOL)     player_trim()
#define PLAY_SNAPSHOT(SYMBOL) player_snapshot(RESULTS_SNAPSHOT_OP)
#define PLAY_SWITCH(SYMBOL)   player_switch((uint32_t)(word >> 9), word &PLAN_SWITCH_EXITED)
#define PLAY_PACE(SYMBOL)                                                                          \
    do {                                                                                           \
        player_pace(t, word >> 8);                                                                 \
        if (timed)                                                                                 \
            player_set_gap(t, word >> 8, t->calls + (uint64_t)(pc - player.words));                \
    } while (0)
#define PLAY_TOUCH(SYMBOL)                                                                         \
    do {                                                                                           \
        t->touches = true;                                                                         \
        t->touch_pages = word >> 8;                                                                \
        t->touch_front_kib = (uint32_t)EXTRA(0);                                                   \
        t->touch_late = EXTRA(0) >> 32;                                                            \
    } while (0)
#define PLAY_TOUCH_LATE(SYMBOL)                                                                    \
    do {                                                                                           \
        if (touch == RESULTS_TOUCH_PAGE)                                                           \
            touch_late(t, slots[entry], size, EXTRA(0), EXTRA(1));                                 \
    } while (0)
#define PLAY_START_THREAD(SYMBOL) player_start_thread(t, (uint32_t)size, entry)
#define PLAY_SKIPPED(SYMBOL)
#define PLAY_JUMP(SYMBOL)                                                                          \
    do {                                                                                           \
        t->calls -= word >> 8;                                                                     \
        pc += word >> 8;                                                                           \
    } while (0)

// The inner op shares its first word with the WIDE op.
#define PLAY_WIDE(SYMBOL)                                                                          \
    do {                                                                                           \
        t->calls++;                                                                                \
        op = plan_op_of(word >> 8);                                                                \
        entry = EXTRA(0);                                                                          \
        size = EXTRA(1);                                                                           \
        pc += extra_words;                                                                         \
        goto again;                                                                                \
    } while (0)
#define PLAY_NEXT_SEGMENT(SYMBOL)                                                                  \
    do {                                                                                           \
        publish(t, pc);                                                                            \
        count_to(t, pc);                                                                           \
        pc = player_next_segment(t);                                                               \
        if (!pc)                                                                                   \
            return;                                                                                \
        count_from(t, pc);                                                                         \
    } while (0)
#define PLAY_STOP(SYMBOL)                                                                          \
    do {                                                                                           \
        count_to(t, pc);                                                                           \
        return;                                                                                    \
    } while (0)

// Count a thread's calls. Calls of one word cost nothing extra. All words between count_from() and
// count_to() count as calls. The loop subtracts extra words, and ops that are not calls.
ALWAYS_INLINE void count_from(struct player_thread *t, const uint64_t *pc)
{
    t->calls -= (uint64_t)(pc - player.words);
}

ALWAYS_INLINE void count_to(struct player_thread *t, const uint64_t *pc)
{
    t->calls += (uint64_t)(pc - player.words);
}

ALWAYS_INLINE void player_loop(struct player_thread *t, const uint64_t *pc, const bool timed,
                               const enum results_touch touch)
{
    struct results_position *const at = t->at;
    void **const slots = player.slot_table;
    uint64_t word, entry, size;
    enum plan_op op;
    for (;;) {
        NEXT();
    fast_malloc:
        ALLOCATE(HT_MALLOC, plan_size_of(word), 0, malloc(plan_size_of(word)));
        NEXT();
    fast_free:
        DEALLOCATE(HT_FREE, free(slots[entry]));
        NEXT();
    any:
        op = plan_op_of(word);
        size = plan_size_of(word);
    again:
        switch (op) {
#define HT_X(number, SYMBOL, kind, numbered, words, handler)                                       \
    case PLAN_##SYMBOL: {                                                                          \
        enum { extra_words = words };                                                              \
        if ((kind) == 0)                                                                           \
            t->calls -= 1 + extra_words;                                                           \
        PLAY_##handler(SYMBOL);                                                                    \
        pc += extra_words;                                                                         \
        if ((kind) != 0 && extra_words > 0)                                                        \
            t->calls -= extra_words;                                                               \
        if (numbered)                                                                              \
            break;                                                                                 \
        continue;                                                                                  \
    }
            PLAN_OPS(HT_X)
#undef HT_X
        case PLAN_OP_LIMIT:
        default: // plans contain no other ops, so the jump table needs no range check
            __builtin_unreachable();
        }
        PUBLISH();
    }
}

// The loop is aligned, so that its speed does not depend on the code before it.
#define LOOP(name, timed, touch)                                                                   \
    __attribute__((aligned(64))) static void name(struct player_thread *t, const uint64_t *from)   \
    {                                                                                              \
        player_loop(t, from, timed, touch);                                                        \
    }
LOOP(play_page, false, RESULTS_TOUCH_PAGE)
LOOP(play_none, false, RESULTS_TOUCH_NONE)
LOOP(play_all, false, RESULTS_TOUCH_ALL)
LOOP(play_usable, false, RESULTS_TOUCH_USABLE)
LOOP(play_verify, false, RESULTS_TOUCH_VERIFY)
LOOP(play_timed_page, true, RESULTS_TOUCH_PAGE)
LOOP(play_timed_none, true, RESULTS_TOUCH_NONE)
LOOP(play_timed_all, true, RESULTS_TOUCH_ALL)

void player_play(struct player_thread *t, const uint64_t *from)
{
    static void (*const loops[2][5])(struct player_thread *, const uint64_t *) = {
        {[RESULTS_TOUCH_PAGE] = play_page,
         [RESULTS_TOUCH_NONE] = play_none,
         [RESULTS_TOUCH_ALL] = play_all,
         [RESULTS_TOUCH_USABLE] = play_usable,
         [RESULTS_TOUCH_VERIFY] = play_verify},
        {[RESULTS_TOUCH_PAGE] = play_timed_page,
         [RESULTS_TOUCH_NONE] = play_timed_none,
         [RESULTS_TOUCH_ALL] = play_timed_all,
         [RESULTS_TOUCH_USABLE] = play_usable,
         [RESULTS_TOUCH_VERIFY] = play_verify},
    };
    count_from(t, from);
    loops[player.results->task.timed != 0][player.results->task.touch % 5](t, from);
}
