// Finds allocation wrappers: functions of the program that allocate for their callers, such as
// xmalloc. docs/design/call-sites.md explains the rule.
#pragma once

#include "analysis/symbols/symbols.h"

struct wrapper {
    uint64_t key;           // wrappers_key
    struct symbol function; // the function, as found in one of its stacks
    size_t callers;         // number of distinct callers
    // Number of stacks whose innermost functions are this function and its callees.
    size_t stacks;
};

// A struct of zeros is an empty set.
struct wrappers {
    struct wrapper *list;
    size_t n, capacity;
    struct map keys; // set of wrappers_key values
};

void wrappers_release(struct wrappers *w);

// Returns the identity of one of the program's functions. The identity is a hash of the function's
// name without arguments or, if there is no name, of the object's path and the function's offset.
uint64_t wrappers_key(const struct symbol *s);

// Finds the wrappers in the stacks of all call sites. *w must be empty. Returns 0 or -ENOMEM.
int wrappers_find(struct wrappers *w, struct symbols *s);
