// Starts the player and waits for its end. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_LAUNCH_H
#define HEAPTAPE_REPLAY_LAUNCH_H

#include "base/err.h"
#include "replay/allocators.h"
#include "replay/watchdog.h"

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

// Returns when it has exited, or has been killed because the watchdog says that it is stuck.
int launch_player(const char *player, const struct allocator *a, const struct launch_files *files,
                  struct launch_outcome *s, struct err *e);

#endif
