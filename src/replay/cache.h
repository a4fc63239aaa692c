// Plans that were made for earlier replays, in $XDG_CACHE_HOME/heaptape or ~/.cache/heaptape: a file for each workload (by
// a hash of its content) and each set of settings that change the plan. The folder and its files must be the user's, and
// nobody else's to write; otherwise, and where there is no such folder, no plan is kept. What is there is checked like
// any input: a damaged file is replaced. The plans used longest ago make room for new ones.
#ifndef HEAPTAPE_REPLAY_CACHE_H
#define HEAPTAPE_REPLAY_CACHE_H

#include "replay/plan/saved.h"
#include "workload/file.h"

enum {
    CACHE_MIN_EVENTS =
        1 << 20, // the plan of a smaller workload is made in less than 0.1 s, and not kept
};
#define CACHE_MAX_BYTES                                                                            \
    (8ull << 30) // of all plans, and at most a quarter of the space that the file system has left

struct cache {
    char *folder;        // NULL: no plan is kept
    char *path;          // of the plan that cache_load looked for …
    struct plan_key key; // … and its key
    struct plan_key workload;
    uint64_t modified; // when the workload was hashed
};

// Looks for the folder and hashes the workload, whose position stays. *c is to be released in any case.
void cache_init(struct cache *c, const struct workload_file *w);
void cache_release(struct cache *c);

// Loads the plan for these settings: true, or false when there is none that can be used.
bool cache_load(struct cache *c, struct plan **p, const char *name, const struct plan_settings *s);

// The file for the plan that cache_load did not find: in the folder, without a name as long as cache_store has not been
// called. Where no plan is kept: -ENOENT without a message.
int cache_open_file(struct cache *c, struct output *out, struct err *e);

// Keeps the finished plan in that file, unless the workload has changed since cache_init or the plan is too big. Another
// reason why it is not kept is no error either: it is made again then.
void cache_store(struct cache *c, const struct plan *p, const struct workload_file *w,
                 struct output *out);

// What cache_load loaded has turned out to be damaged: it is removed.
void cache_drop(const struct cache *c);

#endif
