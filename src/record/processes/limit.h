// Resource limits (getrlimit(2)) that are the reason why something failed.
#ifndef HEAPTAPE_PROC_LIMIT_H
#define HEAPTAPE_PROC_LIMIT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// "address space", 4000, " KiB".
struct limit {
    const char *what; // NULL: no limit
    uint64_t amount;
    const char *unit;
};

// The limit of the process (0: of the caller) that lets calls fail with `error`: of several, the lowest. With 0 for `error`,
// any limit that keeps a program from being recorded. limit.what is NULL if there is none.
struct limit limit_find(pid_t pid, int error);

// The limit of `value` bytes or files on a RLIMIT_* resource.
struct limit limit_of(uint32_t resource, uint64_t value);

// If the caller failed with the negative errno `rc` because of a limit, appends the limit to the error. Returns `rc`.
int limit_explain(int rc, struct err *e);

#endif
