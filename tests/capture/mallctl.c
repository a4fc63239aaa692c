// Calls jemalloc's mallctl. The exit status is the result of the second call. If the allocator is
// not jemalloc, the exit status is the error of the call.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));

int main(void)
{
    uint64_t epoch = 1;
    size_t allocated = 0, size = sizeof allocated;
    free(malloc(100));
    if (!mallctl)
        return 99;
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    int rc = mallctl("stats.allocated", &allocated, &size, NULL, 0);
    return rc ? rc : allocated == 0;
}
