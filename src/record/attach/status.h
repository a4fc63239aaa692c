// Fields of /proc/PID/task/TID/status, and checks before attaching.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// status_number returns the value of a field such as "Tgid" as a number. status_letter returns the
// first letter of the value. Both return 0 if the field is missing.
uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base);
char status_letter(pid_t pid, pid_t tid, const char *field);

// Sets an error if the process does not exist, has ended, or has no memory because its main thread
// has ended. Returns 0, -ESRCH or -ENOTSUP.
int status_ended(pid_t pid, struct err *e);

// Checks in /proc whether the process can be attached to. Returns 0, -EAGAIN if the obstacle is
// expected to end soon, or another negative errno.
int status_check(pid_t pid, struct err *e);

// Sets an error that names the tracer of `pid`. Returns -EBUSY. Returns -EAGAIN if the tracer has
// ended, or if it is heaptape, which detaches soon.
int status_traced(pid_t pid, pid_t tracer, struct err *e);

// Explains why ptrace is not permitted and how to permit it. Returns -EACCES.
int status_denied(pid_t pid, struct err *e);
