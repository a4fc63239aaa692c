// Parses and writes the lines of Firefox's logalloc, both raw and munged.
#include "formats/logalloc.h"

const uint8_t logalloc_kinds[] = {
    HT_MALLOC,        HT_FREE,     HT_CALLOC, HT_REALLOC,      HT_POSIX_MEMALIGN,
    HT_ALIGNED_ALLOC, HT_MEMALIGN, HT_VALLOC, HT_MALLOC_STATS, 0,
};

static const struct text_function functions[] = {
    TEXT_FUNCTION("malloc(", HT_MALLOC, TEXT_SIZE),
    TEXT_FUNCTION("free(", HT_FREE, TEXT_PTR),
    TEXT_FUNCTION("calloc(", HT_CALLOC, TEXT_COUNT, TEXT_SIZE),
    TEXT_FUNCTION("realloc(", HT_REALLOC, TEXT_PTR, TEXT_SIZE),
    TEXT_FUNCTION("posix_memalign(", HT_POSIX_MEMALIGN, TEXT_ALIGN, TEXT_SIZE),
    TEXT_FUNCTION("aligned_alloc(", HT_ALIGNED_ALLOC, TEXT_ALIGN, TEXT_SIZE),
    TEXT_FUNCTION("memalign(", HT_MEMALIGN, TEXT_ALIGN, TEXT_SIZE),
    TEXT_FUNCTION("valloc(", HT_VALLOC, TEXT_SIZE),
    TEXT_FUNCTION("jemalloc_stats(", HT_MALLOC_STATS, TEXT_END),
    {0},
};

// Firefox writes NULL as 0x0; glibc's printf writes (nil).
static const char *parse_address(const char **at, uint64_t *address)
{
    if (text_parse_address(at, address))
        return NULL;
    *address = 0;
    return TEXT_MATCH(at, "(nil)") ? NULL : "an address";
}

static const char *parse_slot(const char **at, uint64_t *address)
{
    const char *from = *at;
    uint64_t slot;
    if (!text_match(at, '#'))
        return "a slot";
    if (!text_parse_number(at, &slot) || slot == 0 || slot >> 44) {
        *at = from;
        return "a slot from #1 on";
    }
    *address = text_slot_address(slot);
    return NULL;
}

static char *put_slot(char *to, uint64_t slot)
{
    *to++ = '#';
    return text_decimal(to, slot);
}

#define LOGALLOC_SYNTAX                                                                            \
    .functions = functions, .separator = ',',                                                      \
    .expected_function = "a function of logalloc and its parenthesis",                             \
    .expected_separator = "a comma and another argument"

const struct text_syntax logalloc_raw = {LOGALLOC_SYNTAX, .parse_block = parse_address,
                                         .put_block = text_put_address};
const struct text_syntax logalloc_munged = {LOGALLOC_SYNTAX, .parse_block = parse_slot,
                                            .put_block = put_slot};

// Parses "18545 18545 ", or "18545 " in older logs, which lack thread ids.
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

const char *logalloc_parse(const char **at, const char *end, const struct text_syntax *s,
                           struct text_call *call)
{
    *call = (struct text_call){0};
    const char *expected = parse_ids(at, call);
    if (!expected)
        expected = text_parse_function(at, s, &call->event);
    if (expected)
        return expected;
    if (!text_match(at, ')'))
        return "a closing parenthesis";
    if (event_infos[call->event.kind].fields & HT_F_RESULT) {
        if (!text_match(at, '='))
            return "= and a result";
        expected = s->parse_block(at, &call->event.result);
        if (expected)
            return expected;
    }
    return *at == end ? NULL : "the end of the line";
}

char *logalloc_put(char *to, const struct text_syntax *s, uint64_t pid, uint64_t tid,
                   const struct event *ev)
{
    to = text_decimal(to, pid);
    *to++ = ' ';
    to = text_decimal(to, tid);
    *to++ = ' ';
    to = text_put_function(to, s, ev);
    *to++ = ')';
    if (event_infos[ev->kind].fields & HT_F_RESULT) {
        *to++ = '=';
        to = s->put_block(to, ev->result);
    }
    *to++ = '\n';
    return to;
}
