// Preloaded: lets the Nth call of a function fail in heaptape itself, not in what it starts. HEAPTAPE_FAULT=WHAT:N, of WHAT
//   memory malloc, calloc, realloc: ENOMEM    mmap: ENOMEM    open: EMFILE    fork, thread: EAGAIN
//   read, write: EIO    read-interrupted, write-interrupted: EINTR    read-short, write-short: a byte
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS // both names of open and mmap are defined here
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static char what[32];
static long n;
static pid_t self;
static _Atomic long calls;

static __attribute__((constructor)) void begin(void)
{
    const char *fault = getenv("HEAPTAPE_FAULT");
    if (fault && strcmp(program_invocation_short_name, "heaptape") == 0 &&
        sscanf(fault, "%31[a-z-]:%ld", what, &n) == 2)
        self = getpid();
}

static int fails(const char *name)
{
    return self && strcmp(name, what) == 0 && getpid() == self && atomic_fetch_add(&calls, 1) + 1 == n;
}

#define FAIL(name, error, result)                                                                                      \
    if (fails(name))                                                                                                   \
    return errno = (error), (result)
#define NEXT(f) __typeof__(&f) next = (__typeof__(&f))dlsym(RTLD_NEXT, #f)

void *malloc(size_t size)
{
    FAIL("memory", ENOMEM, NULL);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    FAIL("memory", ENOMEM, NULL);
    return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    FAIL("memory", ENOMEM, NULL);
    return __libc_realloc(p, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    FAIL("mmap", ENOMEM, MAP_FAILED);
    return next(at, size, protection, flags, fd, offset);
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    va_list list;
    va_start(list, flags);
    int mode = va_arg(list, int);
    va_end(list);
    FAIL("open", EMFILE, -1);
    return next(path, flags, mode);
}

pid_t fork(void)
{
    NEXT(fork);
    FAIL("fork", EAGAIN, -1);
    return next();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    NEXT(pthread_create);
    if (fails("thread"))
        return EAGAIN;
    return next(thread, attr, start, arg);
}

ssize_t read(int fd, void *to, size_t size)
{
    NEXT(read);
    FAIL("read", EIO, -1);
    FAIL("read-interrupted", EINTR, -1);
    return next(fd, to, size > 1 && fails("read-short") ? 1 : size);
}

ssize_t write(int fd, const void *from, size_t size)
{
    NEXT(write);
    if (fd > 2) {
        FAIL("write", EIO, -1);
        FAIL("write-interrupted", EINTR, -1);
    }
    return next(fd, from, fd > 2 && size > 1 && fails("write-short") ? 1 : size);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
