// What allocators say of their own memory, and how they are told to give it back. Each has functions of its own.
#include "player/player.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>

enum { TBB_CLEAN_ALL_BUFFERS = 0 }; // of its enum ScalableAllocationCmd

static int (*mallctl)(const char *, void *, size_t *, void *, size_t); // jemalloc
static int (*tcmalloc_number)(const char *, size_t *);                 // gperftools
static void (*mi_process_info)(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *);
#if __GLIBC_PREREQ(2, 33)
static struct mallinfo2 (*libc_mallinfo2)(void);
#endif

static void (*trim)(void);
static int (*malloc_trim_of_its_own)(size_t);
static void (*tcmalloc_release)(void);
static void (*mi_collect)(bool);
static int (*tbb_command)(int, void *);

static uint64_t jemalloc_number(const char *name)
{
    size_t value, bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : RESULTS_UNKNOWN;
}

static void ask_jemalloc(struct results_stats *s)
{
    uint64_t epoch = 1; // figures are those of the latest advance
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    s->allocated_bytes = jemalloc_number("stats.allocated");
    s->active_bytes = jemalloc_number("stats.active");
    s->resident_bytes = jemalloc_number("stats.resident");
    s->mapped_bytes = jemalloc_number("stats.mapped");
}

static void ask_tcmalloc(struct results_stats *s)
{
    size_t value;
    if (tcmalloc_number("generic.current_allocated_bytes", &value))
        s->allocated_bytes = value;
    if (tcmalloc_number("generic.heap_size", &value))
        s->mapped_bytes = value;
}

static void ask_mimalloc(struct results_stats *s)
{
    size_t ignored, resident, committed;
    mi_process_info(&ignored, &ignored, &ignored, &resident, &ignored, &committed, &ignored, &ignored);
    s->mapped_bytes = committed;
}

// Blocks with a mapping of their own are in hblkhd alone.
static void ask_libc(struct results_stats *s)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = libc_mallinfo2();
    s->mapped_bytes = info.arena + info.hblkhd;
    s->allocated_bytes = info.uordblks + info.hblkhd;
#else
    (void)s;
#endif
}

static void ask(struct results_stats *s)
{
    if (mallctl)
        ask_jemalloc(s);
    else if (tcmalloc_number)
        ask_tcmalloc(s);
    else if (mi_process_info)
        ask_mimalloc(s);
#if __GLIBC_PREREQ(2, 33)
    else if (libc_mallinfo2)
        ask_libc(s);
#endif
}

static void trim_jemalloc(void)
{
    // 4096 is MALLCTL_ARENAS_ALL.
    mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
}

static void trim_mimalloc(void)
{
    mi_collect(true);
}

static void trim_tbb(void)
{
    tbb_command(TBB_CLEAN_ALL_BUFFERS, NULL);
}

static void trim_by_malloc_trim(void)
{
    malloc_trim_of_its_own(0);
}

static void trim_with(void (*function)(void), const char *name)
{
    trim = function;
    strncpy(player.results->trim_function, name, RESULTS_NAME_BYTES - 1);
}

static void find_trim(void)
{
    *(void **)&tcmalloc_release = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    *(void **)&mi_collect = dlsym(RTLD_DEFAULT, "mi_collect");
    *(void **)&tbb_command = dlsym(RTLD_DEFAULT, "scalable_allocation_command");
    *(void **)&malloc_trim_of_its_own = player_allocators_own("malloc_trim");
    if (mallctl)
        trim_with(trim_jemalloc, "mallctl arena.4096.purge");
    else if (tcmalloc_release)
        trim_with(tcmalloc_release, "MallocExtension_ReleaseFreeMemory");
    else if (mi_collect)
        trim_with(trim_mimalloc, "mi_collect");
    else if (tbb_command)
        trim_with(trim_tbb, "scalable_allocation_command");
    else if (malloc_trim_of_its_own)
        trim_with(trim_by_malloc_trim, "malloc_trim");
}

void player_stats_init(void)
{
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&tcmalloc_number = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    *(void **)&mi_process_info = dlsym(RTLD_DEFAULT, "mi_process_info");
#if __GLIBC_PREREQ(2, 33)
    *(void **)&libc_mallinfo2 = player_is_libc() ? dlsym(RTLD_DEFAULT, "mallinfo2") : NULL;
#endif
    find_trim();
}

void player_stats(void)
{
    struct results *r = player.results;
    if (!r->stats)
        return;
    uint64_t at = atomic_fetch_add_explicit(&r->n_stats, 1, memory_order_relaxed);
    if (at >= r->max_stats)
        return;
    struct results_stats *s = &results_all_stats(r)[at];
    *s = (struct results_stats){
        .event = atomic_load_explicit(&player.events, memory_order_relaxed),
        .ns = clock_monotonic_ns() - player.start_ns,
        .rss_bytes = player_private_bytes(),
        .live_bytes = atomic_load_explicit(&player.live_bytes, memory_order_relaxed),
        .mapped_bytes = RESULTS_UNKNOWN,
        .allocated_bytes = RESULTS_UNKNOWN,
        .active_bytes = RESULTS_UNKNOWN,
        .resident_bytes = RESULTS_UNKNOWN,
    };
    ask(s);
}

void player_trim(void)
{
    if (trim)
        trim();
}
