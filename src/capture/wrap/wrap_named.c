// Wrappers for a second allocator, whose functions have other names.
#include "capture/wrap/next.h"
#include "capture/wrap/patch.h"
#include "capture/wrap/wrap.h"

#include <string.h>

// Functions of the second allocator. Calls from them to the allocator in use are not recorded.
static struct {
    struct spool_wrap names;
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *old, size_t size);
    void (*free)(void *p);
    void *(*memalign)(size_t align, size_t size);
    void *(*aligned_alloc)(size_t align, size_t size);
    int (*posix_memalign)(void **to, size_t align, size_t size);
    size_t (*malloc_usable_size)(void *block);
} named;

static void record_named(const struct event *ev, const void *caller)
{
    uint32_t was = producer_enter(PRODUCER_NAMED);
    producer_record(ev, caller);
    producer_leave(was);
}

// Records a call that has returned block `p`, and returns `p`. `was` is the result of
// producer_enter before the call.
static void *end_named(uint32_t was, struct event ev, void *p, const void *caller)
{
    producer_leave(was);
    ev.result = (uintptr_t)p;
    ev.error = wrap_error(p, event_requested(ev.kind, ev.size, ev.count));
    record_named(&ev, caller);
    return p;
}

static void *named_malloc(size_t size)
{
    const struct event ev = {.kind = HT_MALLOC, .size = size, .count = 1};
    uint32_t was = producer_enter(PRODUCER_MUTED);
    return end_named(was, ev, named.malloc(size), WRAP_CALLER);
}

static void *named_calloc(size_t count, size_t size)
{
    const struct event ev = {.kind = HT_CALLOC, .size = size, .count = count};
    uint32_t was = producer_enter(PRODUCER_MUTED);
    return end_named(was, ev, named.calloc(count, size), WRAP_CALLER);
}

static void *named_realloc(void *old, size_t size)
{
    const struct event ev = {.kind = HT_REALLOC, .ptr = (uintptr_t)old, .size = size};
    if (old)
        record_named(&(struct event){.kind = HT_REALLOC_BEGIN, .ptr = (uintptr_t)old}, WRAP_CALLER);
    uint32_t was = producer_enter(PRODUCER_MUTED);
    return end_named(was, ev, named.realloc(old, size), WRAP_CALLER);
}

static void *named_memalign(size_t align, size_t size)
{
    const struct event ev = {.kind = HT_MEMALIGN, .align = align, .size = size};
    uint32_t was = producer_enter(PRODUCER_MUTED);
    return end_named(was, ev, named.memalign(align, size), WRAP_CALLER);
}

static void *named_aligned_alloc(size_t align, size_t size)
{
    const struct event ev = {.kind = HT_ALIGNED_ALLOC, .align = align, .size = size};
    uint32_t was = producer_enter(PRODUCER_MUTED);
    return end_named(was, ev, named.aligned_alloc(align, size), WRAP_CALLER);
}

static void named_free(void *p)
{
    patch_check_objects();
    record_named(&(struct event){.kind = HT_FREE, .ptr = (uintptr_t)p}, WRAP_CALLER);
    uint32_t was = producer_enter(PRODUCER_MUTED);
    named.free(p);
    producer_leave(was);
}

static int named_posix_memalign(void **to, size_t align, size_t size)
{
    uint32_t was = producer_enter(PRODUCER_MUTED);
    int error = named.posix_memalign(to, align, size);
    producer_leave(was);
    const struct event ev = {.kind = HT_POSIX_MEMALIGN,
                             .size = size,
                             .align = align,
                             .result = error ? 0 : (uintptr_t)*to,
                             .error = (uint8_t)error};
    record_named(&ev, WRAP_CALLER);
    return error;
}

static const struct {
    void **real, *wrapper; // NULL if heaptape only calls the function
} named_functions[SPOOL_WRAPPED] = {
    [SPOOL_WRAP_MALLOC] = {(void **)&named.malloc, (void *)named_malloc},
    [SPOOL_WRAP_CALLOC] = {(void **)&named.calloc, (void *)named_calloc},
    [SPOOL_WRAP_REALLOC] = {(void **)&named.realloc, (void *)named_realloc},
    [SPOOL_WRAP_FREE] = {(void **)&named.free, (void *)named_free},
    [SPOOL_WRAP_MEMALIGN] = {(void **)&named.memalign, (void *)named_memalign},
    [SPOOL_WRAP_ALIGNED_ALLOC] = {(void **)&named.aligned_alloc, (void *)named_aligned_alloc},
    [SPOOL_WRAP_POSIX_MEMALIGN] = {(void **)&named.posix_memalign, (void *)named_posix_memalign},
    [SPOOL_WRAP_USABLE_SIZE] = {(void **)&named.malloc_usable_size, NULL},
};

// Never resets the real functions, because a thread may still be inside an earlier wrapper.
void wrap_set_names(const struct spool_wrap *names, bool wraps)
{
    named.names = names && wraps ? *names : (struct spool_wrap){0};
    producer_set_named_usable(NULL);
    for (unsigned i = 0; names && i < SPOOL_WRAPPED; i++) {
        void *real = names->names[i][0] ? next_find_definition(names->names[i], &named) : NULL;
        if (real)
            __atomic_store_n(named_functions[i].real, real, __ATOMIC_RELEASE);
        if (real && i == SPOOL_WRAP_USABLE_SIZE)
            producer_set_named_usable(named.malloc_usable_size);
    }
}

void *wrap_find_named(const char *name)
{
    for (unsigned i = 0; i < SPOOL_WRAPPED; i++) {
        if (strcmp(named.names.names[i], name) == 0 && *name)
            return named_functions[i].wrapper;
    }
    return NULL;
}
