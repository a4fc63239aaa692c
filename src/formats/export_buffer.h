// What an exporter writes: bytes and text, buffered before an output. Full buffers are written by a thread of their own, where
// there is a processor for it: the copy to the page cache takes as long as making the text.
#ifndef HEAPTAPE_FORMATS_EXPORT_BUFFER_H
#define HEAPTAPE_FORMATS_EXPORT_BUFFER_H

#include "base/fio.h"

#include <string.h>

enum { EXPORT_BUFFER_BYTES = 1 << 18, EXPORT_BUFFER_MAX_PIECE = 1 << 16 };

struct export_writer;

struct export_buffer {
    struct output *out; // borrowed; written to by others only right after a flush
    struct err *e;
    uint8_t *data; // EXPORT_BUFFER_BYTES
    size_t n;
    struct export_writer *writer; // NULL: no buffer has been full, or there is no thread
    int failed; // negative errno of the first write that failed: what follows is thrown away
};

// 0 or -ENOMEM with the text set.
int export_buffer_init(struct export_buffer *s, struct output *out, struct err *e);
void export_buffer_release(struct export_buffer *s);

// Writes what is buffered. 0 or a negative errno with the text set, also that of an earlier failure.
int export_buffer_flush(struct export_buffer *s);

// The buffer is full: goes on with an empty one.
void export_buffer_next(struct export_buffer *s);

// Space for up to EXPORT_BUFFER_MAX_PIECE bytes; export_buffer_commit gets the end of what was written there. Never NULL:
// the next export_buffer_flush returns failures.
static inline uint8_t *export_buffer_reserve(struct export_buffer *s, size_t n)
{
    if (__builtin_expect(s->n + n > EXPORT_BUFFER_BYTES, 0))
        export_buffer_next(s);
    return s->data + s->n;
}

static inline void export_buffer_commit(struct export_buffer *s, const void *end)
{
    s->n = (size_t)((const uint8_t *)end - s->data);
}

// Bytes of any number.
void export_buffer_put(struct export_buffer *s, const void *bytes, size_t n);

#endif
