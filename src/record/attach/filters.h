// Do the filters of system calls (seccomp) of a process let it load and use libheaptape.so?
#ifndef HEAPTAPE_ATTACH_FILTERS_H
#define HEAPTAPE_ATTACH_FILTERS_H

#include "record/attach/tracees.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

// A system call that the library makes in a process that was attached to.
struct filters_need {
    const char *name;
    int number;
    bool optional;    // there is another way, or something less is recorded
    uint8_t known;    // bit i: args[i] is what is passed; others may be anything
    uint64_t args[6]; // with them the call fails at once, or does nothing
};

enum { FILTERS_NEEDS = 37 };
extern const struct filters_need filters_needs[FILTERS_NEEDS];

// What a filter does at a system call, as SECCOMP_RET_*, without the data: the most restrictive action that it has for any
// value of the arguments that are not known. A program that is invalid or takes too long to follow kills.
uint32_t filters_action(const struct sock_filter *program, size_t n,
                        const struct filters_need *call);

// Which calls that are optional may be made.
struct filters_verdict {
    bool memfd;
};

// Examines the filters of all threads, which stand still for `paused_ns`. 0, or a negative errno: -ENOTSUP (a filter forbids what
// is needed), -EPERM (they cannot be read), -EBUSY, -ENOMEM.
int filters_check(struct tracees *t, struct filters_verdict *v, uint64_t *paused_ns, struct err *e);

#endif
