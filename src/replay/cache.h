// Caches plans for later replays in $XDG_CACHE_HOME/heaptape or ~/.cache/heaptape. A cache file
// belongs to one workload, identified by a hash of its content, and to one set of settings that
// affect the plan. The directory and the files must belong to the user and be writable only by the
// user; otherwise nothing is cached. A cached plan is checked like any other input and is replaced
// if it is damaged. The least recently used plans are removed to make room for new plans.
#pragma once

#include "replay/plan/saved.h"
#include "workload/file.h"

enum {
    // Workloads with fewer events are not cached, because planning them takes less than 0.1 s.
    CACHE_MIN_EVENTS = 1 << 20,
};
// Limit on the total size of all plans. In addition, plans use at most a quarter of the free space
// of the file system.
#define CACHE_MAX_BYTES (8ull << 30)

struct cache {
    char *folder; // NULL if caching is disabled
    char *path;   // path and key of the plan that cache_load() searched for
    struct plan_key key;
    struct plan_key workload;
    uint64_t modified; // the workload's modification time when it was hashed
};

// Finds the cache directory and hashes the workload. The workload's read position does not change.
// The caller must release *c, even if no directory was found.
void cache_init(struct cache *c, const struct workload_file *w);
void cache_release(struct cache *c);

// Loads the plan for these settings. Returns false if no usable plan is cached.
bool cache_load(struct cache *c, struct plan **p, const char *name, const struct plan_settings *s);

// Opens a file for the plan that cache_load() did not find. cache_store() later gives the file its
// name. Returns 0, -ENOENT without a message if caching is disabled, or another negative errno.
int cache_open_file(struct cache *c, struct output *out, struct err *e);

// Caches the finished plan, whose file is `out`. If the workload has changed since cache_init() or
// the plan is too large, does nothing. Ignores other failures, because the plan can be rebuilt.
void cache_store(struct cache *c, const struct plan *p, const struct workload_file *w,
                 struct output *out);

// Removes the plan that cache_load() loaded. Call if the plan is damaged.
void cache_drop(const struct cache *c);
