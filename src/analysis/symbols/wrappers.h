// Finds allocation wrappers: functions of the program that allocate for their callers, such as
// xmalloc. docs/design/call-sites.md explains the rule.
#ifndef HEAPTAPE_ANALYSIS_WRAPPERS_H
#define HEAPTAPE_ANALYSIS_WRAPPERS_H

#include "analysis/symbols/symbols.h"

struct wrapper {
    uint64_t key;           // wrappers_key
    struct symbol function; // as it occurs in one of the stacks
    size_t callers;         // different functions that call it
    size_t stacks;          // stacks whose innermost functions are this one and its callees
};

// Empty if all zero.
struct wrappers {
    struct wrapper *list;
    size_t n, capacity;
    struct map keys; // wrappers_key → 1
};

void wrappers_release(struct wrappers *w);

// Returns the identity of a function of the program: a hash of its name without arguments,
// or of its start if it has no name.
uint64_t wrappers_key(const struct symbol *s);

// Finds the wrappers in all stacks of `sites`. *w must be empty. Returns 0 or -ENOMEM.
int wrappers_find(struct wrappers *w, struct symbols *s, const struct workload_sites *sites);

#endif
