// The real functions that the wrappers forward to.
#pragma once

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// On x86-64, the seventh argument of syscall(2) is on the stack, where tail calls leave it. If the
// wrapper stored it again, it could overwrite a variable of a caller that passes fewer arguments,
// such as a futex that another thread has just changed.
#if defined(__x86_64__)
#define NEXT_SYSCALL_PARAMETERS (long number, long a, long b, long c, long d, long e)
#define NEXT_SYSCALL_ARGUMENTS  (number, a, b, c, d, e)
#else
#define NEXT_SYSCALL_PARAMETERS (long number, long a, long b, long c, long d, long e, long f)
#define NEXT_SYSCALL_ARGUMENTS  (number, a, b, c, d, e, f)
#endif

// Functions that are looked up once, before the first call is forwarded: X(result, name,
// parameters, argument names). If an allocator lacks a function, glibc provides it. mremap, prctl
// and syscall are variadic, but the x86-64 and aarch64 ABIs pass their arguments in the same way.
#define NEXT_TABLE(X)                                                                              \
    X(void *, malloc, (size_t size), (size))                                                       \
    X(void *, calloc, (size_t count, size_t size), (count, size))                                  \
    X(void *, realloc, (void *old, size_t size), (old, size))                                      \
    X(void, free, (void *p), (p))                                                                  \
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
    X(long, syscall, NEXT_SYSCALL_PARAMETERS, NEXT_SYSCALL_ARGUMENTS)                              \
    X(void, _exit, (int status), (status))                                                         \
    X(int, __libc_start_main,                                                                      \
      (int (*begin)(int, char **, char **), int argc, char **argv, void (*init)(void),             \
       void (*fini)(void), void (*loader_fini)(void), void *stack_end),                            \
      (begin, argc, argv, init, fini, loader_fini, stack_end))                                     \
    X(void *, dlopen, (const char *path, int flags), (path, flags))                                \
    X(void *, dlmopen, (long space, const char *path, int flags), (space, path, flags))            \
    X(int, dlclose, (void *handle), (handle))                                                      \
    X(int, brk, (void *end), (end))                                                                \
    X(void *, sbrk, (intptr_t change), (change))

// The members initially point to boot functions, which look up all real functions, so the wrappers
// need no check.
struct next {
#define NEXT_FIELD(result, name, parameters, names) result(*name) parameters;
    NEXT_TABLE(NEXT_FIELD)
#undef NEXT_FIELD
};
extern struct next next __attribute__((visibility("hidden")));

// Returns true if this library was loaded into a running program. Then no object follows it in load
// order, and nothing is recorded until heaptape_attach.
bool next_is_injected(void);

// Looks up all functions at the first call. Returns when all functions are known.
void next_resolve(void);

// Makes `next` call the trampolines of functions that have been redirected since next_resolve. Call
// before redirect_start.
void next_bind(void);

// Returns true if the address lies in the C library.
bool next_is_libc(const void *address);

// Returns true if the redirected free of the C library was called by the C library's allocator,
// which frees a thread's cache when the thread exits. The program itself freed these blocks
// earlier. `caller` is the return address.
bool next_is_cache_free(const void *caller);

// Returns the target of the call instruction before the return address: a call with a 32-bit
// displacement on x86-64, or bl on aarch64. Returns 0 for other instructions.
uintptr_t next_call_target(const void *caller);

// Looks up a function that may be missing. If the function is found, sets *to and returns true.
// Otherwise returns false; in that case, the lookup has allocated memory. Call the function at
// redirect_real(*to).
bool next_find(const char *symbol, void **to);

// Finds the first object, in load order, that defines the function `name`, and returns the
// definition, or NULL. Skips the object that contains the address `except`. Unlike this function,
// dlsym(RTLD_DEFAULT) may return a stub in an executable that is not position-independent.
void *next_find_definition(const char *name, const void *except);

// Returns a malloc function with a prefix, or mallocx, that the object calls, or NULL. With
// `in_allocator`, considers only functions that the malloc in use defines, else only others.
struct object;
const void *next_find_prefixed_call(const struct object *o, bool in_allocator);

// Returns true if functions with prefixes in libraries are recorded. If the malloc in use calls
// such functions of another library, these calls are not events.
bool next_records_libraries(void);

// malloc_usable_size of the allocator in use, or NULL if the allocator does not define it, even if
// another object does.
extern size_t (*next_usable_size)(void *block) __attribute__((visibility("hidden")));

// True if the C++ operators get their blocks from the allocator that defines malloc. Set when the
// operators are looked up (wrap_cxx.c).
extern _Atomic bool next_operators_are_malloc __attribute__((visibility("hidden")));

// Passes objects that were opened with RTLD_DEEPBIND to producer_add_deepbound, because they call
// the malloc functions of the C library or the allocator directly. Passes opened objects to
// producer_set_bypass if they have their own allocator and it is not recorded. Call at exit and
// before an object is closed. Cheap if no object was loaded after startup.
void next_report_deepbound(void);

// Returns glibc's mallinfo2, or NULL if glibc's malloc is not the allocator, or before glibc 2.33.
typedef struct mallinfo2 (*next_mallinfo2_function)(void);
next_mallinfo2_function next_mallinfo2(void);

// The loaded object that contains an address.
struct next_object {
    uintptr_t start, end;
    char path[512];
};

// Returns true if an object is loaded whose file name begins with `name`. Does not allocate, unlike
// a failing dlsym.
bool next_is_loaded(const char *name);

// Returns true if an object that precedes this library in load order, such as the executable,
// defines malloc. All objects then call that definition. Ignores the stubs of an executable that is
// not position-independent.
bool next_is_bypassed(struct next_object *by);

// Finds the object that contains the address. Returns false if no object contains it.
bool next_object_of(const void *address, struct next_object *object);
