// Loads libraries on demand. Code that depends on large libraries is kept in separate libraries.
// Only some commands load these, so the other commands start quickly.
#pragma once

#include "base/err.h"

#define TRANSFER_EXPORT __attribute__((visibility("default")))

// Returns the address of `function` in `library`, or NULL with the message set. If the library is
// missing, the message says to install `package` and to build heaptape again.
void *module_load(const char *library, const char *function, const char *package, struct err *e);
