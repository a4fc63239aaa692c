// Lines of Firefox's logalloc, raw and munged.
#include "formats/logalloc.h"

const uint8_t logalloc_kinds[] = {
    HT_MALLOC,        HT_FREE,     HT_CALLOC, HT_REALLOC,      HT_POSIX_MEMALIGN,
    HT_ALIGNED_ALLOC, HT_MEMALIGN, HT_VALLOC, HT_MALLOC_STATS, 0,
};

enum argument { END, PTR, SIZE, COUNT, ALIGN };

struct logalloc_function {
    const char *name; // and the parenthesis behind it
    uint8_t length;
    uint8_t kind;
    uint8_t arguments[3]; // enum argument
    bool has_result;
};

#define NAME(name) name, sizeof(name) - 1

static const struct logalloc_function functions[] = {
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

static const struct logalloc_function *find(const char **at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (**at == *functions[i].name &&
            text_match_bytes(at, functions[i].name, functions[i].length))
            return &functions[i];
    }
    return NULL;
}

// NULL, or what was expected.
static const char *parse_block(const char **at, bool munged, uint64_t *address)
{
    const char *from = *at;
    uint64_t slot;
    if (!munged) {
        if (text_parse_address(at, address))
            return NULL;
        *address = 0;
        return TEXT_MATCH(at, "(nil)") ? NULL : "an address";
    }
    if (!text_match(at, '#'))
        return "a slot";
    if (!text_parse_number(at, &slot) || slot == 0 || slot >> 44) {
        *at = from;
        return "a slot from #1 on";
    }
    *address = text_slot_address(slot);
    return NULL;
}

static const char *parse_argument(const char **at, enum argument a, bool munged, struct event *ev)
{
    switch (a) {
    case PTR:
        return parse_block(at, munged, &ev->ptr);
    case SIZE:
        return text_parse_number(at, &ev->size) ? NULL : "a size";
    case COUNT:
        return text_parse_number(at, &ev->count) ? NULL : "a number of elements";
    case ALIGN:
        return text_parse_number(at, &ev->align) ? NULL : "an alignment";
    case END:
        break;
    }
    return NULL;
}

static const char *parse_arguments(const char **at, const struct logalloc_function *f, bool munged,
                                   struct event *ev)
{
    for (unsigned i = 0; f->arguments[i] != END; i++) {
        if (i && !text_match(at, ','))
            return "a comma and another argument";
        const char *expected = parse_argument(at, f->arguments[i], munged, ev);
        if (expected)
            return expected;
    }
    return text_match(at, ')') ? NULL : "a closing parenthesis";
}

// "18545 18545 ", or "18545 " of logs that are older than thread ids.
static const char *parse_ids(const char **at, struct text_call *call)
{
    if (!text_parse_number(at, &call->pid) || call->pid > UINT32_MAX)
        return "a process id";
    if (!text_match(at, ' '))
        return "a space and a thread id or function";
    call->tid = call->pid;
    if (!text_parse_number(at, &call->tid))
        return NULL;
    return text_match(at, ' ') ? NULL : "a space and a function";
}

const char *text_parse_logalloc(const char **at, const char *end, bool munged,
                                struct text_call *call)
{
    *call = (struct text_call){0};
    const char *expected = parse_ids(at, call);
    if (expected)
        return expected;
    const struct logalloc_function *f = find(at);
    if (!f)
        return "a function of logalloc and its parenthesis";
    call->event.kind = f->kind;
    expected = parse_arguments(at, f, munged, &call->event);
    if (expected)
        return expected;
    if (f->has_result) {
        if (!text_match(at, '='))
            return "= and a result";
        expected = parse_block(at, munged, &call->event.result);
        if (expected)
            return expected;
    }
    return *at == end ? NULL : "the end of the line";
}

static char *put_pair(char *to, uint64_t first, uint64_t second)
{
    to = text_decimal(to, first);
    *to++ = ',';
    return text_decimal(to, second);
}

static char *put_arguments(char *to, const struct event *ev,
                           char *(*put_block)(char *to, uint64_t block))
{
    switch (ev->kind) {
    case HT_MALLOC:
        return text_decimal(TEXT_PUT(to, "malloc("), ev->size);
    case HT_FREE:
        return put_block(TEXT_PUT(to, "free("), ev->ptr);
    case HT_CALLOC:
        return put_pair(TEXT_PUT(to, "calloc("), ev->count, ev->size);
    case HT_REALLOC:
        to = put_block(TEXT_PUT(to, "realloc("), ev->ptr);
        *to++ = ',';
        return text_decimal(to, ev->size);
    case HT_POSIX_MEMALIGN:
        return put_pair(TEXT_PUT(to, "posix_memalign("), ev->align, ev->size);
    case HT_ALIGNED_ALLOC:
        return put_pair(TEXT_PUT(to, "aligned_alloc("), ev->align, ev->size);
    case HT_MEMALIGN:
        return put_pair(TEXT_PUT(to, "memalign("), ev->align, ev->size);
    case HT_VALLOC:
        return text_decimal(TEXT_PUT(to, "valloc("), ev->size);
    case HT_MALLOC_STATS:
        return TEXT_PUT(to, "jemalloc_stats(");
    }
    return to;
}

char *logalloc_put_call(char *to, const struct event *ev,
                        char *(*put_block)(char *to, uint64_t block))
{
    to = put_arguments(to, ev, put_block);
    *to++ = ')';
    if (event_infos[ev->kind].fields & HT_F_RESULT) {
        *to++ = '=';
        to = put_block(to, ev->result);
    }
    *to++ = '\n';
    return to;
}

char *logalloc_put_address(char *to, uint64_t address)
{
    return text_hex(TEXT_PUT(to, "0x"), address);
}
