// A library to preload. At random allocations it also unwinds the stack with libunwind. When the
// process exits, it appends a line to the file $UNWIND_COMPARED: the program, and the numbers of
// compared stacks, of stacks that differ, of stacks found in the cache, and of frames.
#include "capture/unwind/unwind.h"
#include "trace/codec.h"

#define UNW_LOCAL_ONLY
#include <errno.h>
#include <fcntl.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t n, size_t size),
    *__libc_realloc(void *p, size_t size);
extern void *__libc_stack_end;

enum { ONE_OF = 32 };

static __thread struct unwind_memory memory;
static __thread bool busy;
static __thread uint64_t random_state;
static _Atomic uint64_t compared, differ, known, frames;

static bool is_chosen(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33 < (1ull << 31) / ONE_OF;
}

// Walks from the return address `caller`.
static uint32_t walk_theirs(uint64_t caller, uint64_t *codes)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t pc;
    uint32_t n = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    while (n < UNWIND_DEPTH && unw_step(&cursor) > 0 && !unw_get_reg(&cursor, UNW_REG_IP, &pc) &&
           pc) {
        if (n || pc == caller)
            codes[n++] = pc;
    }
    return n;
}

static void print_difference(const struct unwind_stack *ours, const uint64_t *theirs, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && i < ours->n && ours->codes[i] == theirs[i])
        i++;
    dprintf(STDERR_FILENO,
            "unwind: %u and %u frames, frame %u, behind %#lx, is %#lx and not %#lx\n", ours->n, n,
            i, i ? (long)theirs[i - 1] : 0, i < ours->n ? (long)ours->codes[i] : 0,
            i < n ? (long)theirs[i] : 0);
}

// Compares the stacks from the caller of the function with this frame. heaptape's unwinder runs at
// every call, as if every call were recorded.
static __attribute__((noinline)) void compare(const uintptr_t *frame)
{
    struct unwind_stack stack;
    struct unwind_cursor c = {.from = {frame[1], (uintptr_t)(frame + 2), frame[0]},
                              .low = (uintptr_t)frame};
    bool is_main = getpid() == gettid();
    c.high = is_main ? (uintptr_t)__libc_stack_end & ~(uintptr_t)7
                     : (uintptr_t)__builtin_thread_pointer();
    c.memory = &memory;
    // Skip the stack of a coroutine or a signal handler.
    if (c.low >= c.high || c.high - c.low > 8u << 20)
        return;
    if (!memory.age) {
        unwind_memory_init(&memory);
        random_state = (uintptr_t)&memory ^ (uint64_t)getpid() << 20;
    }
    uint32_t made = memory.made;
    uint64_t site = unwind_walk_site(&c, UNWIND_DEPTH);
    bool was_known = memory.made == made;
    if (!is_chosen())
        return;
    uint64_t theirs[UNWIND_DEPTH], want = 0;
    uint32_t n = walk_theirs(frame[1], theirs);
    for (uint32_t i = n; i-- > 0;)
        want = codec_site(want, theirs[i]);
    compared++;
    known += was_known;
    frames += n;
    if (site != want) {
        c.memory = NULL;
        unwind_walk(&c, UNWIND_DEPTH, &stack);
        if (differ++ < 10)
            print_difference(&stack, theirs, n);
    }
}

static __attribute__((noinline)) void called(const uintptr_t *frame)
{
    int error = errno;
    if (!busy) {
        busy = true;
        compare(frame);
        busy = false;
    }
    errno = error;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    called(__builtin_frame_address(0));
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    called(__builtin_frame_address(0));
    return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
    called(__builtin_frame_address(0));
    return __libc_realloc(p, size);
}

__attribute__((destructor)) static void finish(void)
{
    const char *path = getenv("UNWIND_COMPARED");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    busy = true;
    if (fd < 0)
        return;
    dprintf(fd, "%s %lu %lu %lu %lu\n", program_invocation_short_name, (long)compared, (long)differ,
            (long)known, (long)frames);
    close(fd);
}
