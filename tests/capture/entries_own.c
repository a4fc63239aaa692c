// A program with its own allocator, whose functions call each other. Makes CALLS calls of each
// function:
//   entries_own           waits for the file `go` before, and for the file `end` after the calls
//   entries_own tree      in this process, in a fork child, and in a program that it executes
//   entries_own once      without waiting
//   entries_own none      makes no calls
#include "when_told.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Prevents the compiler from inlining, cloning or replacing the function.
#define CALLED __attribute__((noipa))

enum { CALLS = 1000, HEADER = 16, POOL_BYTES = 256 << 20 };

static _Alignas(16) char pool[POOL_BYTES];
static size_t used;

CALLED void *memalign(size_t align, size_t size)
{
    align = align < HEADER ? HEADER : align;
    size_t from = __atomic_fetch_add(&used, size + align + 2 * HEADER, __ATOMIC_RELAXED);
    char *p = pool + from + HEADER;
    if (from + size + align + 2 * HEADER > sizeof pool)
        return NULL;
    p += -(uintptr_t)p & (align - 1);
    memcpy(p - sizeof size, &size, sizeof size);
    return p;
}

CALLED void *malloc(size_t size)
{
    return memalign(HEADER, size);
}

CALLED void free(void *p)
{
    if (p)
        ((size_t *)p)[-1] = 0;
}

CALLED void *calloc(size_t count, size_t size)
{
    void *p = malloc(count * size);
    return p ? memset(p, 0, count * size) : NULL;
}

CALLED void *realloc(void *old, size_t size)
{
    size_t had = 0;
    void *p = malloc(size);
    if (old)
        memcpy(&had, (char *)old - sizeof had, sizeof had);
    if (p && old)
        memcpy(p, old, had < size ? had : size);
    free(old);
    return p;
}

CALLED void *aligned_alloc(size_t align, size_t size)
{
    void *p = malloc(size + align);
    return (char *)p + (-(uintptr_t)p & (align - 1));
}

CALLED int posix_memalign(void **to, size_t align, size_t size)
{
    *to = memalign(align, size);
    return *to ? 0 : ENOMEM;
}

// Returns true if a call preserves the registers that free does not change. A compiler that sees
// the code of free can keep values in these registers during the call. It also does not have to
// align the stack for the call.
static bool keeps_registers(void)
{
    long sum = 10 + 10 + 11;
#ifdef __x86_64__
    void *p = malloc(778);
    __asm__ volatile("sub $136, %%rsp\n mov $10, %%r10\n mov $11, %%r11\n movq %%r10, %%xmm7\n"
                     "call free\n add $136, %%rsp\n movq %%xmm7, %0\n add %%r10, %0\n"
                     "add %%r11, %0\n"
                     : "=&b"(sum), "+D"(p)
                     :
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
                       "xmm7", "cc", "memory");
#endif
    return sum == 10 + 10 + 11;
}

static void call_all(void)
{
    void *aligned = NULL;
    if (!keeps_registers())
        _exit(2);
    FILE *file = fopen("/dev/null", "r"); // libc allocates
    if (!file || fclose(file))
        _exit(1);
    for (int i = 0; i < CALLS; i++) {
        char *p = calloc(3, 111);
        free(malloc(777));
        p = realloc(p, 888);
        free(p);
        if (posix_memalign(&aligned, 64, 999))
            _exit(1);
        free(aligned);
        p = aligned_alloc(64, 640);
        p[0] = 1;
    }
}

// Returns true if the child succeeds.
static bool wait_for(pid_t child)
{
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int call_in_tree(const char *program)
{
    call_all();
    pid_t child = fork();
    if (child == 0) {
        call_all();
        _exit(0);
    }
    bool good = wait_for(child);
    child = fork();
    if (child == 0) {
        execl(program, program, "once", (char *)NULL);
        _exit(3);
    }
    return !wait_for(child) || !good;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "none") == 0)
        return 0;
    if (argc == 2 && strcmp(argv[1], "tree") == 0)
        return call_in_tree(argv[0]);
    return when_told(argc, call_all);
}
