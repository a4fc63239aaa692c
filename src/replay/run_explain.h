// Why a run failed, as a message. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_RUN_EXPLAIN_H
#define HEAPTAPE_REPLAY_RUN_EXPLAIN_H

#include "plan/streaming.h"
#include "player/results.h"
#include "replay/launch.h"

// What was played.
struct run_what {
    const struct plan *plan;      // NULL: nothing, the allocator was only looked for
    const struct streaming *feed; // stopped; NULL: the plan is whole
};

// The player said why it stopped: the error, with its text.
int run_explain_failure(const struct run_what *w, const struct allocator *a, const struct results *r, struct err *e);

// The player died, or went away without having said anything.
int run_explain_death(const struct allocator *a, const struct results *r, const struct launched *s, struct err *e);

#endif
