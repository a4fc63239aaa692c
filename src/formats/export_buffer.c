#include "formats/export_buffer.h"

#include "base/ring.h"
#include "base/thread.h"

#include <stdlib.h>

enum { BUFFERS = 3 };

struct export_writer {
    pthread_t thread;
    struct ring ring;
    struct output *out;
    struct {
        uint8_t *data;
        size_t n;
    } buffers[BUFFERS];
    unsigned filling; // index of the buffer being filled by the exporter
    // Owned by the thread until the ring is stopped, then by the exporter.
    int failed;
    struct err err;
};

int export_buffer_init(struct export_buffer *s, struct output *out, struct err *e)
{
    *s = (struct export_buffer){.out = out, .e = e, .data = malloc(EXPORT_BUFFER_BYTES)};
    return s->data ? 0 : err_no_memory(e, out->name);
}

static void *write_buffers(void *arg)
{
    struct export_writer *w = arg;
    for (int i; !w->failed && (i = ring_wait_full(&w->ring)) >= 0; ring_empty(&w->ring))
        w->failed = output_write(w->out, w->buffers[i].data, w->buffers[i].n, &w->err);
    ring_stop(&w->ring);
    return NULL;
}

static void writer_free(struct export_writer *w)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        free(w->buffers[i].data);
    ring_release(&w->ring);
    free(w);
}

// Starts the thread and passes the current buffer to the thread. If the thread cannot be started,
// the exporter continues to write synchronously.
static void start_writer(struct export_buffer *s)
{
    struct export_writer *w = ring_cpus() > 1 ? calloc(1, sizeof *w) : NULL;
    if (!w)
        return;
    ring_init(&w->ring, BUFFERS);
    w->out = s->out;
    bool has_memory = true;
    for (unsigned i = 1; i < BUFFERS; i++)
        has_memory &= (w->buffers[i].data = malloc(EXPORT_BUFFER_BYTES)) != NULL;
    if (!has_memory || thread_start(&w->thread, 0, write_buffers, w) < 0) {
        writer_free(w);
        return;
    }
    w->filling = (unsigned)ring_wait_empty(&w->ring);
    w->buffers[w->filling].data = s->data;
    s->writer = w;
}

void export_buffer_release(struct export_buffer *s)
{
    if (s->writer) {
        ring_over(&s->writer->ring);
        pthread_join(s->writer->thread, NULL);
        writer_free(s->writer);
    } else {
        free(s->data);
    }
    *s = (struct export_buffer){0};
}

static void copy_failure(struct export_buffer *s)
{
    if (s->writer->failed && !s->failed)
        s->failed = err_set(s->e, s->writer->failed, "%s", s->writer->err.text);
}

static void pass_buffer(struct export_buffer *s)
{
    struct export_writer *w = s->writer;
    w->buffers[w->filling].n = s->n;
    ring_fill(&w->ring);
    int next = ring_wait_empty(&w->ring);
    if (next < 0) {
        copy_failure(s);
        return;
    }
    w->filling = (unsigned)next;
    s->data = w->buffers[next].data;
}

static void write_full(struct export_buffer *s)
{
    if (s->failed || !s->n)
        return;
    if (s->writer)
        pass_buffer(s);
    else
        s->failed = output_write(s->out, s->data, s->n, s->e);
}

void export_buffer_next(struct export_buffer *s)
{
    if (!s->writer)
        start_writer(s);
    write_full(s);
    s->n = 0;
}

int export_buffer_flush(struct export_buffer *s)
{
    write_full(s);
    s->n = 0;
    if (s->writer && !s->failed) {
        ring_drain(&s->writer->ring);
        copy_failure(s);
    }
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
