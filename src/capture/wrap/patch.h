// Redirects a running program's calls to the wrappers.
#pragma once

#include "capture/spool/attach.h"

#include <stdbool.h>

// Returns true if each of the functions is called through a slot of some object.
bool patch_names_are_called(const struct spool_wrap *names);

// Stores the addresses of the wrappers in all slots. `find_named` returns the wrapper for a
// function wrapped under another name, or NULL. Returns 0 or ENOMEM.
int patch_install(void *(*find_named)(const char *name));

// Lets patch_check_objects patch the objects that are loaded from now on.
void patch_start_checks(void);

// Restores all slots and stops the checks.
void patch_remove(void);

// Patches newly loaded objects, whose calls must reach the wrappers too. Call often: the function
// checks for new objects only at intervals.
void patch_check_objects(void);
