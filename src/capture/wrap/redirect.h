// Applies plans (src/capture/spool/entries.h) in this process. While the process is recorded, all
// calls of the redirected functions reach the wrappers, regardless of the calling object and the
// kind of call.
#pragma once

#include "capture/libc/objects.h"
#include "capture/spool/attach.h"
#include "capture/spool/entries.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REDIRECT_MAX = 2 * ENTRIES_MAX, // functions that can be redirected
    // including the functions of --wrap that are wrapped through the tables
    REDIRECT_THUNKS = REDIRECT_MAX + SPOOL_WRAPPED,
};

// A redirected function. The members are constant until the object is unloaded, except `wanted`.
struct redirect_function {
    uintptr_t at, base, trampoline, wrapper, area; // `at` is 0 if the object was unloaded
    _Atomic uintptr_t *slot;
    uint16_t function;     // as in struct entries_entry
    uint16_t family;       // as in struct entries_entry
    const char *arguments; // letters as in struct entries_entry, but never ""
    bool wanted;           // a plan of the recording contains the function
    bool throws;           // the function may throw an exception
    bool in_libc;          // the function belongs to a C library of another namespace
    uint32_t mark;         // bits that are set in producer_tls.busy while a call is recorded
    char letters[sizeof((struct entries_entry *)0)->arguments + 1];
};

// The redirected functions. An index is valid below redirect_count(); the functions of --wrap have
// the indexes from REDIRECT_MAX.
struct redirect_table {
    struct redirect_function all[REDIRECT_THUNKS];
    struct entries_redirected entries[REDIRECT_MAX]; // the same functions as in `all`
    _Atomic size_t n;
};
extern struct redirect_table redirect_table __attribute__((visibility("hidden")));

size_t redirect_count(void);

// Returns the redirected function that begins at the address, or NULL.
struct redirect_function *redirect_find(uintptr_t at);

// Sets function `i` of --wrap, whose wrapper is the thunk of index REDIRECT_MAX + i.
// A thread may still be inside the wrapper of an earlier function.
void redirect_set_named(unsigned i, const struct spool_wrapped *named, void *real);

// Maps the area of a plan for the loaded object at `base`, and sets *area to the area's address.
// The area's code pages are empty, and the object is unchanged. A second call for the same
// functions returns the same area. Returns 0, or a positive errno: EINVAL (invalid plan), ENOEXEC
// (the bytes in memory differ from the plan), EEXIST (another plan has redirected one of the
// functions), EBUSY (another thread is adding functions), ENOMEM (no address space within reach),
// ENOSPC (too many functions), EPERM or EACCES (the kernel refused).
int redirect_map(const struct entries_plan *plan, uintptr_t base, uintptr_t *area);

// Redirects the functions of a plan in a loaded object, whose code no other thread may execute:
// maps the area, writes its code and stores the jumps. Changes the displacements in the plan.
// Returns 0, a positive errno of redirect_map, ERANGE, or EIO (the code cannot be written). After
// an error, calls reach the real functions.
int redirect_apply(struct entries_plan *plan, uintptr_t base);

// redirect_forget removes one function. redirect_forget_unloaded removes the functions of all
// objects that are no longer loaded.
void redirect_forget(size_t index);
void redirect_forget_unloaded(void);

// Returns true if the object exports a malloc with a known prefix, or mallocx of jemalloc.
bool redirect_has_prefixed(const struct object *o);

// Returns true if the object is not the malloc in use, and exports functions with prefixes that are
// not redirected.
bool redirect_misses(const struct object *o);

// redirect_start makes calls reach the wrappers, for the functions in plans that were added since
// redirect_stop. `examine` is the wrapper of ENTRIES_LOADS. redirect_stop makes calls of all
// redirected functions reach the real functions.
void redirect_start(void (*examine)(void));
void redirect_stop(void);

// Returns the address at which the real function can be called: the trampoline if the function is
// redirected, else `function`.
void *redirect_real(void *function);
