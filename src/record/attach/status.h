// Fields of /proc/PID/task/TID/status.
#ifndef HEAPTAPE_ATTACH_STATUS_H
#define HEAPTAPE_ATTACH_STATUS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// The number in the field of that name, such as "Tgid", and the first letter of its text; 0 where there is no such thread.
uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base);
char status_letter(pid_t pid, pid_t tid, const char *field);

// Can the process be attached to, as far as /proc says, before anything is changed? 0, or a negative errno.
int status_check(pid_t pid, struct err *e);

// Names the process that traces a thread of `pid`. Returns -EBUSY, or -EAGAIN if that is heaptape, which does not trace for long.
int status_traced(pid_t pid, pid_t tracer, struct err *e);

// Describes why ptrace of the process is not permitted, and what to do. Returns -EACCES.
int status_denied(pid_t pid, struct err *e);

#endif
