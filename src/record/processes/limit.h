// Resource limits (getrlimit(2)) that explain a failure.
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

// A limit, for example "address space", 4000, " KiB".
struct limit {
    const char *what; // NULL if there is no limit
    uint64_t amount;
    const char *unit;
};

// If `error` is not 0, returns the lowest limit of the process that causes `error`. Otherwise
// returns the lowest limit that prevents recording. A `pid` of 0 means the caller. The result's
// `what` is NULL if no limit applies.
struct limit limit_find(pid_t pid, int error);

// Describes a limit of `value` bytes or files on a resource (RLIMIT_*).
struct limit limit_of(uint32_t resource, uint64_t value);

// If a limit explains the negative errno `rc`, appends the limit to the message. Returns `rc`.
int limit_explain(int rc, struct err *e);
