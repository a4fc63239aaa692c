// Libraries that are loaded on demand. Code that links with large libraries is in a separate
// library, so that other commands start quickly.
#ifndef HEAPTAPE_TRANSFER_MODULE_H
#define HEAPTAPE_TRANSFER_MODULE_H

#include "base/err.h"

#define TRANSFER_EXPORT __attribute__((visibility("default")))

// Returns the address of `function` in `library`, or NULL with the message set. The message names
// `package`, which the build requires.
void *module_load(const char *library, const char *function, const char *package, struct err *e);

#endif
