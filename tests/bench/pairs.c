// Allocates and frees blocks until SIGTERM: pairs LIVE. Each pair frees the oldest of LIVE blocks
// and allocates another one of 16 to 527 bytes, or of 100 bytes if LIVE is 1. On SIGUSR1, prints
// the time of a pair since the last SIGUSR1, in ns: the minimum and the median of slices of 20,000
// pairs, and their number.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 20000, MAX_SLICES = 1 << 16, MAX_LIVE = 1 << 22 };

static volatile sig_atomic_t asked, ended;
static float slices[MAX_SLICES];
static void *live[MAX_LIVE];

static void on_signal(int sig)
{
    if (sig == SIGUSR1)
        asked = 1;
    else
        ended = 1;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run_slice(unsigned n_live, uint64_t *random)
{
    static unsigned at;
    double begun = now_ns();
    for (unsigned i = 0; i < PAIRS; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        free(live[at]);
        live[at] = malloc(n_live == 1 ? 100 : 16 + (*random >> 55));
        at = at + 1 < n_live ? at + 1 : 0;
    }
    return (now_ns() - begun) / PAIRS;
}

int main(int argc, char **argv)
{
    unsigned n_live = argc > 1 ? (unsigned)atoi(argv[1]) : 1, n = 0;
    uint64_t random = 1;
    if (n_live < 1 || n_live > MAX_LIVE)
        return 2;
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    printf("ready\n");
    fflush(stdout);
    while (!ended) {
        double ns = run_slice(n_live, &random);
        if (n < MAX_SLICES)
            slices[n++] = (float)ns;
        if (asked) {
            asked = 0;
            qsort(slices, n, sizeof *slices, compare);
            printf("%.2f %.2f %u\n", slices[0], slices[n / 2], n);
            fflush(stdout);
            n = 0;
        }
    }
    return 0;
}
