// Runs of the real program on the allocators of a session, for comparison with the replays.
#ifndef HEAPTAPE_REPLAY_REAL_H
#define HEAPTAPE_REPLAY_REAL_H

#include "replay/session.h"

// Returns the recorded command line for replay_real_run(), in one allocation that the caller frees.
// NULL: not recorded, or out of memory.
char **replay_real_recorded(const struct replay_session *s);

// Runs the program settings.runs times on each allocator, in turns, after the session has run.
// Figures go to results[i].real. The allocator and its tunables are in LD_PRELOAD; input and output
// are /dev/null. Returns 0, -ENOMEM, a negative errno of the start, or -ECHILD if the first run had
// another exit status.
int replay_real_run(struct replay_session *s, char *const argv[], struct err *e);

// Require at least one run on the allocator.
double replay_real_median(const struct replay_result *r, enum replay_real_figure figure);
struct measure_ratio replay_real_ratio(const struct replay_session *s,
                                       const struct replay_result *r,
                                       enum replay_real_figure figure);

#endif
