// Lines of Firefox's logalloc, raw and munged.
#include "formats/text.h"
#include "formats/text_call.h"

enum argument { END, PTR, SIZE, COUNT, ALIGN };

struct function {
    const char *name; // and the parenthesis behind it
    uint8_t length;
    uint8_t kind;
    uint8_t arguments[3]; // enum argument
    bool has_result;
};

#define NAME(name) name, sizeof(name) - 1

static const struct function functions[] = {
    {NAME("malloc("), HT_MALLOC, {SIZE}, true},
    {NAME("free("), HT_FREE, {PTR}, false},
    {NAME("calloc("), HT_CALLOC, {COUNT, SIZE}, true},
    {NAME("realloc("), HT_REALLOC, {PTR, SIZE}, true},
    {NAME("posix_memalign("), HT_POSIX_MEMALIGN, {ALIGN, SIZE}, true},
    {NAME("aligned_alloc("), HT_ALIGNED_ALLOC, {ALIGN, SIZE}, true},
    {NAME("memalign("), HT_MEMALIGN, {ALIGN, SIZE}, true},
    {NAME("valloc("), HT_VALLOC, {SIZE}, true},
    {NAME("jemalloc_stats("), HT_MALLOC_STATS, {END}, false},
};

static const struct function *find(const char **at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (**at == *functions[i].name && text_take_bytes(at, functions[i].name, functions[i].length))
            return &functions[i];
    }
    return NULL;
}

// NULL, or what was expected.
static const char *take_block(const char **at, bool munged, uint64_t *address)
{
    const char *from = *at;
    uint64_t slot;
    if (!munged) {
        if (text_take_address(at, address))
            return NULL;
        *address = 0;
        return TEXT_TAKE(at, "(nil)") ? NULL : "an address";
    }
    if (!text_take(at, '#'))
        return "a slot";
    if (!text_take_number(at, &slot) || slot == 0 || slot >> 44) {
        *at = from;
        return "a slot from #1 on";
    }
    *address = text_slot_address(slot);
    return NULL;
}

static const char *take_argument(const char **at, enum argument a, bool munged, struct event *ev)
{
    switch (a) {
    case PTR:
        return take_block(at, munged, &ev->ptr);
    case SIZE:
        return text_take_number(at, &ev->size) ? NULL : "a size";
    case COUNT:
        return text_take_number(at, &ev->count) ? NULL : "a number of elements";
    case ALIGN:
        return text_take_number(at, &ev->align) ? NULL : "an alignment";
    case END:
        break;
    }
    return NULL;
}

static const char *take_arguments(const char **at, const struct function *f, bool munged, struct event *ev)
{
    for (unsigned i = 0; f->arguments[i] != END; i++) {
        if (i && !text_take(at, ','))
            return "a comma and another argument";
        const char *expected = take_argument(at, f->arguments[i], munged, ev);
        if (expected)
            return expected;
    }
    return text_take(at, ')') ? NULL : "a closing parenthesis";
}

// "18545 18545 ", or "18545 " of logs that are older than thread ids.
static const char *take_ids(const char **at, struct text_call *call)
{
    if (!text_take_number(at, &call->pid) || call->pid > UINT32_MAX)
        return "a process id";
    if (!text_take(at, ' '))
        return "a space and a thread id or function";
    call->tid = call->pid;
    if (!text_take_number(at, &call->tid))
        return NULL;
    return text_take(at, ' ') ? NULL : "a space and a function";
}

const char *logalloc_parse(const char **at, const char *end, bool munged, struct text_call *call)
{
    *call = (struct text_call){0};
    const char *expected = take_ids(at, call);
    if (expected)
        return expected;
    const struct function *f = find(at);
    if (!f)
        return "a function of logalloc and its parenthesis";
    call->event.kind = f->kind;
    expected = take_arguments(at, f, munged, &call->event);
    if (expected)
        return expected;
    if (f->has_result) {
        if (!text_take(at, '='))
            return "= and a result";
        expected = take_block(at, munged, &call->event.result);
        if (expected)
            return expected;
    }
    return *at == end ? NULL : "the end of the line";
}
