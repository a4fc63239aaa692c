// Starts the player and waits for its end. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_LAUNCH_H
#define HEAPTAPE_REPLAY_LAUNCH_H

#include "base/err.h"
#include "replay/allocators.h"
#include "replay/watchdog.h"

#include <spawn.h>
#include <stdbool.h>

struct launch_outcome {
    int status; // of wait(2)
    bool stuck; // it was killed because it no longer made progress
    int output; // descriptor of the output of the player, at its start; the caller closes it
};

// Descriptors that become those of results.h in the player, -1: none; and what watches it.
struct launch_files {
    int plan, results, stream;
    struct watchdog *watchdog;
};

// Opens the allocator's library in the new process if LD_PRELOAD, which is a list with spaces and colons between the paths,
// cannot hold its path: launch_environment then names the descriptor. Call it after all other actions.
void launch_open_library(const struct allocator *a, posix_spawn_file_actions_t *actions);

// Our environment with the allocator's tunables, and with its library as the only preload, or that of `libc` when it has
// none. NULL: out of memory. The strings but for the first are others'.
char **launch_environment(const struct allocator *a, const char *libc);
void launch_environment_free(char **environment); // which may be NULL

// Returns when it has exited, or has been killed because the watchdog says that it is stuck.
int launch_player(const char *player, const struct allocator *a, const struct launch_files *files,
                  struct launch_outcome *s, struct err *e);

#endif
