// Plans of earlier replays, in $XDG_CACHE_HOME/heaptape or ~/.cache/heaptape: one file for each
// workload, by a hash of its content, and each set of settings that affect the plan. Folder and
// files must belong to the user, and only the user may be able to write to them; otherwise no plan
// is kept. A kept plan is checked like any input, and replaced if it is damaged. The least recently
// used plans make room for new ones.
#ifndef HEAPTAPE_REPLAY_CACHE_H
#define HEAPTAPE_REPLAY_CACHE_H

#include "replay/plan/saved.h"
#include "workload/file.h"

enum {
    CACHE_MIN_EVENTS =
        1 << 20, // smaller workloads are not kept: their plans are made in less than 0.1 s
};
#define CACHE_MAX_BYTES                                                                            \
    (8ull << 30) // for all plans, and at most a quarter of the file system's free space

struct cache {
    char *folder; // NULL: no plan is kept
    char *path;   // path and key of the plan that cache_load() looked for
    struct plan_key key;
    struct plan_key workload;
    uint64_t modified; // the workload's modification time when it was hashed
};

// Finds the folder and hashes the workload, whose position is preserved. Release *c even if no
// folder was found.
void cache_init(struct cache *c, const struct workload_file *w);
void cache_release(struct cache *c);

// Loads the plan for these settings. Returns false if no usable plan is kept.
bool cache_load(struct cache *c, struct plan **p, const char *name, const struct plan_settings *s);

// Opens a file for the plan that cache_load() did not find; cache_store() gives it its name.
// Returns 0, -ENOENT without a text if no plan is kept, or another negative errno.
int cache_open_file(struct cache *c, struct output *out, struct err *e);

// Keeps the finished plan, whose file is `out`, unless the workload has changed since cache_init()
// or the plan is too large. Other failures are ignored: the plan is made again next time.
void cache_store(struct cache *c, const struct plan *p, const struct workload_file *w,
                 struct output *out);

// Removes the plan that cache_load() loaded. Call if it is damaged.
void cache_drop(const struct cache *c);

#endif
