// Parts of heaptape that link with large libraries: each is a library of its own, which is loaded where it is used, so that no other
// command has to wait until the large ones are loaded.
#ifndef HEAPTAPE_TRANSFER_MODULE_H
#define HEAPTAPE_TRANSFER_MODULE_H

#include "base/err.h"

#define TRANSFER_EXPORT __attribute__((visibility("default")))

// The address of `function` in `library`, whose parts need `package` to be built. NULL with the text set.
void *module_load(const char *library, const char *function, const char *package, struct err *e);

#endif
