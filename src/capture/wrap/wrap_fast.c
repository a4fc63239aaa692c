// Wrappers for the most frequent calls: malloc, free and the plain C++ operators. This file is
// compiled without frame pointers, and each function ends with a tail call. Rare cases are in other
// functions, whose frames replace the wrapper's frame. The common case therefore saves no
// registers.
#include "capture/wrap/next.h"
#include "capture/wrap/wrap.h"

static inline __attribute__((always_inline)) void *allocate(size_t size)
{
    return producer_call_is_due() ? wrap_timed_malloc(size) : next.malloc(size);
}

WRAPPER void *malloc(size_t size)
{
    void *p = allocate(size);
    return producer_put_allocated(HT_MALLOC, size, (uintptr_t)p)
               ? p
               : wrap_allocated(HT_MALLOC, size, p, WRAP_CALLER);
}

WRAPPER void free(void *p)
{
    if (producer_put_plain(HT_FREE, (uintptr_t)p))
        wrap_free(p);
    else
        wrap_record_free(p, WRAP_CALLER);
}

static inline __attribute__((always_inline)) void *
allocate_new(enum event_kind kind, size_t size, const void *nothrow, const void *caller)
{
    void *p = NULL;
    if (wrap_operators_are_standard()) {
        p = allocate(size ? size : 1);
        if (producer_put_allocated(kind, size, (uintptr_t)p))
            return p;
    }
    return wrap_new(kind, size, nothrow, p, caller);
}

#define NEW(symbol, kind)                                                                          \
    WRAPPER void *symbol(size_t size);                                                             \
    void *symbol(size_t size)                                                                      \
    {                                                                                              \
        return allocate_new(kind, size, NULL, WRAP_CALLER);                                        \
    }
NEW(_Znwm, HT_NEW)
NEW(_Znam, HT_NEW_ARRAY)

#define NEW_NOTHROW(symbol, kind)                                                                  \
    WRAPPER void *symbol(size_t size, const void *nothrow);                                        \
    void *symbol(size_t size, const void *nothrow)                                                 \
    {                                                                                              \
        return allocate_new(kind, size, nothrow, WRAP_CALLER);                                     \
    }
NEW_NOTHROW(_ZnwmRKSt9nothrow_t, HT_NEW_NOTHROW)
NEW_NOTHROW(_ZnamRKSt9nothrow_t, HT_NEW_ARRAY_NOTHROW)

static inline __attribute__((always_inline)) void
free_deleted(enum event_kind kind, void *p, size_t size, bool recorded, const void *caller)
{
    if (!recorded)
        wrap_record_delete(kind, p, size, caller);
    else if (wrap_operators_are_standard())
        wrap_free(p);
    else
        wrap_delete(kind, p, size, 0);
}

#define DELETE(symbol, kind)                                                                       \
    WRAPPER void symbol(void *p);                                                                  \
    void symbol(void *p)                                                                           \
    {                                                                                              \
        free_deleted(kind, p, 0, producer_put_plain(kind, (uintptr_t)p), WRAP_CALLER);             \
    }
DELETE(_ZdlPv, HT_DELETE)
DELETE(_ZdaPv, HT_DELETE_ARRAY)

#define DELETE_SIZED(symbol, kind)                                                                 \
    WRAPPER void symbol(void *p, size_t size);                                                     \
    void symbol(void *p, size_t size)                                                              \
    {                                                                                              \
        free_deleted(kind, p, size, producer_put_sized(kind, size, (uintptr_t)p), WRAP_CALLER);    \
    }
DELETE_SIZED(_ZdlPvm, HT_DELETE_SIZED)
DELETE_SIZED(_ZdaPvm, HT_DELETE_ARRAY_SIZED)
