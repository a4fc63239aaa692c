// Calls malloc and an allocator with other function names until SIGUSR1. Blocks of the other
// allocator are 1000 bytes or larger. Blocks of malloc are 77 bytes long.
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *pre_malloc(size_t size);
void *pre_calloc(size_t count, size_t size);
void *pre_realloc(void *old, size_t size);
void pre_free(void *p);

enum { FIRST = 1000, SIZES = 5000, KEPT = 64 };

static atomic_int stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

int main(void)
{
    void *kept[KEPT] = {0};
    signal(SIGUSR1, on_signal);
    for (unsigned i = 0; i < KEPT; i++)
        kept[i] = pre_malloc(300);
    printf("ready\n");
    fflush(stdout);
    for (unsigned i = 0; !stop; i++) {
        pre_free(kept[i % KEPT]);
        kept[i % KEPT] = pre_malloc(FIRST + i % SIZES);
        pre_free(pre_realloc(pre_calloc(3, 40), 50));
        free(malloc(77));
        if (i % 100 == 0)
            usleep(2000);
    }
    for (unsigned i = 0; i < KEPT; i++)
        pre_free(kept[i]);
    printf("the same\n");
    return 0;
}
