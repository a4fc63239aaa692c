// A library that service loads again and again. Its constructor allocates.
#include <stdlib.h>

static void *volatile block;

static __attribute__((constructor)) void at_start(void)
{
    block = malloc(8887);
}

static __attribute__((destructor)) void at_end(void)
{
    free(block);
}
void service_call(void);
void service_call(void)
{
    free(malloc(8888));
}

void *service_take(size_t bytes);
void *service_take(size_t bytes)
{
    return malloc(bytes);
}

void service_give(void *given);
void service_give(void *given)
{
    free(given);
}
