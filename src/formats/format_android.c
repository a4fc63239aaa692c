// Android's memory_replay: text, one call a line, the order of the lines is the order of the calls.
#include "formats/export.h"
#include "formats/text.h"

// The values of a line: which fields of the event they are, in order.
enum value { END, PTR, SIZE, COUNT, ALIGN, RESULT, NOTHING };

struct android_function {
    const char *name; // and the space behind it
    uint8_t length;
    uint8_t kind;
    uint8_t values[4]; // enum value
};

#define NAME(name) name, sizeof(name) - 1

static const struct android_function functions[] = {
    {NAME("malloc "), HT_MALLOC, {RESULT, SIZE}},
    {NAME("free "), HT_FREE, {PTR}},
    {NAME("calloc "), HT_CALLOC, {RESULT, COUNT, SIZE}},
    {NAME("realloc "), HT_REALLOC, {RESULT, PTR, SIZE}},
    {NAME("memalign "), HT_MEMALIGN, {RESULT, ALIGN, SIZE}},
    {NAME("thread_done "), HT_THREAD_END, {NOTHING}},
};

static const struct android_function *find(const char **at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (**at == *functions[i].name &&
            text_match_bytes(at, functions[i].name, functions[i].length))
            return &functions[i];
    }
    return NULL;
}

// NULL, or what was expected.
static const char *parse_value(const char **at, enum value value, struct event *ev)
{
    uint64_t ignored;
    switch (value) {
    case PTR:
        return text_parse_address(at, &ev->ptr) ? NULL : "an address";
    case RESULT:
        return text_parse_address(at, &ev->result) ? NULL : "an address";
    case SIZE:
        return text_parse_number(at, &ev->size) ? NULL : "a size";
    case COUNT:
        return text_parse_number(at, &ev->count) ? NULL : "a number of elements";
    case ALIGN:
        return text_parse_number(at, &ev->align) ? NULL : "an alignment";
    case NOTHING:
        return text_parse_address(at, &ignored) ? NULL : "0x0";
    case END:
        break;
    }
    return NULL;
}

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
    const struct android_function *f = find(at);
    if (!f)
        return "malloc, calloc, realloc, memalign, free or thread_done";
    call->event.kind = f->kind;
    for (unsigned i = 0; f->values[i] != END; i++) {
        if (i && !text_match(at, ' '))
            return "a space and another value";
        expected = parse_value(at, f->values[i], &call->event);
        if (expected)
            return expected;
    }
    expected = text_match(at, ' ') ? parse_times(at, call) : NULL;
    if (expected)
        return expected;
    return *at == end ? NULL : "the end of the line";
}

static int put_line(struct import *im, struct text_call *call)
{
    if (!im->begun)
        im->has_times = call->timed;
    else if (im->has_times != call->timed)
        return import_bad_line(
            im, im->has_times ? "expected the times of start and end, as in the lines before"
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
        const char *at = line.text, *expected = text_parse_android(&at, line.end, &call);
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

static char *put_block(const struct export *x, char *to, uint64_t block)
{
    return text_hex(TEXT_PUT(to, " 0x"), export_address(x, block));
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
        return put_number(put_number(put_block(x, TEXT_PUT(to, "calloc"), ev->result), ev->count),
                          ev->size);
    case HT_REALLOC:
        return put_number(put_block(x, put_block(x, TEXT_PUT(to, "realloc"), ev->result), ev->ptr),
                          ev->size);
    case HT_MEMALIGN:
        return put_number(put_number(put_block(x, TEXT_PUT(to, "memalign"), ev->result), ev->align),
                          ev->size);
    case HT_FREE:
        return put_block(x, TEXT_PUT(to, "free"), ev->ptr);
    case HT_THREAD_END:
        return TEXT_PUT(to, "thread_done 0x0");
    }
    return to;
}

static int put_android(struct export *x, const struct export_call *c)
{
    struct android_export *a = x->state;
    char *to = (char *)export_buffer_reserve(&x->out, TEXT_EXPORT_LINE);
    // To the player 0 is no thread; a workload's threads are numbered from it.
    to = text_decimal(to, x->facts.slots ? c->thread + 1 : c->tid);
    to = put_call(x, TEXT_PUT(to, ": "), &c->ev);
    if (x->facts.has_stamps) {
        // How long a call took is not known.
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
            .read = import_android,
            .window = 1,
        },
    .export =
        {
            // memory_replay stops at a call that failed, and at a block that it does not know.
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FREED |
                     FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES | FORMAT_ALTERNATES,
            .kinds = kinds,
            .state_bytes = sizeof(struct android_export),
            .put = put_android,
        },
};
