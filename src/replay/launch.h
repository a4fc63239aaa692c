// Starts the player and waits for its end. Internal to run.c.
#ifndef HEAPTAPE_REPLAY_LAUNCH_H
#define HEAPTAPE_REPLAY_LAUNCH_H

#include "base/err.h"
#include "replay/allocators.h"

struct launched {
    int status; // as wait gives it
    int output; // descriptor of what the player wrote to stdout and stderr, at its start; the caller closes it
};

// Descriptors that the player finds where results.h says; -1: none.
struct launch_files {
    int plan, results, feed;
};

// Returns when it has ended.
int launch_player(const char *player, const struct allocator *a, const struct launch_files *files, struct launched *s,
                  struct err *e);

#endif
