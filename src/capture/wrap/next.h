// The real functions: what the wrappers forward to.
#ifndef HEAPTAPE_CAPTURE_NEXT_H
#define HEAPTAPE_CAPTURE_NEXT_H

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// X(result, name, parameters, names of the parameters): the functions that are looked up once, before the first call
// is forwarded. glibc has them all, for allocators that lack some.
// mremap and prctl are variadic; what is passed is the same in the ABIs of x86-64 and aarch64.
//
// These may be called by dlsym, while they are looked up.
#define NEXT_BASIC_TABLE(X)                                                                        \
    X(void *, malloc, (size_t size), (size))                                                       \
    X(void *, calloc, (size_t count, size_t size), (count, size))                                  \
    X(void *, realloc, (void *old, size_t size), (old, size))                                      \
    X(void, free, (void *p), (p))

#define NEXT_OTHER_TABLE(X)                                                                        \
    X(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size))            \
    X(void *, memalign, (size_t align, size_t size), (align, size))                                \
    X(void *, aligned_alloc, (size_t align, size_t size), (align, size))                           \
    X(int, posix_memalign, (void **to, size_t align, size_t size), (to, align, size))              \
    X(void *, valloc, (size_t size), (size))                                                       \
    X(void *, pvalloc, (size_t size), (size))                                                      \
    X(int, pthread_create,                                                                         \
      (pthread_t * thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg),         \
      (thread, attr, start, arg))                                                                  \
    X(void, malloc_stats, (void), ())                                                              \
    X(int, malloc_info, (int options, FILE *to), (options, to))                                    \
    X(struct mallinfo, mallinfo, (void), ())                                                       \
    X(int, malloc_trim, (size_t pad), (pad))                                                       \
    X(int, mallopt, (int option, int value), (option, value))                                      \
    X(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),     \
      (at, bytes, protection, flags, fd, offset))                                                  \
    X(int, munmap, (void *at, size_t bytes), (at, bytes))                                          \
    X(void *, mremap, (void *old, size_t old_bytes, size_t bytes, int flags, void *to),            \
      (old, old_bytes, bytes, flags, to))                                                          \
    X(int, prctl,                                                                                  \
      (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),            \
      (option, a, b, c, d))                                                                        \
    X(void, _exit, (int status), (status))                                                         \
    X(int, dlclose, (void *handle), (handle))                                                      \
    X(int, brk, (void *end), (end))                                                                \
    X(void *, sbrk, (intptr_t change), (change))

// Points at boot functions first, which look all of them up, so that the wrappers never need to ask.
struct next {
#define NEXT_FIELD(result, name, parameters, names) result(*name) parameters;
    NEXT_BASIC_TABLE(NEXT_FIELD)
    NEXT_OTHER_TABLE(NEXT_FIELD)
#undef NEXT_FIELD
};
extern struct next next __attribute__((visibility("hidden")));

// Was this library loaded into a program that ran already? Then no object comes after it, and nothing is recorded until
// heaptape_attach.
bool next_is_injected(void);

// Looks everything up, once.
void next_resolve(void);

// Looks up a function that may be missing. Sets `*to` and returns true when it is there. It allocates when it is not.
bool next_find(const char *symbol, void **to);

// The malloc_usable_size of the allocator in use; NULL when it has none, whoever else has.
extern size_t (*next_usable_size)(void *block) __attribute__((visibility("hidden")));

// Does somebody else than the allocator in use give the blocks of this kind, because it lacks the function?
bool next_is_foreign(unsigned kind);

// Reports the objects that were opened with RTLD_DEEPBIND to producer_add_deepbound: their calls of malloc's functions go to
// the C library or the allocator, past the wrappers. For the end of the process, and before an object is closed; where nothing
// was loaded after the start it costs next to nothing.
void next_report_deepbound(void);

// glibc's mallinfo2, where glibc's malloc is the allocator; NULL: it is another, or glibc is older than 2.33.
typedef struct mallinfo2 (*next_mallinfo2_function)(void);
next_mallinfo2_function next_mallinfo2(void);

// Is it memory of this library, for calls that came before there was an allocator?
bool next_is_early(const void *block);

// The loaded object that an address lies in.
struct next_object {
    uintptr_t start, end;
    char path[512];
};

// Is an object loaded whose file name begins so? Unlike a failing dlsym, it allocates nothing.
bool next_loaded(const char *name);

// Does an object that comes before this library define malloc, such as the executable? Then all objects call that definition. An
// executable that is not position-independent does not define the functions for which it has an address of its own, a stub.
bool next_is_bypassed(struct next_object *by);

// False when there is none.
bool next_object_of(const void *address, struct next_object *object);

#endif
