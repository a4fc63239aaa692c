#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    free(malloc(1));
    usleep(800000);
    for (long i = 0; i < 1000000; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    return 0;
}
