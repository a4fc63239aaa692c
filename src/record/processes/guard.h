// Mappings of files that others may truncate: what is then not there any more reads as zeros, and is no SIGBUS.
#ifndef HEAPTAPE_RECORD_GUARD_H
#define HEAPTAPE_RECORD_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct guard {
    struct guard *next, **link;
    char *at;
    size_t bytes;
    _Atomic bool broken; // something was not there
};

// Takes SIGBUS over, which must not be blocked. A fault outside of all guarded mappings ends the process as before.
void guard_install(void);

struct guard *guard_new(void *at, size_t bytes); // NULL: out of memory
void guard_free(struct guard *g);                // NULL is allowed

// Guards a mapping. One thread adds and removes, and all but the mapping that was added first are used by it alone.
void guard_add(struct guard *g, void *at, size_t bytes);
void guard_remove(struct guard *g);

#endif
