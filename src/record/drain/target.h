// The spool and session of a traced process, opened from outside to read its state and control
// recording.
#pragma once

#include "base/err.h"
#include "capture/spool/control.h"

#include <sys/types.h>

struct target {
    struct spool_session session;
    struct control control; // validate every value read from the header
};

// Finds the spool in the process's mappings, because a program can overwrite its environment.
// Returns 0, -ESRCH, -EACCES, or -ENOENT if the process is not recorded.
int target_open(struct target *a, pid_t pid, struct err *e);
void target_close(struct target *a);

// Sets `path` to a path in /proc that leads to the trace being written, even if the file is
// unnamed. Returns 0, -EACCES, or -ENOENT if the trace is not a file or the file is empty.
enum { TARGET_PATH_BYTES = 64 };
int target_output(const struct target *a, char path[TARGET_PATH_BYTES], struct err *e);
