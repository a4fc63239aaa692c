// Namespaces of loaded objects.
#pragma once

#include "capture/libc/objects.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// A namespace of objects. The first contains the program. glibc 2.35 and later versions also list
// the namespaces that dlmopen creates.
struct space {
    struct r_debug list;
    const struct space *next; // valid if the version of the first list is above 1
};

// Returns the namespace after `at`, or NULL.
const struct space *spaces_next(const struct space *at);

// Reads a library. Returns false if no ELF header is mapped at its start.
bool spaces_read(struct object *o, const struct link_map *m);

// Returns true if an object is loaded at `base` in any namespace.
bool spaces_is_loaded(uintptr_t base);

// Finds the object at `base` in the namespaces of dlmopen. Returns false if there is no such
// object.
bool spaces_find(uintptr_t base, struct object *o);
