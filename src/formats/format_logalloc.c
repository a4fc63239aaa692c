// Firefox's logalloc: text, one call per line, blocks identified by address.
#include "formats/export.h"
#include "formats/logalloc.h"
#include "formats/text.h"

#include <errno.h>

// Replaces large thread ids with small numbers, because Firefox writes pthread_self(), which is an
// address. Returns 0 or -ENOMEM.
static int shorten_tid(struct map *tids, uint64_t *tid)
{
    if (*tid <= UINT32_MAX)
        return 0;
    uint64_t number = map_get(tids, *tid);
    if (!number) {
        number = tids->n + 1;
        if (map_put(tids, *tid, number) < 0)
            return -ENOMEM;
    }
    *tid = 1ull << 32 | number;
    return 0;
}

static int read_logalloc_line(struct import *im, struct text_line *line)
{
    struct text_call call;
    const char *expected = logalloc_parse(&line->at, line->end, &logalloc_raw, &call);
    if (expected)
        return text_bad(im, line, expected);
    if (shorten_tid(im->state, &call.tid) < 0)
        return import_no_memory(im);
    return import_put(im, (uint32_t)call.pid, call.tid, &call.event);
}

static void release_logalloc(void *state)
{
    map_release(state);
}

static int put_logalloc(struct export *x, const struct export_call *c)
{
    char *to = (char *)export_buffer_reserve(&x->out, TEXT_EXPORT_LINE);
    struct event ev = export_event(x, &c->ev);
    export_buffer_commit(&x->out, logalloc_put(to, &logalloc_raw, c->pid, c->tid, &ev));
    return 0;
}

const struct format format_logalloc = {
    .name = "logalloc",
    .import =
        {
            .line = read_logalloc_line,
            .state_bytes = sizeof(struct map),
            .release = release_logalloc,
            .several_processes = true,
            // A realloc is logged after it returns, when its old block may already have been
            // reallocated.
            .window = 1 << 12,
            .no_early_frees = true,
        },
    .export =
        {
            .holds = LOGALLOC_HOLDS,
            .kinds = logalloc_kinds,
            .put = put_logalloc,
        },
};
