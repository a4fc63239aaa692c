// Runs of the real program on the allocators of a session, beside the replays of what was recorded of it.
#ifndef HEAPTAPE_REPLAY_REAL_H
#define HEAPTAPE_REPLAY_REAL_H

#include "replay/session.h"

// The recorded command line, ended by NULL, for replay_real_run: one allocation, which the caller frees. NULL when the
// workload has none, or memory is short.
char **replay_real_recorded(const struct replay_session *s);

// Starts the program settings.runs times on each allocator of a session that has run, in turns, and waits for each run's
// end; figures go to results[i].real. The program has the allocator, and its tunables, in LD_PRELOAD, and /dev/null as
// input and output. 0, -ENOMEM, the errno of the start, or -ECHILD when it ends otherwise than in its first run.
int replay_real_run(struct replay_session *s, char *const argv[], struct err *e);

// Of the runs on an allocator, which must not be 0.
double replay_real_median(const struct replay_result *r, enum replay_real_figure figure);
struct measure_ratio replay_real_ratio(const struct replay_session *s,
                                       const struct replay_result *r,
                                       enum replay_real_figure figure);

#endif
