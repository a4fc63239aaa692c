// Functions that some allocators offer beyond the malloc API: exchanging thread caches, statistics,
// trimming, version.
#include "replay/player/player.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Thread caches, for replaying all threads of a workload in one thread. An allocator may export the
// two functions introduced by gperftools' replay tool:
//
//   bool release_malloc_thread_cache(void **cache)
//     stores the calling thread's cache in *cache, leaving the thread without one
//   bool set_malloc_thread_cache(void *cache)
//     frees the calling thread's cache and installs `cache`, which may be NULL
static bool (*release_cache)(void **);
static bool (*set_cache)(void *);
static void **caches; // indexed by recorded thread; NULL before the thread's first call
static uint32_t current;

static void find_caches(void)
{
    if (!player.plan->n_caches || getenv("NO_THREAD_CACHE_SWITCH"))
        return;
    *(void **)&release_cache = player_own_function("release_malloc_thread_cache");
    *(void **)&set_cache = player_own_function("set_malloc_thread_cache");
    if (release_cache && set_cache)
        caches = player_map_shared(player.plan->n_caches * sizeof *caches, MAP_POPULATE);
}

// Switches to the cache of a recorded thread. A thread creates its cache on its first call. If the
// previous thread has exited, set_cache() frees its cache.
void player_switch(uint32_t thread, bool exited)
{
    if (!caches)
        return;
    if (!exited)
        release_cache(&caches[current]);
    if (exited || caches[thread])
        set_cache(caches[thread]);
    caches[thread] = NULL;
    current = thread;
    player.results->figures.cache_switches++;
}

enum { TBB_CLEAN_ALL_BUFFERS = 0 }; // from enum ScalableAllocationCmd

static int (*mallctl)(const char *, void *, size_t *, void *, size_t); // jemalloc
static int (*tcmalloc_number)(const char *, size_t *);                 // gperftools
static void (*mi_process_info)(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *,
                               size_t *);
#if __GLIBC_PREREQ(2, 33)
static struct mallinfo2 (*libc_mallinfo2)(void);
#endif

static int (*own_malloc_trim)(size_t);
static void (*tcmalloc_release)(void);
static void (*mi_collect)(bool);
static int (*tbb_command)(int, void *);

static uint64_t jemalloc_number(const char *name)
{
    size_t value, bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : RESULTS_UNKNOWN;
}

static unsigned jemalloc_unsigned(const char *name)
{
    unsigned value;
    size_t bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : 0;
}

enum { BIN_NAME_BYTES = 80 };

// Writes the name of a statistic of bin number `bin` to `name`, and returns `name`.
static const char *bin_name(char name[BIN_NAME_BYTES], const char *format, unsigned bin)
{
    snprintf(name, BIN_NAME_BYTES, format, bin);
    return name;
}

// Returns the bytes of free regions in all slabs. 4096 is MALLCTL_ARENAS_ALL. jemalloc counts
// blocks in thread caches as allocated.
static uint64_t jemalloc_bins_unused(struct results_bin bins[RESULTS_BINS])
{
    uint64_t unused = 0;
    for (unsigned i = 0, n = jemalloc_unsigned("arenas.nbins"); i < n; i++) {
        char name[BIN_NAME_BYTES];
        uint64_t slabs = jemalloc_number(bin_name(name, "stats.arenas.4096.bins.%u.curslabs", i));
        uint64_t used = jemalloc_number(bin_name(name, "stats.arenas.4096.bins.%u.curregs", i));
        uint64_t bytes = jemalloc_number(bin_name(name, "arenas.bin.%u.size", i));
        if (slabs == RESULTS_UNKNOWN || used == RESULTS_UNKNOWN || bytes == RESULTS_UNKNOWN)
            return RESULTS_UNKNOWN;
        uint64_t regions = slabs * jemalloc_unsigned(bin_name(name, "arenas.bin.%u.nregs", i));
        uint64_t of_bin = regions > used ? (regions - used) * bytes : 0;
        if (i < RESULTS_BINS)
            bins[i] = (struct results_bin){bytes, of_bin};
        unused += of_bin;
    }
    return unused;
}

static void query_jemalloc(struct results_stats *s)
{
    uint64_t epoch = 1; // advancing the epoch refreshes the figures
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    s->allocated_bytes = jemalloc_number("stats.allocated");
    s->active_bytes = jemalloc_number("stats.active");
    s->resident_bytes = jemalloc_number("stats.resident");
    s->mapped_bytes = jemalloc_number("stats.mapped");
    s->metadata_bytes = jemalloc_number("stats.metadata");
    s->retained_bytes = jemalloc_number("stats.retained");
    uint64_t dirty_pages = jemalloc_number("stats.arenas.4096.pdirty");
    if (dirty_pages != RESULTS_UNKNOWN)
        s->dirty_bytes = dirty_pages * jemalloc_number("arenas.page");
    s->bin_unused_bytes = jemalloc_bins_unused(s->bins);
}

static uint64_t tcmalloc_value(const char *name)
{
    size_t value;
    return tcmalloc_number(name, &value) ? value : RESULTS_UNKNOWN;
}

static void query_tcmalloc(struct results_stats *s)
{
    // Free blocks are cached per thread, per size class, and in transit between these caches.
    static const char *const cache_names[] = {"tcmalloc.current_total_thread_cache_bytes",
                                              "tcmalloc.central_cache_free_bytes",
                                              "tcmalloc.transfer_cache_free_bytes"};
    s->bin_unused_bytes = 0;
    for (size_t i = 0; i < sizeof cache_names / sizeof *cache_names; i++) {
        uint64_t bytes = tcmalloc_value(cache_names[i]);
        s->bin_unused_bytes = bytes == RESULTS_UNKNOWN || s->bin_unused_bytes == RESULTS_UNKNOWN
                                  ? RESULTS_UNKNOWN
                                  : s->bin_unused_bytes + bytes;
    }
    s->dirty_bytes = tcmalloc_value("tcmalloc.pageheap_free_bytes");
    s->retained_bytes = tcmalloc_value("tcmalloc.pageheap_unmapped_bytes");
    s->resident_bytes = tcmalloc_value("generic.total_physical_bytes");
    s->allocated_bytes = tcmalloc_value("generic.current_allocated_bytes");
    s->mapped_bytes = tcmalloc_value("generic.heap_size");
}

static void query_mimalloc(struct results_stats *s)
{
    size_t ignored, resident, committed;
    mi_process_info(&ignored, &ignored, &ignored, &resident, &ignored, &committed, &ignored,
                    &ignored);
    s->mapped_bytes = committed;
}

// Adds hblkhd, the bytes of blocks with their own mapping, because uordblks does not include them.
static void query_libc(struct results_stats *s)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = libc_mallinfo2();
    s->mapped_bytes = info.arena + info.hblkhd;
    s->allocated_bytes = info.uordblks + info.hblkhd;
#else
    (void)s;
#endif
}

static void query_stats(struct results_stats *s)
{
    if (mallctl)
        query_jemalloc(s);
    else if (tcmalloc_number)
        query_tcmalloc(s);
    else if (mi_process_info)
        query_mimalloc(s);
#if __GLIBC_PREREQ(2, 33)
    else if (libc_mallinfo2)
        query_libc(s);
#endif
}

// Returns the name of the function that returns free memory to the kernel, or "". If `now` is true,
// calls the function.
static const char *trim(bool now)
{
    if (mallctl) {
        if (now) // 4096 is MALLCTL_ARENAS_ALL
            mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
        return "mallctl arena.4096.purge";
    }
    if (tcmalloc_release) {
        if (now)
            tcmalloc_release();
        return "MallocExtension_ReleaseFreeMemory";
    }
    if (mi_collect) {
        if (now)
            mi_collect(true);
        return "mi_collect";
    }
    if (tbb_command) {
        if (now)
            tbb_command(TBB_CLEAN_ALL_BUFFERS, NULL);
        return "scalable_allocation_command";
    }
    if (now && own_malloc_trim)
        own_malloc_trim(0);
    return own_malloc_trim ? "malloc_trim" : "";
}

void player_extensions_init(void)
{
    find_caches();
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&tcmalloc_number = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    *(void **)&mi_process_info = dlsym(RTLD_DEFAULT, "mi_process_info");
#if __GLIBC_PREREQ(2, 33)
    *(void **)&libc_mallinfo2 = player_is_libc() ? dlsym(RTLD_DEFAULT, "mallinfo2") : NULL;
#endif
    *(void **)&tcmalloc_release = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    *(void **)&mi_collect = dlsym(RTLD_DEFAULT, "mi_collect");
    *(void **)&tbb_command = dlsym(RTLD_DEFAULT, "scalable_allocation_command");
    *(void **)&own_malloc_trim = player_own_function("malloc_trim");
    strncpy(player.results->report.trim_function, trim(false), RESULTS_NAME_BYTES - 1);
}

void player_stats(void)
{
    struct results *r = player.results;
    if (!r->task.stats)
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
        .metadata_bytes = RESULTS_UNKNOWN,
        .resident_bytes = RESULTS_UNKNOWN,
        .retained_bytes = RESULTS_UNKNOWN,
        .dirty_bytes = RESULTS_UNKNOWN,
        .bin_unused_bytes = RESULTS_UNKNOWN,
    };
    query_stats(s);
}

void player_trim(void)
{
    static _Atomic uint32_t reached;
    uint32_t step = player.results->task.trim_step;
    if (step && (atomic_fetch_add_explicit(&reached, 1, memory_order_relaxed) + 1) % step == 0)
        trim(true);
}

static bool jemalloc_version(char *text, size_t size)
{
    const char *version = NULL;
    size_t bytes = sizeof version;
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (!mallctl || mallctl("version", &version, &bytes, NULL, 0) != 0 || !version)
        return false;
    snprintf(text, size, "%s", version);
    text[strcspn(text, "-")] = 0; // removes the commit hash
    return true;
}

static bool tcmalloc_version(char *text, size_t size)
{
    const char *(*tc_version)(int *, int *, const char **);
    int major, minor;
    const char *patch;
    *(void **)&tc_version = dlsym(RTLD_DEFAULT, "tc_version");
    if (!tc_version)
        return false;
    tc_version(&major, &minor, &patch);
    snprintf(text, size, "%d.%d", major, minor);
    return true;
}

// Formats the number 212 as "2.1.2".
static bool mimalloc_version(char *text, size_t size)
{
    int (*mi_version)(void);
    *(void **)&mi_version = dlsym(RTLD_DEFAULT, "mi_version");
    if (!mi_version)
        return false;
    int version = mi_version();
    snprintf(text, size, "%d.%d.%d", version / 100, version / 10 % 10, version % 10);
    return true;
}

void player_find_version(char *text, size_t size)
{
    text[0] = 0;
    if (player_is_libc())
        snprintf(text, size, "%s", gnu_get_libc_version());
    else if (!jemalloc_version(text, size) && !tcmalloc_version(text, size))
        mimalloc_version(text, size);
}
