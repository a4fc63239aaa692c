// manyprocs K N: forks K children. Each makes N pairs of malloc and free, and then waits for the
// others at a barrier.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int c, char **v)
{
    int k = atoi(v[1]);
    long n = atol(v[2]);
    _Atomic int *cnt = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < k; i++) {
        if (fork() == 0) {
            for (long j = 0; j < n; j++) {
                void *p = malloc(100);
                __asm__ volatile("" ::"r"(p) : "memory");
                free(p);
            }
            atomic_fetch_add(cnt, 1);
            while (*cnt < k)
                usleep(10000);
            _exit(0);
        }
    }
    for (int s = 0;; s++) {
        int d = *cnt;
        if (d == k)
            break;
        usleep(100000);
        if (s % 50 == 49)
            fprintf(stderr, "%d of %d done\n", d, k);
    }
    while (wait(0) > 0)
        ;
    printf("all done\n");
    return 0;
}
