#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define N 6
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static void *box[64];
static void *th(void *a)
{
    uint64_t s = (uint64_t)(intptr_t)a * 7919 + 1;
    for (int i = 0; i < 6000; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        unsigned k = (s >> 33) % 64;
        pthread_mutex_lock(&mu);
        void *p = box[k];
        box[k] = 0;
        pthread_mutex_unlock(&mu);
        size_t n = (s >> 40) % 3 ? 140000 + (s >> 20) % 600000 : 10 + (s >> 20) % 3000;
        if (!p)
            p = malloc(n);
        else if ((s >> 50) & 1)
            p = realloc(p, n);
        else {
            free(p);
            p = 0;
        }
        if (p) {
            *(char *)p = 1;
            pthread_mutex_lock(&mu);
            void *q = box[k];
            box[k] = p;
            pthread_mutex_unlock(&mu);
            free(q);
        }
    }
    return 0;
}
int main()
{
    pthread_t t[N];
    for (long i = 0; i < N; i++)
        pthread_create(&t[i], 0, th, (void *)i);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], 0);
    for (int i = 0; i < 64; i++)
        free(box[i]);
    return 0;
}
