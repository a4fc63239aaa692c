// A preload library that makes the Nth call of a function fail in heaptape itself, not in the
// processes that it starts.
//   HEAPTAPE_FAULT=FUNCTION:HOW:N[:TIMES]  HOW is the name of an errno, or "short" to transfer one
//                                          byte; TIMES calls (default 1) fail from the Nth on
//   HEAPTAPE_FAULT_MET=FILE                is created when that call happens
//   HEAPTAPE_FAULT_FORKS=1         the forked processes of heaptape count and fail on their own
//   HEAPTAPE_FAULT_AFTER=FILE              counts calls only while FILE exists
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS // This file defines both names of open, mmap and so on.
#include <dirent.h>
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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static char function[16], how[16];
static int error; // errno of the failing call; 0: transfer one byte
static long n, times = 1;
static pid_t self;
static int forks;
static _Atomic long calls;
static const char *met, *after;

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"EAGAIN", EAGAIN}, {"EINTR", EINTR},   {"EIO", EIO},      {"EMFILE", EMFILE},
                  {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (strcmp(errors[i].name, name) == 0)
            return errors[i].error;
    }
    return 0;
}

static __attribute__((constructor)) void begin(void)
{
    const char *fault = getenv("HEAPTAPE_FAULT");
    met = getenv("HEAPTAPE_FAULT_MET");
    after = getenv("HEAPTAPE_FAULT_AFTER");
    forks = getenv("HEAPTAPE_FAULT_FORKS") != NULL;
    if (fault && strcmp(program_invocation_short_name, "heaptape") == 0 &&
        sscanf(fault, "%15[a-z0-9]:%15[A-Za-z]:%ld:%ld", function, how, &n, &times) >= 3) {
        error = error_of(how);
        self = getpid();
    }
}

// Returns true if this call must fail. The functions that it calls are not made to fail.
static int fails(const char *name)
{
    if (!self || strcmp(name, function) != 0 || (!forks && getpid() != self) ||
        (after && access(after, F_OK) < 0))
        return 0;
    long call = atomic_fetch_add(&calls, 1) + 1;
    if (call < n || call - n >= times)
        return 0;
    if (met)
        syscall(SYS_close,
                syscall(SYS_openat, AT_FDCWD, met, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    errno = error;
    return 1;
}

// Defines a function that fails with `result`.
#define FAILS(type, name, parameters, arguments, result)                                           \
    type name parameters                                                                           \
    {                                                                                              \
        type(*next) parameters = (type(*) parameters)dlsym(RTLD_NEXT, #name);                      \
        return fails(#name) ? (result) : next arguments;                                           \
    }

// Defines a function that can also transfer fewer bytes than requested.
#define FAILS_SHORT(name, parameters, arguments)                                                   \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        ssize_t(*next) parameters = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);                \
        if (fd > 2 && fails(#name)) {                                                              \
            if (error || size <= 1)                                                                \
                return error ? -1 : next arguments;                                                \
            size = 1;                                                                              \
        }                                                                                          \
        return next arguments;                                                                     \
    }

FAILS_SHORT(read, (int fd, void *to, size_t size), (fd, to, size))
FAILS_SHORT(pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
FAILS_SHORT(write, (int fd, const void *from, size_t size), (fd, from, size))
FAILS_SHORT(pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))

ssize_t writev(int fd, const struct iovec *parts, int parts_n)
{
    ssize_t (*next)(int, const struct iovec *, int) =
        (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    if (!fails("writev"))
        return next(fd, parts, parts_n);
    return error ? -1 : next(fd, &(struct iovec){parts[0].iov_base, 1}, 1);
}

void *malloc(size_t size)
{
    return fails("memory") ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails("memory") ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return fails("memory") ? NULL : __libc_realloc(p, size);
}

FAILS(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
      (at, size, protection, flags, fd, offset), MAP_FAILED)
FAILS(int, ftruncate, (int fd, off_t size), (fd, size), -1)
FAILS(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), -1)
FAILS(int, rename, (const char *from, const char *to), (from, to), -1)
FAILS(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1)
FAILS(int, renameat2, (int a, const char *from, int b, const char *to, unsigned how_to),
      (a, from, b, to, how_to), -1)
FAILS(int, linkat, (int a, const char *from, int b, const char *to, int flags),
      (a, from, b, to, flags), -1)
FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
FAILS(int, fsync, (int fd), (fd), -1)
FAILS(pid_t, fork, (void), (), -1)
FAILS(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
FAILS(DIR *, opendir, (const char *path), (path), NULL)

// Replaces syscall, because pidfd_open(2) has no wrapper in libc.
long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    return number == SYS_pidfd_open && fails("pidfd")
               ? -1
               : next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// pthread_create returns its error instead of setting errno.
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
            RTLD_NEXT, "pthread_create");
    return fails("thread") ? error : next(thread, attr, start, arg);
}

static int mode_of(va_list *list, int flags)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(*list, int) : 0;
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list list;
    va_start(list, flags);
    int mode = mode_of(&list, flags);
    va_end(list);
    return fails("open") ? -1 : next(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    int (*next)(int, const char *, int, ...) =
        (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    va_list list;
    va_start(list, flags);
    int mode = mode_of(&list, flags);
    va_end(list);
    return fails("openat") ? -1 : next(at, path, flags, mode);
}

FILE *fopen64(const char *, const char *) __attribute__((alias("fopen")));
int open64(const char *, int, ...) __attribute__((alias("open")));
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));
int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));
int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));
