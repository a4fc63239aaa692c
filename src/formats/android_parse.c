// Lines of Android's memory_replay.
#include "formats/text.h"
#include "formats/text_call.h"

// The values of a line: which fields of the event they are, in order.
enum value { END, PTR, SIZE, COUNT, ALIGN, RESULT, NOTHING };

struct function {
    const char *name; // and the space behind it
    uint8_t length;
    uint8_t kind;
    uint8_t values[4]; // enum value
};

#define NAME(name) name, sizeof(name) - 1

static const struct function functions[] = {
    {NAME("malloc "), HT_MALLOC, {RESULT, SIZE}},
    {NAME("free "), HT_FREE, {PTR}},
    {NAME("calloc "), HT_CALLOC, {RESULT, COUNT, SIZE}},
    {NAME("realloc "), HT_REALLOC, {RESULT, PTR, SIZE}},
    {NAME("memalign "), HT_MEMALIGN, {RESULT, ALIGN, SIZE}},
    {NAME("thread_done "), HT_THREAD_END, {NOTHING}},
};

static const struct function *find(const char **at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (text_take_bytes(at, functions[i].name, functions[i].length))
            return &functions[i];
    }
    return NULL;
}

// NULL, or what was expected.
static const char *take_value(const char **at, enum value value, struct event *ev)
{
    uint64_t ignored;
    switch (value) {
    case PTR:
        return text_take_address(at, &ev->ptr) ? NULL : "an address";
    case RESULT:
        return text_take_address(at, &ev->result) ? NULL : "an address";
    case SIZE:
        return text_take_number(at, &ev->size) ? NULL : "a size";
    case COUNT:
        return text_take_number(at, &ev->count) ? NULL : "a number of elements";
    case ALIGN:
        return text_take_number(at, &ev->align) ? NULL : "an alignment";
    case NOTHING:
        return text_take_address(at, &ignored) ? NULL : "0x0";
    case END:
        break;
    }
    return NULL;
}

static const char *take_times(const char **at, struct text_call *call)
{
    call->timed = true;
    if (!text_take_number(at, &call->start_ns))
        return "a time in ns";
    if (!text_take(at, ' '))
        return "a space and the time of the end";
    if (!text_take_number(at, &call->end_ns))
        return "a time in ns";
    return NULL;
}

const char *android_parse(const char **at, const char *end, struct text_call *call)
{
    const char *expected;
    *call = (struct text_call){.pid = 1};
    if (!text_take_number(at, &call->tid) || call->tid > UINT32_MAX)
        return "a thread id";
    if (!TEXT_TAKE(at, ": "))
        return "': '";
    const struct function *f = find(at);
    if (!f)
        return "malloc, calloc, realloc, memalign, free or thread_done";
    call->event.kind = f->kind;
    for (unsigned i = 0; f->values[i] != END; i++) {
        if (i && !text_take(at, ' '))
            return "a space and another value";
        expected = take_value(at, f->values[i], &call->event);
        if (expected)
            return expected;
    }
    expected = text_take(at, ' ') ? take_times(at, call) : NULL;
    if (expected)
        return expected;
    return *at == end ? NULL : "the end of the line";
}
