// A queue of bundles, in order, and the threads that encode them: the thread that writes the trace,
// and helpers. Helpers have a lower priority and use CPUs that would otherwise be idle. Without
// helpers (one CPU, or a limit on threads), the writing thread encodes everything.
#pragma once

#include "base/fio.h"
#include "base/frame.h"
#include "record/drain/bundle.h"

enum {
    COMPRESSORS_BUNDLES = 80, // maximum backlog: 60 MiB
    COMPRESSORS_HELPERS = 8
};

struct compressors;

struct compressors_settings {
    struct output *out; // borrowed; only its name is used
    enum frame_codec codec;
    int level;
    unsigned helpers; // maximum number of helpers, at most COMPRESSORS_HELPERS
};

// Returns the number of CPUs that this process may use in addition to the first, at most
// COMPRESSORS_HELPERS. Takes the process's affinity and the quota of its cgroup into account.
// `cgroups` is the mount point of cgroups.
unsigned compressors_spare_cpus(const char *cgroups);

// Returns NULL if out of memory.
struct compressors *compressors_new(const struct compressors_settings *s);

// Stops the helpers and frees the queue with its bundles. `l` may be NULL.
void compressors_free(struct compressors *l);

// Returns an empty bundle, or NULL if out of memory.
struct bundle *compressors_empty_bundle(struct compressors *l);

// Queues a bundle. Starts a helper if there is work for one.
void compressors_put(struct compressors *l, struct bundle *p);

// Encodes a bundle or, if helpers are encoding all bundles, waits for up to 10 ms. If the oldest
// bundle is encoded, removes it from the queue and sets *oldest to it, else sets *oldest to NULL.
// Returns false if the queue was empty. Call in the writing thread only.
bool compressors_work(struct compressors *l, struct bundle **oldest);

// If the backlog is full, encodes a waiting bundle and returns true. Call in the backup thread
// only: the programs wait for space in the backlog, and this thread's priority is not lower than
// theirs.
bool compressors_help(struct compressors *l);

// Recycles a bundle that was written.
void compressors_recycle(struct compressors *l, struct bundle *p);

// Returns the number of bundles that were queued and are not yet recycled.
uint32_t compressors_backlog(const struct compressors *l);

// Returns the number of events in the queue.
uint64_t compressors_events(struct compressors *l);
