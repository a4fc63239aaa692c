#include "formats/sink.h"

#include <errno.h>
#include <stdlib.h>

int sink_init(struct sink *s, struct output *out, struct err *e)
{
    *s = (struct sink){.out = out, .e = e, .data = malloc(SINK_BYTES)};
    return s->data ? 0 : err_set(e, -ENOMEM, "%s: out of memory", out->name);
}

void sink_release(struct sink *s)
{
    free(s->data);
    *s = (struct sink){0};
}

int sink_flush(struct sink *s)
{
    size_t n = s->n;
    s->n = 0;
    if (n && !s->failed)
        s->failed = output_write(s->out, s->data, n, s->e);
    return s->failed;
}

void sink_bytes(struct sink *s, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n) {
        size_t part = n < SINK_MAX_PIECE ? n : SINK_MAX_PIECE;
        uint8_t *to = sink_room(s, part);
        memcpy(to, from, part);
        sink_used(s, to + part);
        from += part;
        n -= part;
    }
}

char *text_decimal(char *to, uint64_t v)
{
    char digits[20], *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return text_put(to, at, (size_t)(digits + sizeof digits - at));
}

char *text_hex(char *to, uint64_t v)
{
    unsigned digits = v ? (unsigned)(67 - __builtin_clzll(v)) / 4 : 1;
    for (unsigned i = digits; i-- > 0;)
        *to++ = "0123456789abcdef"[v >> 4 * i & 15];
    return to;
}
