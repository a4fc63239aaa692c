#include "formats/logalloc.h"

#include "formats/sink.h"

const uint8_t logalloc_kinds[] = {
    HT_MALLOC,        HT_FREE,     HT_CALLOC, HT_REALLOC,      HT_POSIX_MEMALIGN,
    HT_ALIGNED_ALLOC, HT_MEMALIGN, HT_VALLOC, HT_MALLOC_STATS, 0,
};

static char *put_pair(char *to, uint64_t first, uint64_t second)
{
    to = text_decimal(to, first);
    *to++ = ',';
    return text_decimal(to, second);
}

static char *put_arguments(char *to, const struct event *ev, char *(*put_block)(char *to, uint64_t block))
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

char *logalloc_put_call(char *to, const struct event *ev, char *(*put_block)(char *to, uint64_t block))
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
    return address ? text_hex(TEXT_PUT(to, "0x"), address) : TEXT_PUT(to, "(nil)");
}
