// The tree of processes below the recorder, from the kernel's fork, exec and exit events (proc
// connector, <linux/cn_proc.h>). If one of these processes executes a program, the program is
// recorded if it has a spool, and missed otherwise.
//
// A separate thread receives the events and inspects each program right after exec, because many
// programs end within a millisecond.
#pragma once

#include "base/clock.h"
#include "record/drain/drain.h"
#include "record/unrecorded/unrecorded.h"

struct tree;

// Starts to receive events. The tree consists of the processes that the recorder starts from now
// on. If `attached` is not 0, it consists of the processes that process `attached` starts from now
// on. Borrows `how`. Returns NULL if the kernel sends no events, or a thread cannot be started.
// Before Linux 6.6, events require CAP_NET_ADMIN; they are never sent to a pid or user namespace.
struct tree *tree_new(const struct unrecorded_how *how, enum clock_kind clock, pid_t attached);

// Marks the program in the spool's process as recorded.
void tree_spool(struct tree *t, const struct drain_spool *s);

// Removes recorded programs that have ended. Call after each search for spools.
void tree_settle(struct tree *t);

// Returns 1 if a live process has the session in its environment, else 0. Returns a negative errno
// if events were lost or could not be processed in time.
int tree_has_survivor(struct tree *t);

// Processes all events, then stops. Returns true if no events were lost.
bool tree_finish(struct tree *t);

// Returns the next missed program in start order, or NULL at the end. Call after tree_finish, with
// *at initially 0.
struct tree_image *tree_next_missed(struct tree *t, size_t *at);

// `t` may be NULL.
void tree_free(struct tree *t);

// A program image, created by an exec. The process that called exec and its forked children run the
// image.
struct tree_image {
    pid_t pid;         // pid of the process that called exec
    uint64_t from, to; // stamps of start and end; `to` is 0 while the image is running
    unsigned live;     // number of processes that are running the image
    // Number of processes that have ever run the image, except forks that immediately called exec.
    unsigned ran;
    bool recorded;
    bool ended; // `pid` has exited
    int status; // if `ended`: status as from wait(2)
    unsigned settled;
    struct unrecorded_image seen;
};
