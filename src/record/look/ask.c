// Calls the allocator's own functions in the process, to read statistics and to return free memory
// to the kernel.
#include "record/attach/attach.h"
#include "record/look/look.h"

#include <errno.h>
#include <string.h>

// MALLCTL_ARENAS_ALL of jemalloc: the sum of all arenas.
#define ALL_ARENAS "4096"

// Bytes of the allocator's memory, resident or not.
struct statistics {
    uint64_t live, metadata, is_free, cached, pinned;
};

static uint64_t subtract(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

static int ask_jemalloc(pid_t pid, struct statistics *to, struct attach_result *result,
                        struct err *e)
{
    enum { EPOCH, PAGE, ALLOCATED, ACTIVE, METADATA, DIRTY, MUZZY, CACHED, CALLS };
#define READ(name)                                                                                 \
    {                                                                                              \
        .function = "mallctl", .form = ATTACH_READ, .text = name                                   \
    }
    struct attach_call calls[CALLS] = {
        // Writing any epoch updates the statistics.
        [EPOCH] = {.function = "mallctl", .form = ATTACH_WRITE, .number = 1, .text = "epoch"},
        [PAGE] = READ("arenas.page"),
        [ALLOCATED] = READ("stats.allocated"),
        [ACTIVE] = READ("stats.active"),
        [METADATA] = READ("stats.metadata"),
        [DIRTY] = READ("stats.arenas." ALL_ARENAS ".pdirty"),
        [MUZZY] = READ("stats.arenas." ALL_ARENAS ".pmuzzy"),
        [CACHED] = READ("stats.arenas." ALL_ARENAS ".tcache_bytes"),
    };
#undef READ
    uint64_t values[CALLS];
    int rc = attach_call(pid, calls, CALLS, result, e);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < CALLS; i++)
        values[i] = (int)calls[i].result == 0 ? calls[i].value : 0;
    if (!values[ACTIVE])
        return err_set(e, -ENOTSUP, "%ld: its jemalloc has no statistics", (long)pid);
    *to = (struct statistics){
        .live = subtract(values[ALLOCATED], values[CACHED]),
        .metadata = values[METADATA],
        .is_free = (values[DIRTY] + values[MUZZY]) * values[PAGE],
        .cached = values[CACHED],
        .pinned = subtract(values[ACTIVE], values[ALLOCATED]),
    };
    return 0;
}

static int ask_tcmalloc(pid_t pid, struct statistics *to, struct attach_result *result,
                        struct err *e)
{
    enum { ALLOCATED, FREE, CENTRAL, TRANSFER, CACHED, CALLS };
#define READ(name)                                                                                 \
    {                                                                                              \
        .function = "MallocExtension_GetNumericProperty", .form = ATTACH_PROPERTY, .text = name    \
    }
    struct attach_call calls[CALLS] = {
        [ALLOCATED] = READ("generic.current_allocated_bytes"),
        [FREE] = READ("tcmalloc.pageheap_free_bytes"),
        [CENTRAL] = READ("tcmalloc.central_cache_free_bytes"),
        [TRANSFER] = READ("tcmalloc.transfer_cache_free_bytes"),
        [CACHED] = READ("tcmalloc.thread_cache_free_bytes"),
    };
#undef READ
    int rc = attach_call(pid, calls, CALLS, result, e);
    if (rc < 0)
        return rc;
    *to = (struct statistics){
        .live = calls[ALLOCATED].value,
        .is_free = calls[FREE].value,
        .cached = calls[CACHED].value,
        .pinned = calls[CENTRAL].value + calls[TRANSFER].value,
    };
    return 0;
}

// Moves up to `bytes` from the memory with unknown owner to another owner.
static void move_bytes(struct look *l, enum look_owner to, uint64_t bytes)
{
    static const enum look_owner unknown[] = {LOOK_UNREAD, LOOK_ANONYMOUS, LOOK_RUNTIME};
    for (unsigned i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        uint64_t *from = &l->owners[unknown[i]], n = bytes < *from ? bytes : *from;
        *from -= n;
        l->owners[to] += n;
        bytes -= n;
    }
}

// Pages of live blocks are not always resident, so live blocks are counted last.
static void add_statistics(struct look *l, const struct statistics *s)
{
    struct look_heap *h = &l->heap;
    h->has_statistics = true;
    h->live_bytes = s->live;
    h->free_bytes = s->is_free + s->cached + s->pinned;
    move_bytes(l, LOOK_OTHER, s->metadata);
    move_bytes(l, LOOK_FREE, s->is_free);
    move_bytes(l, LOOK_PINNED, s->pinned);
    move_bytes(l, LOOK_CACHED, s->cached);
    move_bytes(l, LOOK_LIVE, s->live);
    move_bytes(l, LOOK_OTHER, l->owners[LOOK_UNREAD]);
}

int look_ask(struct look *l, struct attach_result *result, struct err *e)
{
    struct statistics s;
    int rc;
    if (l->heap.allocator == SOFTWARE_JEMALLOC)
        rc = ask_jemalloc(l->pid, &s, result, e);
    else if (l->heap.allocator == SOFTWARE_TCMALLOC)
        rc = ask_tcmalloc(l->pid, &s, result, e);
    else
        return err_set(e, -ENOTSUP, "%ld: no statistics of its malloc can be read", (long)l->pid);
    if (rc == 0)
        add_statistics(l, &s);
    return rc;
}

static const struct {
    const char *text;
    struct attach_call call;
} purges[SOFTWARE_ALLOCATORS] = {
    [SOFTWARE_GLIBC] = {"malloc_trim(0)", {"malloc_trim", ATTACH_NUMBER, 0, "", 0, 0}},
    [SOFTWARE_JEMALLOC] = {"mallctl(\"arena.4096.purge\")",
                           {"mallctl", ATTACH_RUN, 0, "arena." ALL_ARENAS ".purge", 0, 0}},
    [SOFTWARE_TCMALLOC] = {"MallocExtension_ReleaseFreeMemory()",
                           {"MallocExtension_ReleaseFreeMemory", ATTACH_NUMBER, 0, "", 0, 0}},
    [SOFTWARE_MIMALLOC] = {"mi_collect(true)", {"mi_collect", ATTACH_NUMBER, 1, "", 0, 0}},
};

int look_purge(pid_t pid, enum software_allocator a, struct attach_result *result, struct err *e)
{
    struct attach_call call = purges[a].call;
    int rc = attach_call(pid, &call, 1, result, e);
    if (rc == 0 && call.form == ATTACH_RUN && (int)call.result != 0)
        return err_set(e, -EIO, "%ld: %s failed: %s", (long)pid, purges[a].text,
                       strerror((int)call.result));
    return rc;
}

const char *look_purge_text(enum software_allocator a)
{
    return purges[a].text;
}
