// Wrappers for the C functions, except the common cases of malloc and free (wrap_fast.c).
#include "capture/wrap/next.h"
#include "capture/wrap/patch.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <errno.h>
#include <stdlib.h>

uint8_t wrap_error(const void *p, size_t size)
{
    // Not every allocator sets errno, so the default is ENOMEM.
    return p || size == 0 ? 0 : errno == EINVAL ? EINVAL : ENOMEM;
}

WRAP_COLD void *wrap_allocated(enum event_kind kind, size_t size, void *p, const void *caller)
{
    uint8_t error = wrap_error(p, size);
    if (producer_put_retry(kind, size, (uintptr_t)p, caller, __builtin_frame_address(0)))
        return p;
    // Fill in the event only when needed, because zeroing it takes longer than the rest of the fast
    // path.
    const struct event ev = {
        .kind = kind, .size = size, .count = 1, .result = (uintptr_t)p, .error = error};
    producer_record(&ev, caller);
    return p;
}

void *wrap_timed_malloc(size_t size)
{
    uint64_t begin = producer_call_choose() ? clock_counter() : 0;
    void *p = next.malloc(size);
    producer_call_end(begin);
    return p;
}

void wrap_timed_free(void *p)
{
    uint64_t begin = producer_call_choose() ? clock_counter() : 0;
    next.free(p);
    producer_call_end(begin);
}

void wrap_record_free(void *p, const void *caller)
{
    patch_check_objects();
    if (!next_is_cache_free(caller) && !producer_retry_plain(HT_FREE, (uintptr_t)p)) {
        const struct event ev = {.kind = HT_FREE, .ptr = (uintptr_t)p};
        producer_record(&ev, caller);
    }
    wrap_free(p);
}

// Calls the real allocator. Calls that the allocator makes are not events. Measures the time if the
// call was chosen for timing.
#define CALL_ALLOCATOR(call)                                                                       \
    do {                                                                                           \
        uint64_t begin = producer_call_begin();                                                    \
        uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);                                      \
        call;                                                                                      \
        producer_leave(was);                                                                       \
        producer_call_end(begin);                                                                  \
    } while (0)

static WRAP_COLD void *record_calloc(size_t count, size_t size, void *p, const void *caller)
{
    uint8_t error = wrap_error(p, count && size);
    if (producer_put_calloc(count, size, (uintptr_t)p, caller, __builtin_frame_address(0)))
        return p;
    const struct event ev = {
        .kind = HT_CALLOC, .size = size, .count = count, .result = (uintptr_t)p, .error = error};
    producer_record(&ev, caller);
    return p;
}

WRAPPER void *calloc(size_t count, size_t size)
{
    void *p;
    CALL_ALLOCATOR(p = next.calloc(count, size));
    if (count != 1)
        return record_calloc(count, size, p, WRAP_CALLER);
    return producer_put_allocated(HT_CALLOC, size, (uintptr_t)p)
               ? p
               : wrap_allocated(HT_CALLOC, size, p, WRAP_CALLER);
}

static WRAP_COLD void record_release(void *old, const void *caller)
{
    const struct event ev = {.kind = HT_REALLOC_BEGIN, .ptr = (uintptr_t)old};
    producer_record(&ev, caller);
}

// Records the half of a realloc that releases the block. Another thread may get the old address
// before the real call returns.
static inline void begin_resize(void *old, const void *caller)
{
    if (old && !producer_put_plain(HT_REALLOC_BEGIN, (uintptr_t)old) &&
        !producer_retry_plain(HT_REALLOC_BEGIN, (uintptr_t)old))
        record_release(old, caller);
}

static WRAP_COLD void *record_realloc(void *old, size_t size, void *p, const void *caller)
{
    uint8_t error = wrap_error(p, size);
    if (producer_put_retry(HT_REALLOC, size, (uintptr_t)p, caller, __builtin_frame_address(0)))
        return p;
    const struct event ev = {.kind = HT_REALLOC,
                             .ptr = (uintptr_t)old,
                             .size = size,
                             .result = (uintptr_t)p,
                             .error = error};
    producer_record(&ev, caller);
    return p;
}

WRAPPER void *realloc(void *old, size_t size)
{
    begin_resize(old, WRAP_CALLER);
    void *p;
    CALL_ALLOCATOR(p = next.realloc(old, size));
    return producer_put_allocated(HT_REALLOC, size, (uintptr_t)p)
               ? p
               : record_realloc(old, size, p, WRAP_CALLER);
}

WRAPPER void *reallocarray(void *old, size_t count, size_t size)
{
    begin_resize(old, WRAP_CALLER);
    void *p;
    CALL_ALLOCATOR(p = next.reallocarray(old, count, size));
    const struct event ev = {.kind = HT_REALLOCARRAY,
                             .ptr = (uintptr_t)old,
                             .size = size,
                             .count = count,
                             .result = (uintptr_t)p,
                             .error = wrap_error(p, count && size)};
    producer_record(&ev, WRAP_CALLER);
    return p;
}

static void record_aligned(enum event_kind kind, size_t align, size_t size, void *p,
                           const void *caller)
{
    const struct event ev = {.kind = kind,
                             .size = size,
                             .align = align,
                             .result = (uintptr_t)p,
                             .error = wrap_error(p, size)};
    producer_record(&ev, caller);
}

#define ALIGNED(name, kind, align, parameters, names)                                              \
    WRAPPER void *name parameters                                                                  \
    {                                                                                              \
        void *p;                                                                                   \
        CALL_ALLOCATOR(p = next.name names);                                                       \
        record_aligned(kind, align, size, p, WRAP_CALLER);                                         \
        return p;                                                                                  \
    }
ALIGNED(memalign, HT_MEMALIGN, align, (size_t align, size_t size), (align, size))
ALIGNED(aligned_alloc, HT_ALIGNED_ALLOC, align, (size_t align, size_t size), (align, size))
ALIGNED(valloc, HT_VALLOC, 0, (size_t size), (size))
ALIGNED(pvalloc, HT_PVALLOC, 0, (size_t size), (size))

WRAPPER int posix_memalign(void **to, size_t align, size_t size)
{
    int error;
    CALL_ALLOCATOR(error = next.posix_memalign(to, align, size));
    const struct event ev = {.kind = HT_POSIX_MEMALIGN,
                             .size = size,
                             .align = align,
                             .result = error ? 0 : (uintptr_t)*to,
                             .error = (uint8_t)error};
    producer_record(&ev, WRAP_CALLER);
    return error;
}

// A C23 function. If both libc and the allocator lack the function, free is called instead.
struct sized_free {
    void *real;
    _Atomic bool is_known; // `real` has been looked up
};

// Records and makes the call. Passes three arguments, as the C++ operators do (wrap_cxx.c).
static void free_recorded(struct sized_free *f, const struct event *ev, size_t second, size_t third,
                          const void *caller)
{
    if (!f->is_known) {
        next_find(event_infos[ev->kind].symbol, &f->real);
        f->is_known = true;
    }
    producer_record(ev, caller);
    uint64_t begin = producer_call_begin();
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    void (*call)(void *p, size_t second, size_t third) = redirect_real(f->real);
    if (call)
        call((void *)ev->ptr, second, third);
    else
        next.free((void *)ev->ptr);
    producer_leave(was);
    producer_call_end(begin);
}

WRAPPER void free_sized(void *p, size_t size);
void free_sized(void *p, size_t size)
{
    static struct sized_free real;
    const struct event ev = {.kind = HT_FREE_SIZED, .ptr = (uintptr_t)p, .size = size};
    free_recorded(&real, &ev, size, 0, WRAP_CALLER);
}

WRAPPER void free_aligned_sized(void *p, size_t align, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size)
{
    static struct sized_free real;
    const struct event ev = {
        .kind = HT_FREE_ALIGNED_SIZED, .ptr = (uintptr_t)p, .size = size, .align = align};
    free_recorded(&real, &ev, align, size, WRAP_CALLER);
}
