#include "formats/export_buffer.h"

#include <errno.h>
#include <stdlib.h>

int export_buffer_init(struct export_buffer *s, struct output *out, struct err *e)
{
    *s = (struct export_buffer){.out = out, .e = e, .data = malloc(EXPORT_BUFFER_BYTES)};
    return s->data ? 0 : err_set(e, -ENOMEM, "%s: out of memory", out->name);
}

void export_buffer_release(struct export_buffer *s)
{
    free(s->data);
    *s = (struct export_buffer){0};
}

int export_buffer_flush(struct export_buffer *s)
{
    size_t n = s->n;
    s->n = 0;
    if (n && !s->failed)
        s->failed = output_write(s->out, s->data, n, s->e);
    return s->failed;
}

void export_buffer_put(struct export_buffer *s, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n) {
        size_t part = n < EXPORT_BUFFER_MAX_PIECE ? n : EXPORT_BUFFER_MAX_PIECE;
        uint8_t *to = export_buffer_reserve(s, part);
        memcpy(to, from, part);
        export_buffer_commit(s, to + part);
        from += part;
        n -= part;
    }
}
