// forkloop N: forks N children one by one, each with a few events
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int c, char **v)
{
    int n = atoi(v[1]);
    FILE *f = fopen("forkloop.n", "w");
    for (int i = 0; i < n; i++) {
        if (fork() == 0) {
            for (int j = 0; j < 100; j++) {
                void *p = malloc(100);
                __asm__ volatile("" ::"r"(p) : "memory");
                free(p);
            }
            _exit(0);
        }
        wait(0);
        rewind(f);
        fprintf(f, "%d\n", i + 1);
        fflush(f);
        usleep(2000);
    }
    return 0;
}
