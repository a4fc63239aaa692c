// The thread caches of an allocator when all threads of a workload are played by one. An allocator that can says so with
// the two functions that gperftools' replay tool introduced:
//
//   bool release_malloc_thread_cache(void **cache)   stores the calling thread's cache and leaves it without one
//   bool set_malloc_thread_cache(void *cache)        gives it a cache; the one that it has is given up. NULL: none
#include "player/player.h"

#include <stdlib.h>

static bool (*release_cache)(void **);
static bool (*set_cache)(void *);
static void **caches; // by thread of the workload; NULL: none yet
static uint32_t current;

void player_caches_init(void)
{
    if (!player.plan->n_caches || getenv("NO_THREAD_CACHE_SWITCH"))
        return;
    *(void **)&release_cache = player_allocators_own("release_malloc_thread_cache");
    *(void **)&set_cache = player_allocators_own("set_malloc_thread_cache");
    if (release_cache && set_cache)
        caches = player_map_own(player.plan->n_caches * sizeof *caches);
}

// A thread that comes for the first time makes a cache of its own with its first call. The cache of one that is over is
// given up.
void player_switch(uint32_t thread, bool over)
{
    if (!caches)
        return;
    if (!over)
        release_cache(&caches[current]);
    if (over || caches[thread])
        set_cache(caches[thread]);
    caches[thread] = NULL;
    current = thread;
    player.results->figures.cache_switches++;
}
