// Guards mappings of files that others may truncate: missing pages read as zeros instead of raising
// SIGBUS.
#ifndef HEAPTAPE_RECORD_GUARD_H
#define HEAPTAPE_RECORD_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct guard {
    struct guard *next, **link;
    char *at;
    size_t bytes;
    _Atomic bool broken; // a page was missing
};

// Installs a SIGBUS handler; SIGBUS must not be blocked. A fault outside all guarded mappings ends
// the process.
void guard_install(void);

struct guard *guard_new(void *at, size_t bytes); // Returns NULL if out of memory.
void guard_free(struct guard *g);                // NULL is allowed

// Guards a mapping. Only one thread may add and remove guards. Other threads may access only the
// mapping that was added first.
void guard_add(struct guard *g, void *at, size_t bytes);
void guard_remove(struct guard *g);

#endif
