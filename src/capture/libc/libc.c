#include "capture/libc/libc.h"

#include "capture/libc/objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// The loader's list of objects. Reading these variables does not run code of another library. glibc
// defines the first symbol, musl the second.
#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak));

// Functions that are forwarded to libc's definition: X(result, name, parameters, argument names).
#define NEEDED_TABLE(X)                                                                            \
    X(int *, __errno_location, (void), ())                                                         \
    X(int, clock_gettime, (clockid_t clock, struct timespec * to), (clock, to))                    \
    X(int, dl_iterate_phdr, (int (*each)(struct dl_phdr_info *, size_t, void *), void *data),      \
      (each, data))                                                                                \
    X(void *, dlsym, (void *restrict handle, const char *restrict name), (handle, name))           \
    X(unsigned long, getauxval, (unsigned long type), (type))                                      \
    X(char *, getenv, (const char *name), (name))                                                  \
    X(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end))             \
    X(int, pthread_key_delete, (pthread_key_t key), (key))                                         \
    X(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))              \
    X(int, __cxa_atexit, (void (*end)(void *), void *value, void *object), (end, value, object))

// Like NEEDED_TABLE, for functions that a C library may lack: X(result, name, parameters).
struct dl_find_object;
#define OPTIONAL_TABLE(X)                                                                          \
    X(int, __register_atfork,                                                                      \
      (void (*before)(void), void (*parent)(void), void (*child)(void), void *object))             \
    X(int, pthread_atfork, (void (*before)(void), void (*parent)(void), void (*child)(void)))      \
    X(void *, dlopen, (const char *path, int flags))                                               \
    X(pthread_t, pthread_self, (void))                                                             \
    X(int, pthread_getcpuclockid, (pthread_t thread, clockid_t * to))                              \
    X(int, _dl_find_object, (void *at, struct dl_find_object *to))

#define BOOT(result, name, parameters, names) static result boot_##name parameters;
NEEDED_TABLE(BOOT)
#undef BOOT

static struct {
    const void *address;
    ptrdiff_t rseq_offset;
#define FIELD(result, name, parameters, ...) result(*name) parameters;
    NEEDED_TABLE(FIELD)
    OPTIONAL_TABLE(FIELD)
#undef FIELD
} libc = {
#define BOOT_FIELD(result, name, parameters, names) .name = boot_##name,
    NEEDED_TABLE(BOOT_FIELD)
#undef BOOT_FIELD
};

// Returns the result of the system call, or a negative errno.
static long raw_syscall(long number, const long a[6])
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}

// Always passes six arguments. The kernel ignores arguments that the call does not use.
HIDDEN long syscall(long number, ...)
{
    enum { MAX_ERRNO = 4095 };
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    long result = raw_syscall(number, a);
    if (result >= 0 || result < -MAX_ERRNO)
        return result;
    errno = (int)-result;
    return -1;
}

#define RAW(number, ...) raw_of(number, __VA_ARGS__, 0, 0, 0, 0, 0)
#define raw_of(number, a, b, c, d, ...)                                                            \
    syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), 0l, 0l)

// Functions that only make a system call: SYSTEM_CALL(result, name, parameters, number, arguments).
// `open` opens existing files only, so it has no mode argument.
#define SYSTEM_CALL(result, name, parameters, ...)                                                 \
    HIDDEN result name parameters                                                                  \
    {                                                                                              \
        return (result)RAW(__VA_ARGS__);                                                           \
    }
SYSTEM_CALL(int, open, (const char *path, int flags, ...), SYS_openat, AT_FDCWD, path, flags)
SYSTEM_CALL(int, close, (int fd), SYS_close, fd)
SYSTEM_CALL(ssize_t, read, (int fd, void *to, size_t bytes), SYS_read, fd, to, bytes)
SYSTEM_CALL(int, stat, (const char *restrict path, struct stat *restrict to), SYS_newfstatat,
            AT_FDCWD, path, to, 0)
SYSTEM_CALL(int, fstat, (int fd, struct stat *to), SYS_newfstatat, fd, "", to, AT_EMPTY_PATH)
SYSTEM_CALL(int, fchmod, (int fd, mode_t mode), SYS_fchmod, fd, mode)
SYSTEM_CALL(int, ftruncate, (int fd, off_t bytes), SYS_ftruncate, fd, bytes)
SYSTEM_CALL(int, getrlimit, (__rlimit_resource_t which, struct rlimit *to), SYS_prlimit64, 0, which,
            NULL, to)
SYSTEM_CALL(int, madvise, (void *at, size_t bytes, int advice), SYS_madvise, at, bytes, advice)
SYSTEM_CALL(int, mprotect, (void *at, size_t bytes, int protection), SYS_mprotect, at, bytes,
            protection)
SYSTEM_CALL(int, nanosleep, (const struct timespec *how_long, struct timespec *left), SYS_nanosleep,
            how_long, left)
SYSTEM_CALL(int, sched_yield, (void), SYS_sched_yield, 0)
SYSTEM_CALL(uid_t, geteuid, (void), SYS_geteuid, 0)

#if defined(HEAPTAPE_DYNAMIC_TLS) && defined(__x86_64__)
// Called by the compiler's code. musl keeps the addresses of each module's thread-local variables
// in a vector, whose address is the second word of the thread's descriptor.
HIDDEN void *__tls_get_addr(const size_t variable[2]);
void *__tls_get_addr(const size_t variable[2])
{
    const uintptr_t *vector;
    __asm__("mov %%fs:8, %0" : "=r"(vector));
    return (void *)(vector[variable[0]] + variable[1]);
}
#endif

// Exits the process. Called if libc does not define a function in NEEDED_TABLE.
static _Noreturn void exit_unsupported(void)
{
    static const char text[] =
        "heaptape: libheaptape.so: the C library of this program is not supported\n";
    raw_syscall(SYS_write, (const long[6]){2, (long)text, sizeof text - 1});
    for (;;)
        raw_syscall(SYS_exit_group, (const long[6]){127});
}

const struct r_debug *libc_objects(void)
{
    return &_r_debug ? &_r_debug : &_dl_debug_addr ? _dl_debug_addr : NULL;
}

void libc_read_object(struct object *o, const struct link_map *map)
{
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)map->l_addr;
    const struct dl_phdr_info info = {.dlpi_addr = map->l_addr,
                                      .dlpi_name = map->l_name,
                                      .dlpi_phdr = (const ElfW(Phdr) *)(map->l_addr + elf->e_phoff),
                                      .dlpi_phnum = elf->e_phnum};
    object_read(o, &info);
}

static bool is_named(const struct link_map *map, const char *name)
{
    const char *slash = map->l_name ? strrchr(map->l_name, '/') : NULL;
    return map->l_name && strcmp(slash ? slash + 1 : map->l_name, name) == 0;
}

// The objects that define libc's functions. Before glibc 2.34, libdl and libpthread define some of
// them, and libheaptape.so is linked with both. In musl, the C library is the loader.
enum { OBJECT_LOADER, OBJECT_C, OBJECT_DL, OBJECT_PTHREAD, OBJECTS };
static const char *const object_names[OBJECTS] = {
    [OBJECT_C] = LIBC_SO, [OBJECT_DL] = LIBDL_SO, [OBJECT_PTHREAD] = LIBPTHREAD_SO};

struct found_objects {
    struct object all[OBJECTS];
    bool has[OBJECTS];
};

// Returns true if no remaining object can define a function that is still missing.
static bool is_complete(const struct found_objects *in)
{
    return in->has[OBJECT_C] && in->has[OBJECT_LOADER] &&
           ((in->has[OBJECT_DL] && in->has[OBJECT_PTHREAD]) ||
            object_find_function(&in->all[OBJECT_C], "dlsym"));
}

// Finds the loader and the loaded objects in object_names. Other threads may load or close objects
// concurrently, but this changes only the part of the list after these objects.
static bool find_objects(struct found_objects *to)
{
    const struct r_debug *debug = libc_objects();
    memset(to->has, 0, sizeof to->has);
    for (const struct link_map *m = debug ? debug->r_map : NULL; m && !is_complete(to);
         m = m->l_next) {
        for (unsigned i = 0; i < OBJECTS; i++) {
            if (!to->has[i] && (i == OBJECT_LOADER ? m->l_addr == debug->r_ldbase
                                                   : is_named(m, object_names[i]))) {
                libc_read_object(&to->all[i], m);
                to->has[i] = true;
                break;
            }
        }
    }
    return to->has[OBJECT_C] || to->has[OBJECT_LOADER];
}

static void *find_function(const struct found_objects *in, const char *name)
{
    static const uint8_t order[] = {OBJECT_C, OBJECT_LOADER, OBJECT_DL, OBJECT_PTHREAD};
    void *found = NULL;
    for (unsigned i = 0; i < OBJECTS && !found; i++)
        found = in->has[order[i]] ? object_find_function(&in->all[order[i]], name) : NULL;
    return found;
}

static ptrdiff_t find_rseq(const struct object *loader)
{
    const ptrdiff_t *offset = object_find_variable(loader, "__rseq_offset");
    const unsigned *size = object_find_variable(loader, "__rseq_size");
    return offset && size && *size ? *offset : 0;
}

// No lock is needed: threads that run this function concurrently find the same functions.
static void find_all(void)
{
    struct found_objects objects;
    void *found;
    if (!find_objects(&objects))
        exit_unsupported();
#define FIND(result, name, ...) libc.name = (__typeof__(libc.name))find_function(&objects, #name);
    OPTIONAL_TABLE(FIND)
#undef FIND
#define FIND(result, name, ...)                                                                    \
    if (!(found = find_function(&objects, #name)))                                                 \
        exit_unsupported();                                                                        \
    libc.name = (__typeof__(libc.name))found;
    NEEDED_TABLE(FIND)
#undef FIND
    libc.rseq_offset =
        find_rseq(&objects.all[objects.has[OBJECT_LOADER] ? OBJECT_LOADER : OBJECT_C]);
    // Pairs with the acquire in ensure_found. The functions are set before this store.
    __atomic_store_n(&libc.address, (const void *)libc.__errno_location, __ATOMIC_RELEASE);
}

// The C identifier differs from the symbol, because libc's headers declare the symbol with
// attributes that are not true before find_all has run.
#define DEFINE(result, name, parameters, names)                                                    \
    static result boot_##name parameters                                                           \
    {                                                                                              \
        find_all();                                                                                \
        return libc.name names;                                                                    \
    }                                                                                              \
    HIDDEN result hidden_##name parameters __asm__(#name);                                         \
    result hidden_##name parameters                                                                \
    {                                                                                              \
        return libc.name names;                                                                    \
    }
NEEDED_TABLE(DEFINE)
#undef DEFINE

static void ensure_found(void)
{
    if (!__atomic_load_n(&libc.address, __ATOMIC_ACQUIRE))
        find_all();
}

const void *libc_address(void)
{
    ensure_found();
    return libc.address;
}

ptrdiff_t libc_rseq_offset(void)
{
    ensure_found();
    return libc.rseq_offset;
}

HIDDEN int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                             void *object);
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *object)
{
    ensure_found();
    if (libc.__register_atfork)
        return libc.__register_atfork(before, parent, child, object);
    return libc.pthread_atfork ? libc.pthread_atfork(before, parent, child) : ENOSYS;
}

void *libc_open_library(const char *path, int flags)
{
    ensure_found();
    return libc.dlopen ? libc.dlopen(path, flags) : NULL;
}

HIDDEN pthread_t hidden_pthread_self(void) __asm__("pthread_self");
pthread_t hidden_pthread_self(void)
{
    ensure_found();
    return libc.pthread_self ? libc.pthread_self() : 0;
}

HIDDEN int pthread_getcpuclockid(pthread_t thread, clockid_t *to)
{
    ensure_found();
    return libc.pthread_getcpuclockid && thread ? libc.pthread_getcpuclockid(thread, to) : ENOSYS;
}

HIDDEN int _dl_find_object(void *at, struct dl_find_object *to)
{
    ensure_found();
    return libc._dl_find_object ? libc._dl_find_object(at, to) : -1;
}
