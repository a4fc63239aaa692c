#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    free(malloc(1));
    usleep(8000000);
    for (long i = 0; i < 1000000; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    FILE *f = fopen("idle.done", "w");
    fputs("done\n", f);
    fclose(f);
    return 0;
}
