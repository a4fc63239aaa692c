// Redirects calls of a running program to the wrappers.
#ifndef HEAPTAPE_CAPTURE_PATCH_H
#define HEAPTAPE_CAPTURE_PATCH_H

#include "capture/spool/attach.h"

#include <stdbool.h>

// Returns true if each of the functions is called through a slot of some object.
bool patch_names_are_called(const struct spool_wrap *names);

// Stores the addresses of the wrappers in all slots. `find_named` returns the wrapper of a function
// with another name, or NULL. Returns 0 or ENOMEM.
int patch_install(void *(*find_named)(const char *name));

// Lets patch_check_objects patch objects that are loaded from now on.
void patch_start_checks(void);

// Restores all slots, and ends the checks.
void patch_remove(void);

// Checks now and then for newly loaded objects, whose calls must be patched, too.
void patch_check_objects(void);

#endif
