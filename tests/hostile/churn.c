// churn N: calls malloc and free N times, then prints "done"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int c, char **v)
{
    long n = c > 1 ? atol(v[1]) : 1000000;
    for (long i = 0; i < n; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    printf("done %ld\n", n);
    return 0;
}
