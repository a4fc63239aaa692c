// A library that allocates in its constructor, in its destructor, and in its function.
#include "told.h"

void at_load_call(void);

static void *kept;

static __attribute__((constructor)) void at_load(void)
{
    kept = malloc(TOLD_SIZE(20));
    told_count("malloc", TOLD_SIZE(20), 1);
}

static __attribute__((destructor)) void at_unload(void)
{
    free(kept);
    told_count("free", TOLD_SIZE(20), 1);
    free(malloc(TOLD_SIZE(21)));
    told_count("malloc", TOLD_SIZE(21), 1);
    told_count("free", TOLD_SIZE(21), 1);
}

void at_load_call(void)
{
    free(malloc(TOLD_SIZE(22)));
    told_count("malloc", TOLD_SIZE(22), 1);
    told_count("free", TOLD_SIZE(22), 1);
}
