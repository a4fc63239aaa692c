// manythreads N [refused|privileges]: starts N threads at once. With `refused`, first installs a
// filter that the kernel refuses. With `privileges`, first sets no_new_privs.
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static pthread_barrier_t b;
static void *go(void *a)
{
    (void)a;
    for (int i = 0; i < 50; i++) {
        void *p = malloc(100);
        __asm__ volatile("" ::"r"(p) : "memory");
        free(p);
    }
    pthread_barrier_wait(&b);
    return 0;
}
int main(int c, char **v)
{
    int n = atoi(v[1]);
    if (c > 2 && strcmp(v[2], "refused") == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == 0)
        return 1;
    if (c > 2 && strcmp(v[2], "privileges") == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 1;
    pthread_t *t = calloc(n, sizeof *t);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 32768);
    pthread_barrier_init(&b, 0, n + 1);
    struct timespec s, e;
    clock_gettime(CLOCK_MONOTONIC, &s);
    for (int i = 0; i < n; i++) {
        int r = pthread_create(t + i, &a, go, 0);
        if (r) {
            fprintf(stderr, "create %d: %s\n", i, strerror(r));
            return 1;
        }
    }
    pthread_barrier_wait(&b);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], 0);
    clock_gettime(CLOCK_MONOTONIC, &e);
    printf("%d threads, %.2f s\n", n, (e.tv_sec - s.tv_sec) + (e.tv_nsec - s.tv_nsec) * 1e-9);
    return 0;
}
