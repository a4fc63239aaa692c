// Applies plans (src/capture/spool/entries.h) in this process: calls of the redirected functions
// reach the wrappers while the process is recorded, whichever object calls them and how.
#ifndef HEAPTAPE_CAPTURE_REDIRECT_H
#define HEAPTAPE_CAPTURE_REDIRECT_H

#include "capture/spool/entries.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Maps the area of a plan for the loaded object at `base`, and sets *area to its address. Its code
// pages are empty, and the object is unchanged. A second call for the same functions returns the
// same area. Returns 0, or an errno: EINVAL (invalid plan), ENOEXEC (the bytes in memory differ
// from the plan), EEXIST (another plan has redirected one of the functions), ENOMEM (no address
// space within reach), ENOSPC (too many functions), EPERM or EACCES (the kernel refused).
int redirect_map(const struct entries_plan *plan, uintptr_t base, uintptr_t *area);

// Lets calls of the redirected functions reach the wrappers, or the real functions.
void redirect_start(void);
void redirect_stop(void);

// Returns the address at which the real function can be called: the trampoline if the function is
// redirected, else `function`.
void *redirect_real(void *function);

#endif
