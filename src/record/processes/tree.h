// The tree of processes below the recorder, from the kernel's fork, exec and exit events (proc
// connector, <linux/cn_proc.h>). A program that one of them executes is either recorded, as shown
// by its spool, or missed.
//
// A separate thread receives the events and inspects each program right after exec, because many
// end within a millisecond.
#ifndef HEAPTAPE_RECORD_TREE_H
#define HEAPTAPE_RECORD_TREE_H

#include "base/clock.h"
#include "record/drain/drain.h"
#include "record/processes/unrecorded.h"

struct tree;

// Starts to receive events. The tree consists of processes started from now on by the recorder or,
// if `attached` is not 0, by that process. Borrows `how`. Returns NULL if the kernel sends no
// events (before Linux 6.6 only with CAP_NET_ADMIN, never in a pid or user namespace) or a thread
// cannot be started.
struct tree *tree_new(const struct unrecorded_how *how, enum clock_kind clock, pid_t attached);

// Marks the program in the spool's process as recorded.
void tree_spool(struct tree *t, const struct drain_spool *s);

// Removes recorded programs that have ended. Call after each search for spools.
void tree_settle(struct tree *t);

// Returns 1 if a live process has the session in its environment, 0 if not, or a negative errno if
// events were lost or could not be processed within milliseconds.
int tree_has_survivor(struct tree *t);

// Processes all events, then stops. Returns true if no events were lost.
bool tree_finish(struct tree *t);

// Returns the next missed program in start order, or NULL at the end. Call after tree_finish, with
// *at initially 0.
struct tree_image *tree_next_missed(struct tree *t, size_t *at);

// `t` may be NULL.
void tree_free(struct tree *t);

// A program image. It exists from exec on, in the process that called exec and in its forks.
struct tree_image {
    pid_t pid;         // the process that called exec
    uint64_t from, to; // stamps; 0: still running
    unsigned live;     // processes that run it now
    unsigned ran;      // processes that ever ran it, except forks that immediately called exec
    bool recorded;
    bool ended; // `pid` has exited
    int status; // if `ended`: status of wait(2)
    unsigned settled;
    struct unrecorded_image seen;
};

#endif
