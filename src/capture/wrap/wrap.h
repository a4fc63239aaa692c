// Shared by the wrappers.
#ifndef HEAPTAPE_CAPTURE_WRAP_H
#define HEAPTAPE_CAPTURE_WRAP_H

#include "capture/producer/producer.h"
#include "capture/wrap/next.h"

// What the version script then exports, if the symbol is in the event table.
#define WRAPPER __attribute__((visibility("default")))

// The return address of a wrapper: whose call it is.
#define WRAP_CALLER __builtin_return_address(0)

#define WRAP_COLD   __attribute__((noinline, cold))

// Records a call that allocated `p`, or failed, in any form, and returns `p`. The wrapper ends with this call, so that the frame
// of wrap_allocated stands in the place of the wrapper's; `caller` is whose call it is.
WRAP_COLD void *wrap_allocated(enum event_kind kind, size_t size, void *p, const void *caller);

// As free, operator new and operator delete, where wrap_fast.c does not record the call, and ends with this one. `p` of
// wrap_new: what malloc returned; NULL: it was not called, or failed.
WRAP_COLD void wrap_record_free(void *p, const void *caller);
WRAP_COLD void *wrap_new(enum event_kind kind, size_t size, const void *nothrow, void *p,
                         const void *caller);
WRAP_COLD void wrap_record_delete(enum event_kind kind, void *p, size_t size, const void *caller);

// Whose the C++ operators are.
enum wrap_operators { WRAP_OPERATORS_UNKNOWN = 0, WRAP_OPERATORS_STANDARD, WRAP_OPERATORS_OWN };
extern _Atomic enum wrap_operators wrap_operators __attribute__((visibility("hidden")));

// Does operator new call nothing but malloc, and delete nothing but free? False also as long as it is not known.
static inline bool wrap_operators_are_standard(void)
{
    enum wrap_operators now = atomic_load_explicit(&wrap_operators, memory_order_relaxed);
    return __builtin_expect(now == WRAP_OPERATORS_STANDARD, 1);
}

// Frees a block by the operator, after the call has been recorded.
void wrap_delete(enum event_kind kind, void *p, uintptr_t second, uintptr_t third);

// The real functions, of calls that may be timed.
WRAP_COLD void *wrap_timed_malloc(size_t size);
WRAP_COLD void wrap_timed_free(void *p);

static inline void wrap_free(void *p)
{
    if (producer_call_is_due())
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
