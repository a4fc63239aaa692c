// What a test program tells of itself, in the form in which trace_lines prints it.
//
// Between told_begin and told_end, a thread prints a line for each of its calls, in order, and makes no others: stdout
// has a static buffer, so that printing is none. Programs that only count use told_count, with sizes of TOLD_SIZE.
#ifndef HEAPTAPE_TESTS_CAPTURE_TOLD_H
#define HEAPTAPE_TESTS_CAPTURE_TOLD_H

#include "heaptape/heaptape.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Sizes that nothing else uses: 5 above a multiple of 1009, from 5050 on.
#define TOLD_SIZE(n) ((size_t)1009 * ((n) + 5) + 5)

// Keeps the compiler from removing or merging calls.
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

// kind ptr size count align result error value
static inline void told(const char *kind, const void *ptr, size_t size, size_t count, size_t align,
                        const void *result, int error)
{
    printf("%s %#jx %zu %zu %zu %#jx %d 0\n", kind, (uintmax_t)(uintptr_t)ptr, size, count, align,
           (uintmax_t)(uintptr_t)result, error);
}

// One write, so that processes do not mix their lines: kind, size, how often.
static inline void told_count(const char *kind, size_t size, unsigned long n)
{
    char line[128];
    int bytes = snprintf(line, sizeof line, "%s %zu %lu\n", kind, size, n);
    if (write(1, line, (size_t)bytes) != bytes)
        errno = 0; // a program that has closed its output tells nothing
}

#endif
