// Checks whether the seccomp filters of a process permit loading and using libheaptape.so.
#pragma once

#include "record/attach/tracees.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

// A system call that the library makes in an attached process.
struct filters_need {
    const char *name;
    int number;
    bool optional;    // the library works without the call, but may record less
    uint8_t known;    // bit i: args[i] always has this value; the other arguments vary
    uint64_t args[6]; // with these arguments, the call fails immediately or has no effect
};

enum { FILTERS_NEEDS = 38 };
extern const struct filters_need filters_needs[FILTERS_NEEDS];

// Returns the filter's action, SECCOMP_RET_* without data: the most restrictive action over all
// values of the unknown arguments. Returns SECCOMP_RET_KILL_PROCESS if the program is invalid or
// too complex.
uint32_t filters_action(const struct sock_filter *program, size_t n,
                        const struct filters_need *call);

// Checks all threads. Stops them during the check, and raises *paused_ns to the duration of the
// stop. Sets *memfd to true if memfd_create is permitted. Returns 0, or a negative errno: -ENOTSUP
// (a required call is forbidden), -EPERM (the filters cannot be read), -EBUSY, -ENOMEM.
int filters_check(struct tracees *t, bool *memfd, uint64_t *paused_ns, struct err *e);
