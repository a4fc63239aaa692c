// A traced process from outside: its spool and session, to be looked at and steered.
#ifndef HEAPTAPE_RECORD_TARGET_H
#define HEAPTAPE_RECORD_TARGET_H

#include "base/err.h"
#include "capture/spool/control.h"

#include <sys/types.h>

struct target {
    struct spool_session session;
    struct control control; // every value read from its header is the program's
};

// Finds the spool among the process's mappings, since a program may overwrite what shows its environment. -ESRCH: there
// is no such process; -EACCES; -ENOENT: it is not traced, or no more.
int target_open(struct target *a, pid_t pid, struct err *e);
void target_close(struct target *a);

// A path to the trace that its recorder is writing: through /proc, so that it need not have a name. -ENOENT: there is no such
// file, or nothing in it yet; -EACCES.
enum { TARGET_PATH_BYTES = 64 };
int target_output(const struct target *a, char path[TARGET_PATH_BYTES], struct err *e);

#endif
