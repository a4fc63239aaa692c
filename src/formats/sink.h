// What an exporter writes: bytes and text, buffered before an output.
#ifndef HEAPTAPE_FORMATS_SINK_H
#define HEAPTAPE_FORMATS_SINK_H

#include "base/fio.h"

#include <string.h>

enum { SINK_BYTES = 1 << 18, SINK_MAX_PIECE = 1 << 16 };

struct sink {
    struct output *out; // borrowed
    struct err *e;
    uint8_t *data; // SINK_BYTES
    size_t n;
    int failed; // negative errno of the first write that failed: what follows is thrown away
};

// 0 or -ENOMEM with the text set.
int sink_init(struct sink *s, struct output *out, struct err *e);
void sink_release(struct sink *s);

// Writes what is buffered. 0 or a negative errno with the text set, also that of an earlier failure.
int sink_flush(struct sink *s);

// Room for up to SINK_MAX_PIECE bytes; sink_used says how many were written there. Never NULL: failures are told by the
// next sink_flush.
static inline uint8_t *sink_room(struct sink *s, size_t n)
{
    if (__builtin_expect(s->n + n > SINK_BYTES, 0))
        sink_flush(s);
    return s->data + s->n;
}

static inline void sink_used(struct sink *s, const void *end)
{
    s->n = (size_t)((const uint8_t *)end - s->data);
}

// Bytes of any number.
void sink_bytes(struct sink *s, const void *bytes, size_t n);

// Bytes written before, those still buffered included.
static inline uint64_t sink_offset(const struct sink *s)
{
    return s->out->offset + s->n;
}

// Text into room that is large enough; they return where it ends.
static inline char *text_put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}
#define TEXT_PUT(to, literal) text_put(to, literal, sizeof(literal) - 1)

char *text_decimal(char *to, uint64_t v); // ≤ 20 characters
char *text_hex(char *to, uint64_t v);     // ≤ 16, without 0x

#endif
