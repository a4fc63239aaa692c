// Shared by the wrappers.
#ifndef HEAPTAPE_CAPTURE_WRAP_H
#define HEAPTAPE_CAPTURE_WRAP_H

#include "capture/next.h"
#include "capture/producer.h"

// What the version script then exports, if the symbol is in the event table.
#define WRAPPER __attribute__((visibility("default")))

// The return address of a wrapper: whose call it is.
#define WRAP_CALLER __builtin_return_address(0)

#define WRAP_COLD   __attribute__((noinline, cold))

// Records a call that took `p`, or failed, in any form; returns `p`, so that a wrapper can end with a tail call.
void *wrap_taken(enum event_kind kind, size_t size, void *p, const void *caller);

// The real functions, timed.
WRAP_COLD void *wrap_timed_malloc(size_t size);
WRAP_COLD void wrap_timed_free(void *p);

static inline void wrap_free(void *p)
{
    if (producer_call_is_timed())
        wrap_timed_free(p);
    else
        next.free(p);
}

// The error of a call that returned `p`: 0 when it succeeded, or was asked for nothing.
uint8_t wrap_error(const void *p, size_t size);

// In a program that heaptape was attached to: looks now and then whether objects have been loaded, whose calls are to be
// recorded, too.
void wrap_look_for_objects(void);

// The functions that are wrapped by other names too, from now on; NULL: none.
void wrap_set_names(const struct spool_wrap *names);

// The wrapper of a function by another name, or NULL.
void *wrap_named(const char *name);

// Finds the C++ operators that come next. The first call of an operator does it, too; at the start it is done where no
// other thread can hold the loader's lock.
void wrap_cxx_resolve(void);

// Do the operators allocate through malloc, as far as that can be known?
bool wrap_cxx_is_malloc(void);

#endif
