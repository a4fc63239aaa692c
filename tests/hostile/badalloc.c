#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static unsigned long n;
static const char *mode(void)
{
    static const char *m;
    if (!m) {
        m = getenv("BADMODE");
        if (!m)
            m = "";
    }
    return m;
}
#define IS(s) (!strcmp(mode(), s))
static void *prev;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static void *thr(void *a)
{
    for (;;)
        sleep(1);
    return a;
}
static int started;
static void trouble(size_t z)
{
    unsigned long i = __sync_add_and_fetch(&n, 1);
    if (i < 3000)
        return;
    if (IS("crash") && i == 3000)
        *(volatile int *)8 = 1;
    if (IS("abort") && i == 3000)
        abort();
    if (IS("exit") && i == 3000)
        exit(0);
    if (IS("_exit") && i == 3000)
        _exit(0);
    if (IS("_exit7") && i == 3000)
        _exit(7);
    if (IS("deadlock") && i == 3000) {
        pthread_mutex_lock(&mu);
        pthread_mutex_lock(&mu);
    }
    if (IS("spin") && i == 3000)
        for (;;)
            ;
    if (IS("print") && i % 100 == 0) {
        if (write(1, "{\"hello\":1}\nnoise from the allocator\n", 37) < 0)
            _exit(1);
    }
    if (IS("printerr") && i == 3000) {
        for (int k = 0; k < 3000; k++)
            if (write(2, "noise from the allocator\n", 25) < 0)
                _exit(1);
    }
    if (IS("thread") && !started) {
        started = 1;
        pthread_t t;
        pthread_create(&t, 0, thr, 0);
    }
    if (IS("slow"))
        usleep(200);
    if (IS("closefds") && i == 3000)
        for (int f = 3; f < 100; f++)
            close(f);
    if (IS("fork") && i == 3000) {
        if (!fork()) {
            sleep(20);
            _exit(0);
        }
    }
    if (IS("killparent") && i == 3000)
        kill(getppid(), 15);
}
static void *give(void *p, size_t z, size_t al)
{
    if (n < 3000)
        return p;
    if (IS("null") && n % 50 == 0) {
        __libc_free(p);
        errno = ENOMEM;
        return 0;
    }
    if (IS("misalign") && n % 50 == 0)
        return (char *)__libc_malloc(z + 16) + 4;
    if (IS("overlap") && n % 50 == 0 && prev)
        return prev;
    if (IS("garbage") && n % 50 == 0)
        return (void *)0x123450;
    if (IS("readonly") && n % 50 == 0)
        return mmap(0, z + 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    prev = p;
    return p;
}
void *malloc(size_t z)
{
    trouble(z);
    return give(__libc_malloc(z), z, 16);
}
void free(void *p)
{
    if (IS("misalign") && ((uintptr_t)p & 15))
        return;
    if (p == prev && IS("overlap"))
        return;
    if ((IS("garbage") && p == (void *)0x123450) || IS("readonly") || IS("nofree"))
        return;
    __libc_free(p);
}
void *calloc(size_t a, size_t b)
{
    trouble(a * b);
    void *p = give(__libc_calloc(a, b), a * b, 16);
    if (p && IS("dirty") && n > 3000)
        memset(p, 7, a * b);
    return p;
}
void *realloc(void *p, size_t z)
{
    trouble(z);
    if (IS("realloclose") && n > 3000) {
        void *q = __libc_malloc(z);
        if (q)
            memset(q, 0, z);
        __libc_free(p);
        return q;
    }
    return __libc_realloc(p, z);
}
void *memalign(size_t a, size_t z)
{
    trouble(z);
    return give(__libc_memalign(a, z), z, a);
}
void *aligned_alloc(size_t a, size_t z)
{
    return memalign(a, z);
}
int posix_memalign(void **p, size_t a, size_t z)
{
    void *q = memalign(a, z);
    if (!q)
        return ENOMEM;
    *p = q;
    return 0;
}
