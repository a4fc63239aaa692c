// The processes below the recorder, from the kernel's fork, exec and exit events (proc connector,
// <linux/cn_proc.h>). A program executed by one of them is either recorded, which its spool shows,
// or missed.
//
// A separate thread receives the events and inspects a program right after its exec: many end
// within a millisecond.
#ifndef HEAPTAPE_RECORD_TREE_H
#define HEAPTAPE_RECORD_TREE_H

#include "base/clock.h"
#include "record/drain/drain.h"
#include "record/processes/unrecorded.h"

struct tree;

// Starts to receive events. The tree consists of the processes that the recorder starts from now on
// or, with `attached` != 0, of that process and its descendants. `how` is borrowed. Returns NULL if
// the kernel sends no events (before Linux 6.6 only with CAP_NET_ADMIN, never in a pid or user
// namespace) or no thread can be started.
struct tree *tree_new(const struct unrecorded_how *how, enum clock_kind clock, pid_t attached);

// Reports a new spool: the program in its process is recorded.
void tree_spool(struct tree *t, const struct drain_spool *s);

// Forgets recorded programs that have ended. Call after each search for new spools.
void tree_settle(struct tree *t);

// Returns 1 if a live process of the tree has the session in its environment, 0 if none has, or a
// negative errno if events were lost or could not be processed within some milliseconds.
int tree_has_survivor(struct tree *t);

// Stops after processing all events. Returns true if no event was lost.
bool tree_finish(struct tree *t);

// Returns the next missed program in order of start, or NULL at the end. Call after tree_finish,
// with *at 0 first.
struct tree_image *tree_next_missed(struct tree *t, size_t *at);

// `t` may be NULL.
void tree_free(struct tree *t);

// A program from its exec on, in the process that called exec and in that process's forks.
struct tree_image {
    pid_t pid;         // the process that called exec
    uint64_t from, to; // stamps; 0: still running
    unsigned live;     // processes that run it now
    unsigned ran;      // processes that ever ran it, except forks that called exec at once
    bool recorded;
    bool ended; // `pid` has exited …
    int status; // … with this status of wait(2)
    unsigned settled;
    struct unrecorded_look look;
};

#endif
