// Functions that some allocators offer beyond the malloc API: exchanging thread caches, statistics,
// trimming, version.
#include "replay/player/player.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

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
        caches = player_map_shared(player.plan->n_caches * sizeof *caches);
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

static void (*trim)(void);
static int (*own_malloc_trim)(size_t);
static void (*tcmalloc_release)(void);
static void (*mi_collect)(bool);
static int (*tbb_command)(int, void *);

static uint64_t jemalloc_number(const char *name)
{
    size_t value, bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : RESULTS_UNKNOWN;
}

static size_t append_text(char *text, size_t size, size_t at, const char *more);
static size_t append_number(char *text, size_t size, size_t at, unsigned n);

// Returns a statistic of a bin. The name of the statistic is `before`, the number of the bin, and
// `after`.
static uint64_t jemalloc_bin(const char *before, unsigned bin, const char *after)
{
    char name[80];
    size_t at = append_text(name, sizeof name, 0, before);
    at = append_number(name, sizeof name, at, bin);
    append_text(name, sizeof name, at, after);
    return jemalloc_number(name);
}

static unsigned jemalloc_unsigned(const char *name)
{
    unsigned value;
    size_t bytes = sizeof value;
    return mallctl(name, &value, &bytes, NULL, 0) == 0 ? value : 0;
}

// Returns the bytes of free regions in all slabs. 4096 is MALLCTL_ARENAS_ALL. jemalloc counts
// blocks in thread caches as allocated.
static uint64_t jemalloc_bins_unused(struct results_bin bins[RESULTS_BINS])
{
    uint64_t unused = 0;
    for (unsigned i = 0, n = jemalloc_unsigned("arenas.nbins"); i < n; i++) {
        char name[80];
        size_t at = append_text(name, sizeof name, 0, "arenas.bin.");
        at = append_number(name, sizeof name, at, i);
        append_text(name, sizeof name, at, ".nregs");
        uint64_t slabs = jemalloc_bin("stats.arenas.4096.bins.", i, ".curslabs");
        uint64_t used = jemalloc_bin("stats.arenas.4096.bins.", i, ".curregs");
        uint64_t bytes = jemalloc_bin("arenas.bin.", i, ".size");
        if (slabs == RESULTS_UNKNOWN || used == RESULTS_UNKNOWN || bytes == RESULTS_UNKNOWN)
            return RESULTS_UNKNOWN;
        uint64_t regions = slabs * jemalloc_unsigned(name);
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

static void query_tcmalloc(struct results_stats *s)
{
    // Free blocks are cached per thread, per size class, and in transit between these caches.
    static const char *const cache_names[] = {"tcmalloc.current_total_thread_cache_bytes",
                                              "tcmalloc.central_cache_free_bytes",
                                              "tcmalloc.transfer_cache_free_bytes"};
    size_t value, cached = 0;
    bool is_known = true;
    for (size_t i = 0; i < sizeof cache_names / sizeof *cache_names; i++) {
        is_known = is_known && tcmalloc_number(cache_names[i], &value);
        cached += is_known ? value : 0;
    }
    if (is_known)
        s->bin_unused_bytes = cached;
    if (tcmalloc_number("tcmalloc.pageheap_free_bytes", &value))
        s->dirty_bytes = value;
    if (tcmalloc_number("tcmalloc.pageheap_unmapped_bytes", &value))
        s->retained_bytes = value;
    if (tcmalloc_number("generic.total_physical_bytes", &value))
        s->resident_bytes = value;
    if (tcmalloc_number("generic.current_allocated_bytes", &value))
        s->allocated_bytes = value;
    if (tcmalloc_number("generic.heap_size", &value))
        s->mapped_bytes = value;
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
    own_malloc_trim(0);
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
    *(void **)&own_malloc_trim = player_own_function("malloc_trim");
    if (mallctl)
        trim_with(trim_jemalloc, "mallctl arena.4096.purge");
    else if (tcmalloc_release)
        trim_with(tcmalloc_release, "MallocExtension_ReleaseFreeMemory");
    else if (mi_collect)
        trim_with(trim_mimalloc, "mi_collect");
    else if (tbb_command)
        trim_with(trim_tbb, "scalable_allocation_command");
    else if (own_malloc_trim)
        trim_with(trim_by_malloc_trim, "malloc_trim");
}

static void find_stats(void)
{
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&tcmalloc_number = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    *(void **)&mi_process_info = dlsym(RTLD_DEFAULT, "mi_process_info");
#if __GLIBC_PREREQ(2, 33)
    *(void **)&libc_mallinfo2 = player_is_libc() ? dlsym(RTLD_DEFAULT, "mallinfo2") : NULL;
#endif
}

void player_extensions_init(void)
{
    find_caches();
    find_stats();
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
    uint32_t step = player.results->trim_step;
    if (trim && step &&
        (atomic_fetch_add_explicit(&reached, 1, memory_order_relaxed) + 1) % step == 0)
        trim();
}

static size_t append_text(char *text, size_t size, size_t at, const char *more)
{
    while (*more && at + 1 < size)
        text[at++] = *more++;
    text[at] = 0;
    return at;
}

static size_t append_number(char *text, size_t size, size_t at, unsigned n)
{
    char digits[12];
    size_t i = sizeof digits - 1;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    return append_text(text, size, at, digits + i);
}

static bool jemalloc_version(char *text, size_t size)
{
    const char *version = NULL;
    size_t bytes = sizeof version;
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (!mallctl || mallctl("version", &version, &bytes, NULL, 0) != 0 || !version)
        return false;
    append_text(text, size, 0, version);
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
    size_t at = append_number(text, size, 0, (unsigned)major);
    at = append_text(text, size, at, ".");
    append_number(text, size, at, (unsigned)minor);
    return true;
}

// Formats the number 212 as "2.1.2".
static bool mimalloc_version(char *text, size_t size)
{
    int (*mi_version)(void);
    *(void **)&mi_version = dlsym(RTLD_DEFAULT, "mi_version");
    if (!mi_version)
        return false;
    unsigned version = (unsigned)mi_version();
    size_t at = append_number(text, size, 0, version / 100);
    at = append_text(text, size, at, ".");
    at = append_number(text, size, at, version / 10 % 10);
    at = append_text(text, size, at, ".");
    append_number(text, size, at, version % 10);
    return true;
}

static bool libc_version(char *text, size_t size)
{
    Dl_info of_malloc, of_libc;
    if (!dladdr((void *)malloc, &of_malloc) || !dladdr((void *)gnu_get_libc_version, &of_libc) ||
        of_malloc.dli_fbase != of_libc.dli_fbase)
        return false;
    append_text(text, size, 0, gnu_get_libc_version());
    return true;
}

void player_find_version(char *text, size_t size)
{
    text[0] = 0;
    if (!libc_version(text, size) && !jemalloc_version(text, size) && !tcmalloc_version(text, size))
        mimalloc_version(text, size);
}
