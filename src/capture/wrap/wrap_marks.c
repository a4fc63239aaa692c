// Wrappers for two groups of calls. The first group puts a mark in the trace: the program's own
// marks, and the allocator's statistics and tuning calls. The second group controls the recording.
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"
#define HEAPTAPE_LIBRARY
#include "heaptape/heaptape.h"

#include <errno.h>

static void record_mark(enum event_kind kind, uint64_t value, uint64_t count, const void *caller)
{
    const struct event ev = {.kind = kind, .value = value, .count = count};
    producer_record(&ev, caller);
}

static void record_text(enum event_kind kind, const char *text, const void *caller)
{
    size_t n = text ? strnlen(text, CODEC_MAX_TEXT_BYTES) : 0;
    const struct event ev = {.kind = kind, .text = text, .text_bytes = (uint32_t)n};
    producer_record(&ev, caller);
}

WRAPPER void heaptape_mark(const char *text)
{
    record_text(HT_MARK, text, WRAP_CALLER);
}

WRAPPER void heaptape_pool_alloc(const void *pool, const void *block, size_t size)
{
    producer_record(&(const struct event){.kind = HT_POOL_ALLOC,
                                          .align = (uintptr_t)pool,
                                          .result = (uintptr_t)block,
                                          .size = size},
                    WRAP_CALLER);
}

WRAPPER void heaptape_pool_free(const void *pool, const void *block)
{
    producer_record(&(const struct event){.kind = HT_POOL_FREE,
                                          .align = (uintptr_t)pool,
                                          .ptr = (uintptr_t)block},
                    WRAP_CALLER);
}

WRAPPER void heaptape_pool_reset(const void *pool)
{
    producer_record(&(const struct event){.kind = HT_POOL_RESET, .align = (uintptr_t)pool},
                    WRAP_CALLER);
}

// A jemalloc function. If the allocator does not define it, returns ENOENT for every name.
WRAPPER int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
    static int (*_Atomic real)(const char *, void *, size_t *, void *, size_t);
    void *found;
    if (!real && !next_find("mallctl", &found))
        return ENOENT;
    if (!real)
        real = (int (*)(const char *, void *, size_t *, void *, size_t))found;
    record_text(HT_MALLCTL, name, WRAP_CALLER);
    int (*call)(const char *, void *, size_t *, void *, size_t) = redirect_real((void *)real);
    return call(name, old, old_size, new, new_size);
}

WRAPPER void malloc_stats(void)
{
    record_mark(HT_MALLOC_STATS, 0, 0, WRAP_CALLER);
    next.malloc_stats();
}

WRAPPER int malloc_info(int options, FILE *to)
{
    record_mark(HT_MALLOC_INFO, 0, 0, WRAP_CALLER);
    return next.malloc_info(options, to);
}

WRAPPER struct mallinfo mallinfo(void)
{
    record_mark(HT_MALLINFO, 0, 0, WRAP_CALLER);
    return next.mallinfo();
}

// Added in glibc 2.33; other C libraries may lack it.
WRAPPER struct mallinfo2 mallinfo2(void)
{
    static struct mallinfo2 (*_Atomic real)(void);
    void *found;
    record_mark(HT_MALLINFO2, 0, 0, WRAP_CALLER);
    if (!real && next_find("mallinfo2", &found))
        real = (struct mallinfo2(*)(void))found;
    struct mallinfo2 (*call)(void) = redirect_real((void *)real);
    return call ? call() : (struct mallinfo2){0};
}

WRAPPER int malloc_trim(size_t pad)
{
    record_mark(HT_MALLOC_TRIM, pad, 0, WRAP_CALLER);
    return next.malloc_trim(pad);
}

WRAPPER int mallopt(int option, int value)
{
    record_mark(HT_MALLOPT, (uint64_t)value, (uint64_t)option, WRAP_CALLER);
    return next.mallopt(option, value);
}

#define VERB(name, verb)                                                                           \
    WRAPPER int heaptape_##name(void)                                                              \
    {                                                                                              \
        return -producer_control(verb);                                                            \
    }
VERB(start, CONTROL_START)
VERB(stop, CONTROL_STOP)
VERB(pause, CONTROL_PAUSE)
VERB(resume, CONTROL_RESUME)
VERB(unpause, CONTROL_RESUME) // glibc's name
VERB(sync, CONTROL_SYNC)
VERB(reset, CONTROL_RESET)

WRAPPER enum heaptape_state heaptape_status(void)
{
    switch (producer_control_state()) {
    case SPOOL_RECORDING:
        return HEAPTAPE_RECORDING;
    case SPOOL_PAUSED:
        return HEAPTAPE_PAUSED;
    case SPOOL_STOPPED:
        return HEAPTAPE_STOPPED;
    default:
        return HEAPTAPE_NONE;
    }
}
