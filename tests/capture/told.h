// Reports of a test program's calls, in the format of trace_lines.
//
// Between told_begin and told_end, a thread prints a line for each of its calls, in order, and
// makes no other calls: stdout has a static buffer, so printing does not allocate. Programs that
// only count calls use told_count, with sizes of TOLD_SIZE.
#pragma once

#include "heaptape/heaptape.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Returns a size that no other code uses: a multiple of 1009, plus 5, from 5050 on.
#define TOLD_SIZE(n) ((size_t)1009 * ((n) + 5) + 5)

// Prevents the compiler from removing or merging calls.
#define TOLD_HIDE(value) __asm__ volatile("" : "+r"(value))

static inline void told_begin(void)
{
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    heaptape_mark("begin");
}

static inline void told_end(void)
{
    heaptape_mark("end");
    fflush(stdout);
}

// Prints a call with the columns: kind ptr size count align result error value
static inline void told(const char *kind, const void *ptr, size_t size, size_t count, size_t align,
                        const void *result, int error)
{
    printf("%s %#jx %zu %zu %zu %#jx %d 0\n", kind, (uintmax_t)(uintptr_t)ptr, size, count, align,
           (uintmax_t)(uintptr_t)result, error);
}

// Prints kind, size and count with a single write, so that lines of processes do not mix.
static inline void told_count(const char *kind, size_t size, unsigned long n)
{
    char line[128];
    int bytes = snprintf(line, sizeof line, "%s %zu %lu\n", kind, size, n);
    if (write(1, line, (size_t)bytes) != bytes)
        errno = 0; // ignores a closed stdout
}
