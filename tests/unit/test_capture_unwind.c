// Compares the unwinder with libgcc's backtrace() in all kinds of frames.
#include "capture/unwind/unwind.h"
#include "trace/codec.h"
#include "unit.h"

#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct unwind_memory memory;
static unsigned compared, known;
static bool in_handler;

// Where a signal interrupted the code, libgcc reports the address of the instruction, and heaptape
// reports this address plus 1.
static void compare_codes(const struct unwind_stack *ours, void *const *theirs)
{
    unsigned interrupted = 0;
    for (uint32_t i = 0; i < ours->n; i++) {
        uint64_t differs = ours->codes[i] - (uintptr_t)theirs[i];
        assert_true(differs == 0 || (differs == 1 && in_handler));
        interrupted += differs == 1;
    }
    assert_in_range(interrupted, 0, 1);
}

static void compare_sites(const struct unwind_stack *s)
{
    uint64_t site = 0;
    for (uint32_t i = s->n; i-- > 0;) {
        site = codec_site(site, s->codes[i]);
        assert_int_equal(site, s->sites[i]);
    }
}

// Compares both stacks, starting at the caller.
static __attribute__((noinline)) void compare(void)
{
    struct unwind_stack stack;
    void *theirs[2 * UNWIND_DEPTH];
    int all = backtrace(theirs, 2 * UNWIND_DEPTH), first = 0;
    void *caller = __builtin_return_address(0);
    const uintptr_t *frame = __builtin_frame_address(0);
    struct unwind_cursor c = {.from = {(uintptr_t)caller, (uintptr_t)(frame + 2), frame[0]},
                              .low = (uintptr_t)frame,
                              .high = (uintptr_t)frame + (4 << 20)};
    // The stack ends above the environment.
    if (c.high > (uintptr_t)environ)
        c.high = (uintptr_t)environ & ~(uintptr_t)7;
    while (first < all && theirs[first] != caller)
        first++;
    assert_true(first < all);
    uint32_t made = memory.made;
    c.memory = &memory;
    uint64_t site = unwind_walk_site(&c, UNWIND_DEPTH);
    known += memory.made == made;
    for (int kept = 1; kept >= 0; kept--) {
        c.memory = kept ? &memory : NULL;
        unwind_walk(&c, UNWIND_DEPTH, &stack);
        assert_int_equal(stack.n, all - first < UNWIND_DEPTH ? all - first : UNWIND_DEPTH);
        compare_codes(&stack, theirs + first);
        compare_sites(&stack);
        assert_int_equal(site, stack.sites[0]);
    }
    compared++;
}

static volatile int sink;

static __attribute__((noinline)) void leaf(int n)
{
    compare();
    sink += n;
}

// The unwind rule of this frame does not fit into a cache entry.
static __attribute__((noinline)) void with_big_frame(int n)
{
    volatile char room[2 << 20];
    room[0] = room[sizeof room - 1] = (char)n;
    leaf(n + room[0]);
    sink += room[sizeof room - 1];
}

static __attribute__((noinline)) void with_alloca(int n)
{
    char *room = __builtin_alloca((size_t)(n % 7 + 1) * 40);
    memset(room, n, 16);
    leaf(n);
    sink += room[n % 16];
}

// Calls with_big_frame from a frame that the cache has not seen.
static __attribute__((noinline)) void at_another_place(int n)
{
    volatile char *room = __builtin_alloca((size_t)n * 64 + 16);
    room[0] = (char)n;
    with_big_frame(n);
    sink += room[0];
}

static __attribute__((noinline)) void realigned(int n)
{
    _Alignas(64) char room[128];
    memset(room, n, sizeof room);
    with_alloca(n);
    sink += room[n % 128];
}

static __attribute__((noinline)) void deep(int n)
{
    volatile char room[3000];
    room[n] = (char)n;
    if (n == 0)
        realigned(1);
    else if (n % 3 == 0)
        with_alloca(n);
    if (n > 0)
        deep(n - 1);
    sink += room[n];
}

static int by_value(const void *a, const void *b)
{
    compare();
    return *(const int *)a - *(const int *)b;
}

static void handler(int signal)
{
    in_handler = true;
    realigned(signal);
    in_handler = false;
}

static void test_frames(void **state)
{
    (void)state;
    unwind_memory_init(&memory);
    for (int round = 0; round < 20; round++) {
        leaf(round);
        deep(round);
        realigned(round);
        at_another_place(round);
        deep(100);
    }
    // deeper than the limit
    deep(200);
    deep(10);
    assert_in_range(compared, 500, UINT32_MAX);
    // Most stacks of the later rounds must come from the cache.
    assert_in_range(known, compared / 4, compared);
}

// Unwinds through qsort of libc, which is compiled without frame pointers.
static void test_through_libc(void **state)
{
    (void)state;
    int items[40];
    for (int i = 0; i < 40; i++)
        items[i] = (i * 37) % 40;
    qsort(items, 40, sizeof *items, by_value);
    qsort(items, 40, sizeof *items, by_value);
}

static void test_signal(void **state)
{
    (void)state;
    struct sigaction a = {.sa_handler = handler};
    sigaction(SIGUSR1, &a, NULL);
    for (int i = 0; i < 5; i++) {
        raise(SIGUSR1);
        leaf(i);
    }
}

// The unwinder must not read beyond the stack or follow addresses outside code.
static void test_bounds(void **state)
{
    (void)state;
    uint64_t words[16] = {0};
    struct unwind_stack stack;
    for (int i = 0; i < 16; i++)
        words[i] = (uintptr_t)words + 8 * (uint64_t)i;
    for (uint64_t fp = 0; fp < 2000; fp += 1) {
        struct unwind_cursor c = {.from = {.pc = (uintptr_t)words + 1,
                                           .sp = (uintptr_t)words,
                                           .fp = (uintptr_t)words + fp},
                                  .low = (uintptr_t)words,
                                  .high = (uintptr_t)(words + 16)};
        unwind_walk(&c, UNWIND_DEPTH, &stack);
        assert_in_range(stack.n, 1, 16);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_frames),
    cmocka_unit_test(test_through_libc),
    cmocka_unit_test(test_signal),
    cmocka_unit_test(test_bounds),
};

UNIT_MAIN(tests)
