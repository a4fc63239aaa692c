// Steering a recording: by the process itself (include/heaptape/heaptape.h) and from outside (heaptape ctl). Malloc-free;
// no function here calls anything of libc but syscall(2) and the vDSO clock.
#ifndef HEAPTAPE_SPOOL_CONTROL_H
#define HEAPTAPE_SPOOL_CONTROL_H

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
    struct spool_header *header;         // the process's spool, mapped
    const struct spool_session *session; // a copy
    const struct spool_session *futexes; // the session, mapped: for system calls alone
    uint32_t
        process; // pid, as the caller sees it, of the traced process if that is another one; else 0
};

// 0, or a negative errno: -EPERM to resume a stopped recording; -EPIPE when the recorder, or -ESRCH when the process, has
// ended; -ENOTSUP, for a reset, when the trace is no regular file or there is no recorder; -ENOSPC when without a
// recorder the state has changed more than SPOOL_STATE_CHANGES times; -ENODATA when tracing has turned itself off. A call that
// starts after a pause or stop has returned is not recorded; one that starts after a start or resume is.
int control_do(const struct control *c, enum control_verb verb);

// Is there a recorder that will drain the session's spools? False for ever once it has stopped or died. Where the mapped
// session has been truncated, the recorder has a second to put that right. By a system call, which cannot fault. `owner` is what the session says of its recorder.
bool control_recorder_lives(const struct spool_session *futexes, uint32_t owner);

// Wakes the recorder, to look at the spool.
void control_wake_recorder(struct spool_header *h, const struct spool_session *futexes);

// Filters of system calls that the calling process has; 0: none, or the kernel (before 5.9) does not say.
uint32_t control_filters(void);

// Has the process with this pid ended, or is it a zombie? false when the pid means nothing here.
bool control_is_gone(uint32_t pid);

#endif
