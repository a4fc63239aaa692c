// Saves finished plans in files, so that a plan is built only once for many replays. A file
// contains a streamed plan's windows; the words of the plan's own file, at a multiple of
// PLAN_FILE_STEP; the rest of struct plan; and a trailer with checksums. Numbers are in native
// format, so only the build that saved a plan can load it.
#pragma once

#include "replay/plan/plan.h"

// Hash of the workload, the settings and the build.
struct plan_key {
    uint64_t words[2];
};

// Appends the plan to `out`. The windows of a streamed plan must already be in `out`. Returns 0,
// -ENOMEM, or an error of output_write().
int plan_save(const struct plan *p, const struct plan_key *key, struct output *out, struct err *e);

// Loads a plan that was saved with this key and built with these settings. `name` is borrowed. On
// success, the plan owns `fd`. Checks everything that the player relies on, except for windows,
// which are checked when they are streamed. Returns 0, -EBADMSG if the file is damaged or has a
// different key, -E2BIG if the plan exceeds the memory allowed, or another negative errno.
int plan_load(struct plan **p, const char *name, const struct plan_settings *s,
              const struct plan_key *key, int fd, struct err *e);

// Returns true if the file ends in the trailer of a saved plan.
bool plan_is_saved(int fd);

// Verifies the checksums of a saved plan, which may be for any workload and from any build. Returns
// 0, -EBADMSG, -ENOMEM, or another negative errno.
int plan_verify(const char *name, int fd, struct err *e);
