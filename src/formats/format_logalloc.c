// Firefox's logalloc: text, one call a line, blocks by their addresses.
#include "formats/export.h"
#include "formats/logalloc.h"
#include "formats/text.h"

#include <errno.h>

// Firefox's thread ids are those of pthread_self, which are addresses: they are numbered. 0 or -ENOMEM.
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

static int import_lines(struct import *im, struct map *tids)
{
    struct text_line line;
    struct text_call call;
    int rc;
    while ((rc = text_next(im, &line)) > 0) {
        const char *at = line.text, *expected = text_parse_logalloc(&at, line.end, false, &call);
        if (!expected && shorten_tid(tids, &call.tid) < 0)
            return err_set(im->e, -ENOMEM, "%s: out of memory", im->source.in->name);
        rc = expected ? text_bad(im, &line, at, expected)
                      : import_put(im, (uint32_t)call.pid, call.tid, &call.event);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int import_logalloc(struct import *im)
{
    struct map tids = {0};
    int rc = import_lines(im, &tids);
    map_release(&tids);
    return rc;
}

static int put_logalloc(struct export *x, const struct export_call *c)
{
    char *to = (char *)export_buffer_reserve(&x->out, TEXT_EXPORT_LINE);
    struct event ev = c->ev;
    ev.ptr = export_address(x, ev.ptr);
    ev.result = export_address(x, ev.result);
    to = text_decimal(to, c->pid);
    *to++ = ' ';
    to = text_decimal(to, c->tid);
    *to++ = ' ';
    export_buffer_commit(&x->out, logalloc_put_call(to, &ev, logalloc_put_address));
    return 0;
}

const struct format format_logalloc = {
    .name = "logalloc",
    .import =
        {
            .read = import_logalloc,
            .several_processes = true,
            // A realloc is logged when it has returned: its block may have been allocated again by then.
            .window = 1 << 12,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED |
                     FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES |
                     FORMAT_HOLDS_EARLIER | FORMAT_ALTERNATES,
            .kinds = logalloc_kinds,
            .put = put_logalloc,
        },
};
