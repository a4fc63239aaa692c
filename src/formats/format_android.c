// Android's memory_replay: text, one call per line, in call order.
#include "formats/export.h"
#include "formats/text.h"

static const struct text_function functions[] = {
    TEXT_FUNCTION("malloc ", HT_MALLOC, TEXT_RESULT, TEXT_SIZE),
    TEXT_FUNCTION("free ", HT_FREE, TEXT_PTR),
    TEXT_FUNCTION("calloc ", HT_CALLOC, TEXT_RESULT, TEXT_COUNT, TEXT_SIZE),
    TEXT_FUNCTION("realloc ", HT_REALLOC, TEXT_RESULT, TEXT_PTR, TEXT_SIZE),
    TEXT_FUNCTION("memalign ", HT_MEMALIGN, TEXT_RESULT, TEXT_ALIGN, TEXT_SIZE),
    TEXT_FUNCTION("thread_done ", HT_THREAD_END, TEXT_ZERO),
    {0},
};

static const struct text_syntax syntax = {
    .functions = functions,
    .separator = ' ',
    .expected_function = "malloc, calloc, realloc, memalign, free or thread_done",
    .expected_separator = "a space and another value",
    .parse_block = text_parse_block,
    .put_block = text_put_address,
};

static const char *parse_times(const char **at, struct text_call *call)
{
    call->timed = true;
    if (!text_parse_number(at, &call->start_ns))
        return "a time in ns";
    if (!text_match(at, ' '))
        return "a space and the time of the end";
    if (!text_parse_number(at, &call->end_ns))
        return "a time in ns";
    return NULL;
}

const char *text_parse_android(const char **at, const char *end, struct text_call *call)
{
    const char *expected;
    *call = (struct text_call){.pid = 1};
    if (!text_parse_number(at, &call->tid) || call->tid > UINT32_MAX)
        return "a thread id";
    if (!TEXT_MATCH(at, ": "))
        return "': '";
    expected = text_parse_function(at, &syntax, &call->event);
    if (!expected && text_match(at, ' '))
        expected = parse_times(at, call);
    if (expected)
        return expected;
    return *at == end ? NULL : "the end of the line";
}

static int read_android_line(struct import *im, struct text_line *line)
{
    struct text_call call;
    const char *expected = text_parse_android(&line->at, line->end, &call);
    if (expected)
        return text_bad(im, line, expected);
    if (!im->begun)
        im->has_times = call.timed;
    else if (im->has_times != call.timed)
        return import_bad(im, IMPORT_LINE,
                          im->has_times ? "expected start and end times, as in the previous lines"
                                        : "expected no times, as in the previous lines");
    // Lines are sorted by start time.
    call.event.stamp = call.start_ns;
    return import_put(im, (uint32_t)call.pid, call.tid, &call.event);
}

static const uint8_t kinds[] = {
    HT_MALLOC, HT_FREE, HT_CALLOC, HT_REALLOC, HT_MEMALIGN, HT_THREAD_END, 0,
};

struct android_export {
    uint64_t last_ns;
};

static char *put_number(char *to, uint64_t v)
{
    *to++ = ' ';
    return text_decimal(to, v);
}

static int put_android(struct export *x, const struct export_call *c)
{
    struct android_export *a = x->state;
    char *to = (char *)export_buffer_reserve(&x->out, TEXT_EXPORT_LINE);
    // memory_replay does not accept thread 0, but a workload's threads are numbered from 0.
    to = text_decimal(to, x->facts.slots ? c->thread + 1 : c->tid);
    struct event ev = export_event(x, &c->ev);
    to = text_put_function(TEXT_PUT(to, ": "), &syntax, &ev);
    if (x->facts.has_stamps) {
        // The end time of a call is unknown, so the start time is written twice.
        a->last_ns = c->ev.stamp > a->last_ns ? c->ev.stamp : a->last_ns;
        to = put_number(put_number(to, a->last_ns), a->last_ns);
    }
    *to++ = '\n';
    export_buffer_commit(&x->out, to);
    return 0;
}

const struct format format_android = {
    .name = "android",
    .import =
        {
            .line = read_android_line,
            .window = 1,
        },
    .export =
        {
            // memory_replay stops at failed calls and at unknown blocks.
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FREED |
                     FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES | FORMAT_ALTERNATES,
            .kinds = kinds,
            .state_bytes = sizeof(struct android_export),
            .put = put_android,
        },
};
