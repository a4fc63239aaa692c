// An exporter's output buffer. Copying to the page cache takes as long as formatting the text, so
// if there is more than one CPU, a thread writes the full buffers.
#pragma once

#include "base/fio.h"

#include <string.h>

enum { EXPORT_BUFFER_BYTES = 1 << 18, EXPORT_BUFFER_MAX_PIECE = 1 << 16 };

struct export_writer;

struct export_buffer {
    // Borrowed. Other code may write to the output only after a flush, before more data is
    // buffered.
    struct output *out;
    struct err *e;
    uint8_t *data; // EXPORT_BUFFER_BYTES bytes
    size_t n;
    struct export_writer *writer; // NULL until the first buffer is full, or if there is no thread
    int failed; // negative errno of the first failed write; data after a failure is discarded
};

// Returns 0, or -ENOMEM with the message set.
int export_buffer_init(struct export_buffer *s, struct output *out, struct err *e);
void export_buffer_release(struct export_buffer *s);

// Writes the buffered data. Returns 0, or a negative errno with the message set. The error may have
// occurred in an earlier write.
int export_buffer_flush(struct export_buffer *s);

// Writes the full buffer, or passes it to the thread, and continues with an empty buffer.
void export_buffer_next(struct export_buffer *s);

// Returns space for `n` bytes, at most EXPORT_BUFFER_MAX_PIECE. Afterwards, pass the end of the
// data to export_buffer_commit. Never returns NULL; the next export_buffer_flush reports errors.
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

// Appends any number of bytes.
void export_buffer_put(struct export_buffer *s, const void *bytes, size_t n);
