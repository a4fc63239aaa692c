// Finds the functions that the ops call, and checks that they belong to the allocator.
#include "replay/player/null_allocator.h"
#include "replay/player/player.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

void *player_functions[HT_KIND_LIMIT];

static void *malloc_base; // load address of malloc's object

static void *base_of(void *function)
{
    Dl_info info;
    return dladdr(function, &info) ? info.dli_fbase : NULL;
}

static bool is_from_libc(void *function)
{
    return base_of(function) == base_of((void *)gnu_get_libc_version);
}

static bool is_from_allocator(void *function)
{
    return function && base_of(function) == malloc_base;
}

// Replacements for functions that an allocator lacks. Using libc's functions instead would allocate
// from libc's heap.
static void *own_memalign(size_t align, size_t size)
{
    int (*get)(void **, size_t, size_t) =
        (int (*)(void **, size_t, size_t))player_functions[HT_POSIX_MEMALIGN];
    void *block = NULL;
    // posix_memalign requires at least the size of a pointer.
    return get(&block, align < sizeof(void *) ? sizeof(void *) : align, size) ? NULL : block;
}

static int own_posix_memalign(void **block, size_t align, size_t size)
{
    void *(*get)(size_t, size_t) = (void *(*)(size_t, size_t))player_functions[HT_MEMALIGN];
    *block = get(align, size);
    return *block ? 0 : ENOMEM;
}

static void *own_valloc(size_t size)
{
    return own_memalign(getauxval(AT_PAGESZ), size);
}

static void *own_pvalloc(size_t size)
{
    const size_t page = getauxval(AT_PAGESZ);
    return own_memalign(page, (size + page - 1) & -page);
}

static void *own_new(size_t size)
{
    return malloc(size ? size : 1);
}

static void *own_new_aligned(size_t size, size_t align)
{
    return own_memalign(align, size ? size : 1);
}

// Functions of C++ or of newer libcs, implemented with other functions of the allocator. The
// calling conventions of x86-64 and aarch64 let a function ignore further arguments: a size, an
// alignment or std::nothrow.
static void *const stand_ins[HT_KIND_LIMIT] = {
    [HT_MEMALIGN] = own_memalign,
    [HT_ALIGNED_ALLOC] = own_memalign,
    [HT_VALLOC] = own_valloc,
    [HT_PVALLOC] = own_pvalloc,
    [HT_FREE_SIZED] = free,
    [HT_FREE_ALIGNED_SIZED] = free,
    [HT_NEW] = own_new,
    [HT_NEW_ARRAY] = own_new,
    [HT_NEW_NOTHROW] = own_new,
    [HT_NEW_ARRAY_NOTHROW] = own_new,
    [HT_NEW_ALIGNED] = own_new_aligned,
    [HT_NEW_ARRAY_ALIGNED] = own_new_aligned,
    [HT_NEW_ALIGNED_NOTHROW] = own_new_aligned,
    [HT_NEW_ARRAY_ALIGNED_NOTHROW] = own_new_aligned,
    [HT_DELETE] = free,
    [HT_DELETE_ARRAY] = free,
    [HT_DELETE_SIZED] = free,
    [HT_DELETE_ARRAY_SIZED] = free,
    [HT_DELETE_NOTHROW] = free,
    [HT_DELETE_ARRAY_NOTHROW] = free,
    [HT_DELETE_ALIGNED] = free,
    [HT_DELETE_ARRAY_ALIGNED] = free,
    [HT_DELETE_SIZED_ALIGNED] = free,
    [HT_DELETE_ARRAY_SIZED_ALIGNED] = free,
    [HT_DELETE_ALIGNED_NOTHROW] = free,
    [HT_DELETE_ARRAY_ALIGNED_NOTHROW] = free,
};

static void remember_library(void *function)
{
    static const char descriptors[] = "/proc/self/fd/";
    Dl_info info;
    char *found = player.results->found_library;
    if (!dladdr(function, &info) || !info.dli_fname)
        return;
    strncpy(found, info.dli_fname, RESULTS_PATH_BYTES - 1);
    // If a library was preloaded through a descriptor, its name refers to the descriptor.
    if (strncmp(found, descriptors, sizeof descriptors - 1) == 0) {
        ssize_t n = readlink(info.dli_fname, found, RESULTS_PATH_BYTES - 1);
        if (n > 0)
            found[n] = 0;
    }
}

static bool is_requested(void)
{
    struct stat st;
    const struct results *r = player.results;
    if (!r->library_dev && !r->library_ino)
        return player_is_libc();
    return stat(r->found_library, &st) == 0 && st.st_dev == r->library_dev &&
           st.st_ino == r->library_ino;
}

// Sets the function for a kind to `direct`, the function to which the loader has bound the calls.
// Ends the process if `direct` does not belong to the allocator.
static void check_core(unsigned kind, void *direct)
{
    player_functions[kind] = direct;
    if (!is_from_allocator(direct)) {
        remember_library(direct);
        player_fail(RESULTS_MIXED_ALLOCATOR, NULL, kind, 0, 0);
    }
}

// Finds the function for a kind. Unless malloc is libc's, ignores libc's functions, except
// reallocarray, which calls the allocator's realloc. Functions of the C++ library are not ignored,
// because they call the allocator's malloc and free.
static void find_function(unsigned kind)
{
    void *function = dlsym(RTLD_DEFAULT, event_infos[kind].symbol);
    if (function && kind != HT_REALLOCARRAY && is_from_libc(function) &&
        !is_from_allocator(function))
        function = NULL;
    player_functions[kind] = function;
}

static void check_found(unsigned kind)
{
    if (!player_functions[kind])
        player_functions[kind] = stand_ins[kind];
    if (!player_functions[kind])
        player_fail(RESULTS_NO_FUNCTION, NULL, kind, 0, 0);
}

bool player_is_libc(void)
{
    return is_from_libc((void *)malloc);
}

void *player_own_function(const char *name)
{
    void *function = dlsym(RTLD_DEFAULT, name);
    return is_from_allocator(function) ? function : NULL;
}

void player_find_allocator(void)
{
    malloc_base = base_of((void *)malloc);
    remember_library((void *)malloc);
    if (!malloc_base || !is_requested() || dlsym(RTLD_DEFAULT, "malloc") != (void *)malloc)
        player_fail(RESULTS_WRONG_ALLOCATOR, NULL, 0, 0, 0);
    check_core(HT_MALLOC, (void *)malloc);
    check_core(HT_FREE, (void *)free);
    check_core(HT_CALLOC, (void *)calloc);
    check_core(HT_REALLOC, (void *)realloc);
    *(void **)&player.usable_size = player_own_function("malloc_usable_size");
    *(void **)&player.null_init = dlsym(RTLD_DEFAULT, NULL_INIT_SYMBOL);
    *(void **)&player.null_real = dlsym(RTLD_DEFAULT, NULL_REAL_SYMBOL);
}

void *player_allocate_preexisting(unsigned kind, uint64_t align, uint64_t size)
{
    void *function = player_functions[kind % HT_KIND_LIMIT];
    switch (kind) {
    case HT_MEMALIGN:
        return ((void *(*)(size_t, size_t))function)(align, size);
    case HT_NEW:
    case HT_NEW_ARRAY:
        return ((void *(*)(size_t))function)(size);
    case HT_NEW_ALIGNED:
    case HT_NEW_ARRAY_ALIGNED:
        return ((void *(*)(size_t, size_t))function)(size, align);
    }
    return malloc(size);
}

void player_find_functions(void)
{
    player_find_allocator();
    // posix_memalign and memalign can replace each other, and all other functions for aligned
    // allocation.
    find_function(HT_POSIX_MEMALIGN);
    find_function(HT_MEMALIGN);
    if (!player_functions[HT_POSIX_MEMALIGN] && player_functions[HT_MEMALIGN])
        player_functions[HT_POSIX_MEMALIGN] = own_posix_memalign;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (!player.plan->by_kind[kind] || player_functions[kind])
            continue;
        if (kind != HT_POSIX_MEMALIGN)
            find_function(kind);
        if (event_infos[kind].fields & HT_F_ALIGN && event_infos[kind].class == HT_CLASS_ALLOC)
            check_found(HT_POSIX_MEMALIGN);
        check_found(kind);
    }
}
