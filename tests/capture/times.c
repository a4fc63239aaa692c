// Allocates blocks of TIMES_SIZE bytes in bursts: times BURSTS. Computes and sleeps between bursts.
// Reads the counter before and after each call, and prints both readings of each call at the end.
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURST = 200, MAX_BURSTS = 1000, TIMES_SIZE = 4321 };

static uint64_t before[BURST * MAX_BURSTS], after[BURST * MAX_BURSTS];

static void compute(uint64_t ns)
{
    for (uint64_t end = clock_monotonic_ns() + ns; clock_monotonic_ns() < end;)
        ;
}

int main(int argc, char **argv)
{
    unsigned bursts = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    if (bursts > MAX_BURSTS)
        return 2;
    for (unsigned i = 0; i < bursts * BURST; i++) {
        if (i % BURST == 0 && i / BURST % 2)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        else if (i % (BURST / 4) == 0)
            compute(1000000);
        before[i] = clock_counter_ordered();
        void *volatile block = malloc(TIMES_SIZE);
        after[i] = clock_counter_ordered();
        free(block);
    }
    for (unsigned i = 0; i < bursts * BURST; i++)
        printf("%" PRIu64 " %" PRIu64 "\n", before[i], after[i]);
    return 0;
}
