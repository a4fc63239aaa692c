// Android's memory_replay: text, one call a line, the order of the lines is the order of the calls.
#include "formats/export.h"
#include "formats/text.h"
#include "formats/text_call.h"
#include "formats/text_import.h"

static int put_line(struct import *im, struct text_call *call)
{
    if (!im->begun)
        im->has_times = call->timed;
    else if (im->has_times != call->timed)
        return import_bad_line(im, im->has_times ? "expected the times of start and end, as in the lines before"
                                                 : "expected no times, as in the lines before");
    // Lines are sorted by their starts.
    call->event.stamp = call->start_ns;
    return import_put(im, (uint32_t)call->pid, call->tid, &call->event);
}

static int import_android(struct import *im)
{
    struct text_line line;
    struct text_call call;
    int rc;
    while ((rc = text_next(im, &line)) > 0) {
        const char *at = line.text, *expected = android_parse(&at, line.end, &call);
        rc = expected ? text_bad(im, &line, at, expected) : put_line(im, &call);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static const uint8_t kinds[] = {
    HT_MALLOC, HT_FREE, HT_CALLOC, HT_REALLOC, HT_MEMALIGN, HT_THREAD_END, 0,
};

struct android_export {
    uint64_t last_ns;
};

static char *put_block(const struct export *x, char *to, uint64_t place)
{
    return text_hex(TEXT_PUT(to, " 0x"), export_address(x, place));
}

static char *put_number(char *to, uint64_t v)
{
    *to++ = ' ';
    return text_decimal(to, v);
}

static char *put_call(const struct export *x, char *to, const struct event *ev)
{
    switch (ev->kind) {
    case HT_MALLOC:
        return put_number(put_block(x, TEXT_PUT(to, "malloc"), ev->result), ev->size);
    case HT_CALLOC:
        return put_number(put_number(put_block(x, TEXT_PUT(to, "calloc"), ev->result), ev->count), ev->size);
    case HT_REALLOC:
        return put_number(put_block(x, put_block(x, TEXT_PUT(to, "realloc"), ev->result), ev->ptr), ev->size);
    case HT_MEMALIGN:
        return put_number(put_number(put_block(x, TEXT_PUT(to, "memalign"), ev->result), ev->align), ev->size);
    case HT_FREE:
        return put_block(x, TEXT_PUT(to, "free"), ev->ptr);
    case HT_THREAD_END:
        return TEXT_PUT(to, "thread_done 0x0");
    }
    return to;
}

static int put_android(struct export *x, const struct call *c)
{
    struct android_export *a = x->state;
    char *to = (char *)sink_room(&x->out, TEXT_EXPORT_LINE);
    // The player takes 0 for no thread; a workload's threads are numbered from it.
    to = text_decimal(to, x->facts.slots ? c->thread + 1 : c->tid);
    to = put_call(x, TEXT_PUT(to, ": "), &c->ev);
    if (x->facts.has_stamps) {
        // How long a call took is not known.
        a->last_ns = c->ev.stamp > a->last_ns ? c->ev.stamp : a->last_ns;
        to = put_number(put_number(to, a->last_ns), a->last_ns);
    }
    *to++ = '\n';
    sink_used(&x->out, to);
    return 0;
}

const struct format format_android = {
    .name = "android",
    .import = import_android,
    .window = 1,
    .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL |
             FORMAT_HOLDS_ADDRESSES | FORMAT_ALTERNATES,
    .kinds = kinds,
    .state_bytes = sizeof(struct android_export),
    .put = put_android,
};
