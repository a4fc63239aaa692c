// idle [FILE]: waits for 8 s, or for the file, between the first call and the other calls
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int c, char **v)
{
    free(malloc(1));
    if (c == 1)
        usleep(8000000);
    while (c > 1 && access(v[1], F_OK))
        usleep(1000);
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
