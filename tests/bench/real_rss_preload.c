// Preloaded by real_rss. Lists the mappings that the program makes itself in shared memory and
// counts its calls of the allocator. Calls of mmap within libc do not reach this library, so thread
// stacks are listed when their threads start. Mappings by another allocator are not listed.
//
// The program's clock excludes the time for which it is stopped, because allocators release memory
// some time after its last use. Defines both mmap and mmap64.
#undef _FILE_OFFSET_BITS
#include "real_rss.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct real_rss *noted;
static void *allocator; // load address of the object that defines malloc
// Code of that object (unless it is libc) and of this library.
static struct real_rss_range inside[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*clock_of_libc)(clockid_t id, struct timespec *t);

// Adds the .bss of an object to the listed ranges. The .bss has no name in the maps, and the kernel
// may merge it with the next mapping.
static int note_bss(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct real_rss *r = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && r->n < REAL_RSS_RANGES; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr + h->p_filesz,
                  to = from + h->p_memsz - h->p_filesz;
        if (h->p_type == PT_LOAD && h->p_flags & PF_W && h->p_memsz > h->p_filesz)
            r->ranges[r->n++] =
                (struct real_rss_range){from & ~(uintptr_t)4095, (to + 4095) & ~(uintptr_t)4095};
    }
    return 0;
}

static uint64_t heap_now(const struct real_rss *r)
{
    static char text[1 << 18];
    size_t n = 0;
    ssize_t got;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    while (maps >= 0 && n + 1 < sizeof text &&
           (got = read(maps, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    uint64_t heap = pagemap >= 0 ? real_rss_heap(r, pagemap, text) : 0;
    close(maps);
    close(pagemap);
    return heap;
}

// Replaces getenv: libc's getenv and program_invocation_short_name do not work yet.
static const char *variable(char **envp, const char *name)
{
    for (size_t n = strlen(name); *envp; envp++) {
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    }
    return NULL;
}

static void forget_all(void)
{
    noted = NULL;
}

// Runs before all other constructors (-z initfirst), so that their allocations count as the
// program's heap. Earlier memory belongs to the loader. The memory of the first malloc belongs to
// the allocator.
__attribute__((constructor)) static void init(int argc, char **argv, char **envp)
{
    const char *path = variable(envp, "REAL_RSS"), *wanted = variable(envp, "REAL_RSS_PROGRAM");
    const char *name = argc ? strrchr(argv[0], '/') : NULL;
    name = name ? name + 1 : argc ? argv[0] : "";
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at =
        (void *)syscall(SYS_mmap, NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED || (wanted && *wanted && strcmp(wanted, name) != 0))
        return;
    struct real_rss *r = at;
    // In a tree of processes, only the selected program counts, for example gcc's cc1.
    r->n = 0;
    r->pid = getpid();
    dl_iterate_phdr(note_bss, r);
    free(malloc(1));
    r->heap_at_start = heap_now(r);
    r->calls = r->next_look = r->stopped_ns = 0;
    *(void **)&clock_of_libc = dlsym(RTLD_NEXT, "clock_gettime");
    __atomic_fetch_add(&r->starts, 1, __ATOMIC_RELEASE);
    noted = r;
    pthread_atfork(NULL, NULL, forget_all);
}

// Finds the code range that contains r->from.
static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct real_rss_range *r = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && r->from - from < h->p_memsz) {
            *r = (struct real_rss_range){from, from + h->p_memsz};
            return 1;
        }
    }
    return 0;
}

static void find_allocator(void)
{
    Dl_info info, libc;
    // &malloc could be the program's own PLT entry if the program is not position-independent.
    void *next = dlsym(RTLD_NEXT, "malloc");
    if (!next || !dladdr(next, &info))
        return;
    if (dladdr((void *)gnu_get_libc_version, &libc) && libc.dli_fbase != info.dli_fbase) {
        inside[0].from = (uintptr_t)next;
        inside[1].from = (uintptr_t)find_allocator;
        dl_iterate_phdr(find_code, &inside[0]);
        dl_iterate_phdr(find_code, &inside[1]);
    }
    allocator = info.dli_fbase;
}

// TBB has two libraries, for malloc and for its mappings; both names contain "malloc".
static int is_allocators(void *caller)
{
    Dl_info info;
    if (!allocator)
        find_allocator();
    return dladdr(caller, &info) &&
           (info.dli_fbase == allocator || strstr(info.dli_fname, "malloc"));
}

// Removes [from, to) from the listed ranges.
static void forget(uintptr_t from, uintptr_t to)
{
    for (uint32_t i = 0; i < noted->n; i++) {
        struct real_rss_range *r = &noted->ranges[i];
        if (to <= r->from || from >= r->to)
            continue;
        if (from > r->from && to < r->to && noted->n < REAL_RSS_RANGES)
            noted->ranges[noted->n++] = (struct real_rss_range){to, r->to};
        if (from <= r->from)
            r->from = to < r->to ? to : r->to;
        else
            r->to = from;
        if (r->from == r->to)
            *r-- = noted->ranges[--noted->n], i--;
    }
}

static void note(void *at, size_t bytes)
{
    if (!noted || at == MAP_FAILED)
        return;
    uintptr_t from = (uintptr_t)at, to = (from + bytes + 4095) & ~(uintptr_t)4095;
    pthread_mutex_lock(&lock);
    forget(from, to);
    if (noted->n < REAL_RSS_RANGES)
        noted->ranges[noted->n++] = (struct real_rss_range){from, to};
    pthread_mutex_unlock(&lock);
}

void *mmap(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes);
    return at;
}

void *mmap64(void *hint, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = (void *)syscall(SYS_mmap, hint, bytes, protection, flags, fd, offset);
    if (noted && !is_allocators(__builtin_return_address(0)))
        note(at, bytes);
    return at;
}

int munmap(void *at, size_t bytes)
{
    // The range stays listed until it is unmapped, because real_rss samples right before. Another
    // thread that maps the same addresses lists them afterwards.
    if (noted)
        pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_munmap, at, bytes);
    if (noted) {
        forget((uintptr_t)at, ((uintptr_t)at + bytes + 4095) & ~(uintptr_t)4095);
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

// Arguments of a new thread. They are in a separate page, because allocating them would shift
// blocks of the heap.
struct thread {
    void *(*body)(void *);
    void *arg;
    size_t stack_bytes;
};

static void *run_thread(void *arg)
{
    // glibc places the object of pthread_self, less than a page, at the end of the stack.
    struct thread t = *(struct thread *)arg;
    uintptr_t to = ((uintptr_t)pthread_self() + REAL_RSS_PAGE) & ~(uintptr_t)(REAL_RSS_PAGE - 1);
    munmap(arg, REAL_RSS_PAGE);
    note((void *)(to - t.stack_bytes), t.stack_bytes);
    void *result = t.body(t.arg);
    pthread_mutex_lock(&lock);
    forget(to - t.stack_bytes, to);
    pthread_mutex_unlock(&lock);
    return result;
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *arg)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    pthread_attr_t usual;
    size_t bytes = 0;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    if (attributes)
        pthread_attr_getstacksize(attributes, &bytes);
    else if (pthread_getattr_default_np(&usual) == 0)
        pthread_attr_getstacksize(&usual, &bytes);
    struct thread *t = noted && bytes
                           ? (void *)syscall(SYS_mmap, NULL, REAL_RSS_PAGE, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                           : MAP_FAILED;
    if (t == MAP_FAILED)
        return next(id, attributes, body, arg);
    *t = (struct thread){body, arg, bytes};
    int rc = next(id, attributes, run_thread, t);
    if (rc)
        munmap(t, REAL_RSS_PAGE);
    return rc;
}

static uint64_t now_ns(void)
{
    struct timespec t = {0};
    if (clock_of_libc)
        clock_of_libc(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Uses no thread-local variable: its storage would be on the heap and shift blocks.
static void count_call(void *caller)
{
    // jemalloc's operator delete calls free, or jumps to free so that the caller is the wrapper of
    // operator delete.
    if (!noted || real_rss_is_own(inside, 2, (uintptr_t)caller))
        return;
    uint64_t calls = __atomic_add_fetch(&noted->calls, 1, __ATOMIC_RELAXED);
    if (calls < __atomic_load_n(&noted->next_look, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&noted->next_look, calls + REAL_RSS_LOOK_CALLS + calls / REAL_RSS_LOOK_PART,
                     __ATOMIC_RELAXED);
    // Has no effect except a sample by real_rss.
    int saved = errno;
    uint64_t began = now_ns();
    syscall(SYS_munmap, NULL, 0);
    __atomic_fetch_add(&noted->stopped_ns, now_ns() - began, __ATOMIC_RELAXED);
    errno = saved;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static uint64_t shown; // last value returned; the other threads run while one thread is stopped
    if (!noted || !clock_of_libc || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE))
        return (int)syscall(SYS_clock_gettime, id, t);
    uint64_t ns = now_ns() - __atomic_load_n(&noted->stopped_ns, __ATOMIC_RELAXED),
             last = __atomic_load_n(&shown, __ATOMIC_RELAXED);
    while (ns > last && !__atomic_compare_exchange_n(&shown, &last, ns, true, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED))
        ;
    ns = ns > last ? ns : last;
    *t = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

// Looks up the next function of the name. Sets `counts` if the allocator defines the function.
// Otherwise the function calls malloc, as libstdc++'s operator new does.
#define NEXT(type, name, parameters)                                                               \
    static type(*next) parameters;                                                                 \
    static bool counts;                                                                            \
    if (!next) {                                                                                   \
        next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                        \
        counts = is_allocators((void *)next);                                                      \
    }
#define COUNTED(type, name, parameters, arguments)                                                 \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        NEXT(type, name, parameters);                                                              \
        type result = next arguments;                                                              \
        if (counts)                                                                                \
            count_call(__builtin_return_address(0));                                               \
        return result;                                                                             \
    }
#define COUNTED_FREE(name, parameters, arguments)                                                  \
    void name parameters;                                                                          \
    void name parameters                                                                           \
    {                                                                                              \
        NEXT(void, name, parameters);                                                              \
        next arguments;                                                                            \
        if (counts)                                                                                \
            count_call(__builtin_return_address(0));                                               \
    }
#define COUNTED_NEW(name)                                                                          \
    COUNTED(void *, name##m, (size_t bytes), (bytes))                                              \
    COUNTED(void *, name##mRKSt9nothrow_t, (size_t bytes, const void *tag), (bytes, tag))          \
    COUNTED(void *, name##mSt11align_val_t, (size_t bytes, size_t align), (bytes, align))          \
    COUNTED(void *, name##mSt11align_val_tRKSt9nothrow_t,                                          \
            (size_t bytes, size_t align, const void *tag), (bytes, align, tag))
#define COUNTED_DELETE(name)                                                                       \
    COUNTED_FREE(name##Pv, (void *at), (at))                                                       \
    COUNTED_FREE(name##Pvm, (void *at, size_t bytes), (at, bytes))                                 \
    COUNTED_FREE(name##PvRKSt9nothrow_t, (void *at, const void *tag), (at, tag))                   \
    COUNTED_FREE(name##PvSt11align_val_t, (void *at, size_t align), (at, align))                   \
    COUNTED_FREE(name##PvmSt11align_val_t, (void *at, size_t bytes, size_t align),                 \
                 (at, bytes, align))                                                               \
    COUNTED_FREE(name##PvSt11align_val_tRKSt9nothrow_t, (void *at, size_t align, const void *tag), \
                 (at, align, tag))

// clang-format off
COUNTED(void *, malloc, (size_t bytes), (bytes))
COUNTED(void *, calloc, (size_t n, size_t bytes), (n, bytes))
COUNTED(void *, realloc, (void *at, size_t bytes), (at, bytes))
COUNTED(void *, aligned_alloc, (size_t align, size_t bytes), (align, bytes))
COUNTED(void *, memalign, (size_t align, size_t bytes), (align, bytes))
COUNTED(int, posix_memalign, (void **at, size_t align, size_t bytes), (at, align, bytes))
COUNTED_FREE(free, (void *at), (at))
COUNTED_NEW(_Znw)
COUNTED_NEW(_Zna)
COUNTED_DELETE(_Zdl)
COUNTED_DELETE(_Zda)
// clang-format on
