// Uses large blocks in the way that its argument names. Prints the expected numbers of pages of
// each block: all pages, used pages, and used pages at the start.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 4096, PAGE = 4096, BYTES = PAGES * PAGE };

// Returns the first whole page of the block, which is called page 0. The bytes before page 0 share
// a page with other blocks.
static char *first_page(char *block)
{
    return (char *)(((uintptr_t)block + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

static void use(char *block, int from, int to, int step)
{
    for (int i = from; i < to; i += step)
        ((volatile char *)first_page(block))[(size_t)i * PAGE] = 1;
}

static int look(const char *block)
{
    int sum = 0;
    for (int i = 0; i < PAGES; i++)
        sum += ((const volatile char *)first_page((char *)block))[(size_t)i * PAGE];
    return sum;
}

static void end(void *block, int used, int front)
{
    printf("%d %d\n", used, front);
    errno = 77;
    free(block);
    if (errno != 77)
        _exit(3);
}

static void *take(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        _exit(2);
    return block;
}

// Uses CPU time, because the recorder samples the memory of a program by CPU time.
static void work(void)
{
    for (clock_t from = clock(); clock() - from < CLOCKS_PER_SEC / 4;)
        continue;
}

// Calls the allocator, because the library measures live blocks during calls.
static void call(void)
{
    for (clock_t from = clock(); clock() - from < CLOCKS_PER_SEC / 4;)
        free(take(100));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    char *block;
    // "recycled" keeps glibc's dynamic threshold, which grows with freed blocks, so that later
    // blocks reuse the memory of earlier ones.
    if (strcmp(how, "recycled") != 0)
        mallopt(M_MMAP_THRESHOLD, 1 << 20);
    if (strcmp(how, "recycled") == 0) {
        // The first free raises the threshold, so the second block comes from the heap. The third
        // reuses the memory of the second.
        for (int i = 0; i < 2; i++) {
            block = take(BYTES + PAGE);
            use(block, 0, PAGES, 1);
            end(block, PAGES, PAGES);
        }
        block = take(BYTES + PAGE);
        use(block, 0, PAGES / 2, 1);
        end(block, 0, 0);
    } else if (strcmp(how, "malloc") == 0) {
        block = take(BYTES + PAGE);
        use(block, 0, 3, 1);
        end(block, 3, 3);
        block = take(BYTES + PAGE);
        use(block, 0, PAGES / 2, 1);
        end(block, PAGES / 2, PAGES / 2);
        block = take(BYTES + PAGE);
        use(block, 7, PAGES, 8);
        end(block, PAGES / 8, 0);
        block = take(BYTES + PAGE);
        end(block, 0, 0);
    } else if (strcmp(how, "huge") == 0) {
        // The block has more pages than the library queries in one system call.
        block = take(3 * BYTES + PAGE);
        use(block, 0, 2 * PAGES + 5, 1);
        use(block, 2 * PAGES + 6, 3 * PAGES, 2);
        end(block, 2 * PAGES + 5 + PAGES / 2 - 3, 2 * PAGES + 5);
        block = calloc(3, BYTES + PAGE);
        use(block, 0, PAGES, 1);
        end(block, PAGES, PAGES);
    } else if (strcmp(how, "calloc") == 0) {
        block = calloc(1, BYTES + PAGE);
        end(block, 0, 0);
        block = calloc(PAGES + 1, PAGE);
        use(block, 0, PAGES / 4, 1);
        end(block, PAGES / 4, PAGES / 4);
        // The program only reads these pages, so they map the zero page.
        block = calloc(1, BYTES + PAGE);
        if (look(block))
            return 4;
        end(block, 0, 0);
    } else if (strcmp(how, "realloc") == 0) {
        block = take(BYTES + PAGE);
        use(block, 0, 100, 1);
        printf("100 100\n");
        block = realloc(block, 2 * BYTES + PAGE);
        use(block, 0, 200, 1);
        printf("200 200\n");
        // A failed realloc leaves the block unchanged.
        if (realloc(block, SIZE_MAX / 4))
            return 5;
        use(block, 200, 300, 1);
        end(block, 300, 300);
    } else if (strcmp(how, "live") == 0 || strcmp(how, "_exit") == 0) {
        block = take(BYTES + PAGE);
        use(block, 0, 50, 1);
        printf("50 50\n");
        fflush(stdout);
        if (how[0] == '_')
            _exit(0);
    } else if (strcmp(how, "protected") == 0) {
        block = calloc(1, BYTES + PAGE);
        use(block, 0, 8, 1);
        // The program cannot read these pages; they count as used.
        mprotect(first_page(block) + 4 * PAGE, 4 * PAGE, PROT_NONE);
        end(block, 8, 8);
    } else if (strcmp(how, "late") == 0 || strcmp(how, "calls") == 0) {
        // Pages are first used long after the allocation, in two steps.
        void (*pass_time)(void) = strcmp(how, "late") == 0 ? work : call;
        block = take(BYTES + PAGE);
        for (int half = 0; half < 2; half++) {
            pass_time();
            use(block, half * PAGES / 2, (half + 1) * PAGES / 2, 1);
        }
        pass_time();
        end(block, PAGES, PAGES);
    } else if (strcmp(how, "whole") == 0) {
        // A block of 40,000 bytes contains 8 or 9 whole pages.
        for (int i = 0; i < 400; i++)
            memset(take(40000), 1, 40000);
    } else if (strcmp(how, "small") == 0) {
        block = take(16383);
        memset(block, 1, 16383);
        free(block);
        block = take(16384);
        memset(block, 1, 16384);
        free(block);
    } else if (strcmp(how, "buffers") == 0) {
        // The blocks are like buffers of connections that each contain a short request. The library
        // does not measure all of them.
        for (int i = 0; i < 400; i++)
            memset(take(16390), 1, 100);
    } else if (strcmp(how, "starts") == 0) {
        // In the first blocks, only the bytes before the first whole page are used. The other
        // blocks are unused.
        for (int i = 0; i < 200; i++)
            memset(take(40000), 1, 100);
        for (int i = 0; i < 200; i++)
            if (!calloc(1, 41000))
                _exit(2);
        // Measuring all of these blocks takes 1 ms, or 2 ms on a busy machine. The library limits
        // the share of time, so the program waits first.
        usleep(400000);
    }
    return 0;
}
