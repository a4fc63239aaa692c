// Has a process that runs already load libheaptape.so and begin or end its recording, by ptrace(2).
//
// A thread of it is taken where it holds no lock: at the entry of malloc, or in a system call in which it waits. It calls what
// is needed on a stack of its own and goes on where it was; the other threads run meanwhile. A child of this process does
// this, so that a recorder can drain at the same time; if that child dies, the parent removes the breakpoint.
#ifndef HEAPTAPE_ATTACH_ATTACH_H
#define HEAPTAPE_ATTACH_ATTACH_H

#include "base/err.h"
#include "capture/spool/attach.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_result {
    uint32_t threads;
    uint64_t paused_ns; // the longest time for which a thread stood still
    uint64_t listed_blocks, listed_bytes;
    char not_listed[200]; // why they are not; "": they are, or nobody asked
};                        // all zero before the first use; then the maxima of all

struct attach_how {
    const char *library;            // path of libheaptape.so here
    const char *session_dir;        // as the process sees it
    bool list_blocks;               // record glibc's live blocks, too
    const struct spool_wrap *names; // functions that are wrapped by other names, too; NULL: none
};

// What the caller does while it waits; called often. NULL: nothing.
struct attach_meanwhile {
    void (*call)(void *context);
    void *context;
};

// Begins a recording into a session. A recording whose recorder has died is ended first. 0, or a negative errno with the process as it was: -ESRCH, -EPERM,
// -EACCES, -ENOTSUP (what cannot be attached to), -EBUSY (no thread came to a safe place in time), -EIO,
// -EPROTO (the library could not join the session).
int attach_begin(pid_t pid, const struct attach_how *how, const struct attach_meanwhile *meanwhile,
                 struct attach_result *result, struct err *e);

// Ends it: afterwards the process calls malloc as before, and of the recording only the library is left, idle. 0, or a
// negative errno as above; -ENOENT: heaptape was never attached to the process.
// `owner`: the recorder, whose recording alone is ended unless its recorder has died, and -ENOENT is returned where the process
// has another; 0: any recording is ended.
int attach_end(pid_t pid, pid_t owner, const struct attach_meanwhile *meanwhile,
               struct attach_result *result, struct err *e);

#endif
