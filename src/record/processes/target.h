// Opens the spool and session of a traced process from another process, to read its state and
// control recording.
#ifndef HEAPTAPE_RECORD_TARGET_H
#define HEAPTAPE_RECORD_TARGET_H

#include "base/err.h"
#include "capture/spool/control.h"

#include <sys/types.h>

struct target {
    struct spool_session session;
    struct control control; // validate every value read from the header
};

// Finds the spool in the mappings of the process, because a program can overwrite its environment.
// Returns 0, -ESRCH if the process does not exist, -EACCES, or -ENOENT if it is not being recorded.
int target_open(struct target *a, pid_t pid, struct err *e);
void target_close(struct target *a);

// Sets `path` to the trace that the recorder is writing, as a path in /proc that works for unnamed
// files. Returns 0, -ENOENT if there is no such file or it is still empty, or -EACCES.
enum { TARGET_PATH_BYTES = 64 };
int target_output(const struct target *a, char path[TARGET_PATH_BYTES], struct err *e);

#endif
