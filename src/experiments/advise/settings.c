#include "experiments/advise/advise.h"

// Sources: mallopt(3) and the Tunables chapter of the glibc manual; jemalloc(3); docs/tcmalloc.html
// of gperftools; include/mimalloc.h; scudo's flags.inc. MALLOC_TRIM_THRESHOLD_ and
// MALLOC_MMAP_THRESHOLD_ have an effect even at their default values: if either is set, glibc no
// longer raises both thresholds when it frees a mapped block.
const struct advise_setting advise_settings[] = {
    {ADVISE_ALLOCATOR, "glibc", "", 0, 0, 0},
    {ADVISE_ALLOCATOR, "jemalloc", "", 0, 0, 0},
    {ADVISE_ALLOCATOR, "tcmalloc", "", 0, 0, 0},
    {ADVISE_ALLOCATOR, "mimalloc", "", 0, 0, 0},
    {ADVISE_ALLOCATOR, "tbb", "", 0, 0, 0},
    {ADVISE_ALLOCATOR, "scudo", "", 0, 0, 0},
    {ADVISE_TRIM, "glibc", "MALLOC_TRIM_THRESHOLD_=131072", 0, 0, 0},
    {ADVISE_TRIM, "glibc", "MALLOC_MMAP_THRESHOLD_=65536", 0, 0, 0},
    {ADVISE_TRIM, "glibc", "", 25, 0, 0},
    {ADVISE_TRIM, "glibc", "", 5, 0, 0},
    {ADVISE_TRIM, "glibc", "", 1, 0, 0},
    {ADVISE_DECAY, "jemalloc", "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0", 0, 0, 0},
    {ADVISE_DECAY, "jemalloc",
     "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0", 0,
     ADVISE_NEEDS_PACE, 0},
    {ADVISE_DECAY, "tcmalloc", "TCMALLOC_AGGRESSIVE_DECOMMIT=1", 0, 0, 0},
    {ADVISE_DECAY, "tcmalloc", "TCMALLOC_RELEASE_RATE=10", 0, 0, 0},
    // mimalloc 2.0 reads the first name. Later versions read the second name.
    {ADVISE_DECAY, "mimalloc", "MIMALLOC_RESET_DELAY=0,MIMALLOC_PURGE_DELAY=0", 0, 0, 0},
    {ADVISE_DECAY, "scudo", "SCUDO_OPTIONS=release_to_os_interval_ms=500", 0, ADVISE_NEEDS_PACE, 0},
    {ADVISE_ARENAS, "glibc", "MALLOC_ARENA_MAX=1", 0, ADVISE_NEEDS_THREADS, 0},
    {ADVISE_ARENAS, "glibc", "MALLOC_ARENA_MAX=2", 0, ADVISE_NEEDS_THREADS, 0},
    {ADVISE_ARENAS, "jemalloc", "MALLOC_CONF=narenas:1", 0, ADVISE_NEEDS_THREADS, 0},
    {ADVISE_ARENAS, "jemalloc", "MALLOC_CONF=tcache:false", 0, 0, 0},
    {ADVISE_ARENAS, "glibc", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", 0, 0, 0},
    {ADVISE_HUGE_PAGES, "glibc", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", 0, ADVISE_NEEDS_HUGE, 0},
    {ADVISE_HUGE_PAGES, "jemalloc", "MALLOC_CONF=thp:always", 0, ADVISE_NEEDS_HUGE, 0},
    {ADVISE_HUGE_PAGES, "glibc", "", 0, ADVISE_NEEDS_HUGE_ALWAYS, 1},
    {ADVISE_HUGE_PAGES, "jemalloc", "", 0, ADVISE_NEEDS_HUGE_ALWAYS, 1},
    {0, NULL, NULL, 0, 0, 0},
};

const char *advise_group_name(enum advise_group group)
{
    static const char *const names[] = {
        [ADVISE_ALLOCATOR] = "allocator",   [ADVISE_TRIM] = "trim",
        [ADVISE_DECAY] = "decay",           [ADVISE_ARENAS] = "arenas",
        [ADVISE_HUGE_PAGES] = "huge_pages",
    };
    return names[group];
}
