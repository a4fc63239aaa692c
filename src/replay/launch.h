// Starts the player and waits for its end. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_LAUNCH_H
#define HEAPTAPE_REPLAY_LAUNCH_H

#include "base/err.h"
#include "replay/allocators.h"

struct launch_outcome {
    int status; // of wait(2)
    int output; // descriptor of the output of the player, at its start; the caller closes it
};

// Descriptors that become those of results.h in the player; -1: none.
struct launch_files {
    int plan, results, stream;
};

// Returns when it has exited.
int launch_player(const char *player, const struct allocator *a, const struct launch_files *files,
                  struct launch_outcome *s, struct err *e);

#endif
