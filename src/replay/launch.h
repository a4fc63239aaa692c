// Starts the player, waits for it to end, and explains failures. Internal to run.c and real.c.
#pragma once

#include "base/err.h"
#include "replay/allocators.h"
#include "replay/watchdog.h"

#include <spawn.h>
#include <stdbool.h>

struct launch_outcome {
    int status; // status as from wait(2)
    bool stuck; // killed because it made no progress
    int output; // the player's output, at offset 0; the caller closes it
};

// Descriptors that the player inherits with the numbers in results.h (-1 if not passed), and the
// player's watchdog.
struct launch_files {
    int plan, results, stream;
    struct watchdog *watchdog;
};

// If the path of the allocator's library or of `first`, which may be "", contains a space or colon,
// makes the new process open this library, because LD_PRELOAD cannot contain such a path.
// launch_environment() then uses the descriptor instead of the path. Call after all other actions
// have been added.
void launch_open_libraries(const struct allocator *a, const char *first,
                           posix_spawn_file_actions_t *actions);

// Returns heaptape's environment with the allocator's tunables added. The environment preloads
// `first`, which may be "", and the allocator's library or, if a->library is NULL, `libc`. The
// caller frees the array, which borrows most strings. Returns NULL when out of memory.
char **launch_environment(const struct allocator *a, const char *first, const char *libc);

// Starts the player and waits until it has ended or was killed by the watchdog. Returns 0, or a
// negative errno.
int launch_player(const char *player, const struct allocator *a, const struct launch_files *files,
                  struct launch_outcome *s, struct err *e);

// launch_explain.c: launch_explain_failure explains a failure that the player reported. `output` is
// the player's output, where the loader prints why it did not load a library.
// launch_explain_death explains that the player died, exited without a report, or was killed
// because it was stuck. Both return a negative errno.
int launch_explain_failure(const struct watchdog *w, const struct allocator *a, int output,
                           struct err *e);
int launch_explain_death(const struct watchdog *w, const struct allocator *a,
                         const struct launch_outcome *s, struct err *e);
