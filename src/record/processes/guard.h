// Guards mappings of files that other processes may truncate. Missing pages then read as zeros
// instead of raising SIGBUS.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct guard {
    struct guard *next, **link;
    char *at;
    size_t bytes;
    _Atomic bool broken; // set when a page was missing
};

// Installs a handler for SIGBUS, which must not be blocked. Faults outside guarded mappings still
// kill the process.
void guard_install(void);

struct guard *guard_new(void *at, size_t bytes); // returns NULL if out of memory
void guard_free(struct guard *g);                // `g` may be NULL

// Only one thread may add and remove guards. Other threads may use only the first mapping that was
// added.
void guard_add(struct guard *g, void *at, size_t bytes);
void guard_remove(struct guard *g);
