// Why a run failed, as a message. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_RUN_EXPLAIN_H
#define HEAPTAPE_REPLAY_RUN_EXPLAIN_H

#include "replay/launch.h"
#include "replay/plan/streaming.h"
#include "replay/player/results.h"

// What was replayed.
struct run_explained {
    const struct plan *plan;         // NULL: nothing, the allocator was only probed
    const struct watchdog *watchdog; // that watched it
};

// The player reported why it stopped: the error, with its text.
int run_explain_failure(const struct run_explained *w, const struct allocator *a,
                        const struct results *r, struct err *e);

// The player reached the end without making the calls of the plan: -EBADMSG, with the text.
int run_explain_miscount(const struct run_explained *w, const struct allocator *a,
                         const struct results *r, struct err *e);

// The player died, exited without a report, or was killed because it was stuck.
int run_explain_death(const struct run_explained *w, const struct allocator *a,
                      const struct launch_outcome *s, struct err *e);

#endif
