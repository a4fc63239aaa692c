// Controls a recording, from the process (include/heaptape/heaptape.h) or from outside (heaptape
// ctl). The functions do not allocate. They call nothing from libc except syscall(2) and the vDSO
// clock.
#pragma once

#include "capture/spool/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum control_verb {
    CONTROL_START,
    CONTROL_STOP,
    CONTROL_PAUSE,
    CONTROL_RESUME,
    CONTROL_SYNC,
    CONTROL_RESET
};

struct control {
    struct spool_header *header;         // mapping of the process's spool
    const struct spool_session *session; // copy of the session
    const struct spool_session *futexes; // mapping of the session, for system calls only
    // pid of the traced process in the caller's pid namespace, or 0 for the caller
    uint32_t process;
    uint64_t timeout_ns; // maximum time to wait for the recorder; 0: as long as the recorder lives
};

// Changes the state of the recording, or waits until the recorder has completed a sync or reset. A
// call to the malloc API that begins after a pause or stop has returned is not recorded. A call
// that begins after a start or resume has returned is recorded.
//
// Returns 0, or a negative errno:
//   -EPERM    resume, but the recording is stopped
//   -EPIPE    the recorder has ended
//   -ESRCH    the process has ended
//   -ENOTSUP  reset, but the trace is not a regular file, or no recorder runs
//   -ENOSPC   no recorder runs, and the state changed more than SPOOL_STATE_CHANGES times
//   -ENODATA  tracing turned itself off
//   -ETIMEDOUT  the recorder did not answer in time; a sync or reset remains requested
int control_execute(const struct control *c, enum control_verb verb);

// Returns true if a live recorder will drain the session's spools. A result of false is final. If
// the mapped session is truncated, waits up to a second for the recorder to repair it. Passes the
// mapping only to a system call, which returns an error instead of faulting. `owner` is the member
// of struct spool_session.
bool control_recorder_lives(const struct spool_session *futexes, uint32_t owner);

// Wakes the recorder, which then examines the spool.
void control_wake_recorder(struct spool_header *h, const struct spool_session *futexes);

// Returns the number of the calling process's system call filters, or 0 if the kernel does not
// report it (before Linux 5.9).
uint32_t control_filters(void);

// Returns true if the process has exited or is a zombie. Returns false if the pid is invalid in
// this namespace.
bool control_is_gone(uint32_t pid);
