// Finished plans in files, so that a plan is made once for many replays. Layout: the windows of a streamed plan, the
// words of its own file at a multiple of PLAN_FILE_STEP, the rest of struct plan, and a trailer with checksums. All
// numbers are those of this machine: a plan is for the build that made it.
#ifndef HEAPTAPE_PLAN_SAVED_H
#define HEAPTAPE_PLAN_SAVED_H

#include "replay/plan/plan.h"

// What the plan was made of: a hash of workload, settings and build.
struct plan_key {
    uint64_t words[2];
};

// Writes what is missing in `out`: of a streamed plan all but its windows, which are there, else all. 0, or the errors of
// output_write, or -ENOMEM.
int plan_save(const struct plan *p, const struct plan_key *key, struct output *out, struct err *e);

// Loads a plan that was saved with that key, made with these settings. `name` is borrowed; `fd` becomes the plan's,
// unless there is an error. All that the player relies on is checked, of a streamed plan the windows when they are
// streamed: -EBADMSG if the file is damaged or not what was asked for, -E2BIG if the memory allowed does not suffice.
int plan_load(struct plan **p, const char *name, const struct plan_settings *s,
              const struct plan_key *key, int fd, struct err *e);

// Is the file a saved plan, as far as its last bytes tell?
bool plan_is_saved(int fd);

// Verifies the checksums of a saved plan, of whatever workload and build. 0, -EBADMSG, -ENOMEM or another negative errno, with
// the text set.
int plan_verify(const char *name, int fd, struct err *e);

#endif
