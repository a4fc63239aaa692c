// A program whose main thread exits immediately by pthread_exit while another thread continues.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static long n;
static void *go(void *a)
{
    (void)a;
    usleep(1500000);
    for (long i = 0; i < n; i++) {
        void *p = malloc(5555);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    printf("done\n");
    fflush(stdout);
    _exit(0);
}
int main(int c, char **v)
{
    n = atol(v[1]);
    pthread_t t;
    pthread_create(&t, 0, go, 0);
    pthread_exit(0);
}
