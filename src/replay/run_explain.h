// Sets the text of the error after a failed run. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_RUN_EXPLAIN_H
#define HEAPTAPE_REPLAY_RUN_EXPLAIN_H

#include "replay/launch.h"
#include "replay/plan/streaming.h"
#include "replay/player/results.h"

// The run.
struct run_explained {
    const struct plan *plan; // NULL: a probe without a plan
    const struct watchdog *watchdog;
};

// The player reported a failure.
int run_explain_failure(const struct run_explained *w, const struct allocator *a,
                        const struct results *r, struct err *e);

// The player reached the end without making exactly the calls of the plan: -EBADMSG.
int run_explain_miscount(const struct run_explained *w, const struct allocator *a,
                         const struct results *r, struct err *e);

// The player died, exited without a report, or was killed because it was stuck.
int run_explain_death(const struct run_explained *w, const struct allocator *a,
                      const struct launch_outcome *s, struct err *e);

#endif
