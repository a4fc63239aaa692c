// Sets the error message after a failed run. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_RUN_EXPLAIN_H
#define HEAPTAPE_REPLAY_RUN_EXPLAIN_H

#include "replay/launch.h"
#include "replay/plan/streaming.h"
#include "replay/player/results.h"

struct run_explained {
    const struct plan *plan; // NULL for a probe, which has no plan
    const struct watchdog *watchdog;
};

// Explains a failure reported by the player.
int run_explain_failure(const struct run_explained *w, const struct allocator *a,
                        const struct results *r, struct err *e);

// Explains that the player finished without making exactly the calls in the plan. Returns -EBADMSG.
int run_explain_miscount(const struct run_explained *w, const struct allocator *a,
                         const struct results *r, struct err *e);

// Explains that the player died, exited without a report, or was killed because it was stuck.
int run_explain_death(const struct run_explained *w, const struct allocator *a,
                      const struct launch_outcome *s, struct err *e);

#endif
