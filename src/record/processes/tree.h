// The processes that run below the recorder, as the kernel reports them: each fork, exec and exit (the proc connector,
// <linux/cn_proc.h>). Each program that one of them executes is recorded, which its spool shows, or was missed.
//
// A thread of its own listens, and looks at a program in the moment it is executed: many end within a millisecond.
#ifndef HEAPTAPE_RECORD_TREE_H
#define HEAPTAPE_RECORD_TREE_H

#include "base/clock.h"
#include "record/drain/drain.h"
#include "record/processes/unrecorded.h"

struct tree;

// Starts to listen; what heaptape starts from now on is part of the tree, or what a process that runs already and is
// recorded starts (`attached`; 0: there is none). `how` is borrowed. NULL: the kernel does not report
// (before Linux 6.6 only to those with CAP_NET_ADMIN, and never in a pid or user namespace), or there is no thread to be had.
struct tree *tree_new(const struct unrecorded_how *how, enum clock_kind clock, pid_t attached);

// A spool was found: what its process runs is recorded.
void tree_spool(struct tree *t, const struct drain_spool *s);

// The recorder has looked for new spools since the last call: forgets the programs that have ended and were recorded.
void tree_settle(struct tree *t);

// Does a process of the tree live whose environment names the session? 1 or 0; or a negative errno: the kernel has left something
// out, or its reports could not be entered in some milliseconds.
int tree_has_survivor(struct tree *t);

// Stops listening, when all that has been reported is known. True if the kernel has left nothing out.
bool tree_finish(struct tree *t);

// After tree_finish: the next program that was missed, in order of their start; *at is 0 at first. NULL: there are no more.
struct tree_image *tree_next_missed(struct tree *t, size_t *at);

// NULL is allowed.
void tree_free(struct tree *t);

// A program from its exec on, in one process and those that it forked.
struct tree_image {
    pid_t pid;         // that executed it
    uint64_t from, to; // stamps; 0: it still runs
    unsigned live;     // processes that run it
    unsigned ran;      // processes that have run it, without those that at once executed another
    bool recorded;
    bool ended; // the process that executed it has exited, with
    int status; // … that of wait(2)
    unsigned settled;
    struct unrecorded_look look;
};

#endif
