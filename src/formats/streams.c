#include "formats/streams.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 1 << 14, // size of a chunk in the file; each chunk belongs to a single stream
    FIRST_BYTES = 256,     // initial buffer size, because many streams are short
};

struct stream {
    uint64_t bytes;  // length of the stream
    uint8_t *buffer; // holds the last chunk
    uint32_t n, capacity;
};

void streams_release(struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->streams[i].buffer);
    free(s->streams);
    free(s->owners);
    if (s->open)
        output_close(&s->file, false, NULL);
    *s = (struct streams){0};
}

// Appends stream i's full chunk to the file.
static int write_chunk(struct streams *s, size_t i)
{
    int rc = s->open ? 0 : output_open_unnamed(&s->file, s->e);
    if (rc < 0)
        return rc;
    s->open = true;
    if (HT_APPEND(&s->owners, &s->n_owners, &s->owners_capacity, (uint32_t)i) < 0)
        return err_no_memory(s->e, NULL);
    s->streams[i].n = 0;
    return output_write(&s->file, s->streams[i].buffer, CHUNK_BYTES, s->e);
}

static int make_streams(struct streams *s, size_t n)
{
    if (HT_GROW(&s->streams, &s->capacity, n) < 0)
        return err_no_memory(s->e, NULL);
    for (; s->n < n; s->n++)
        s->streams[s->n] = (struct stream){0};
    return 0;
}

static int grow_buffer(struct streams *s, struct stream *t)
{
    uint32_t capacity = t->capacity ? t->capacity * 2 : FIRST_BYTES;
    uint8_t *buffer = realloc(t->buffer, capacity);
    if (!buffer)
        return err_no_memory(s->e, NULL);
    t->buffer = buffer;
    t->capacity = capacity;
    return 0;
}

static int put_slowly(struct streams *s, size_t i, const uint8_t *from, size_t n)
{
    while (n) {
        struct stream *t = &s->streams[i];
        int rc = t->n < t->capacity    ? 0
                 : t->n == CHUNK_BYTES ? write_chunk(s, i)
                                       : grow_buffer(s, t);
        if (rc < 0)
            return rc;
        size_t space = t->capacity - t->n, part = n < space ? n : space;
        memcpy(t->buffer + t->n, from, part);
        t->n += (uint32_t)part;
        t->bytes += part;
        from += part;
        n -= part;
    }
    return 0;
}

int streams_put(struct streams *s, size_t i, const void *bytes, size_t n)
{
    if (__builtin_expect(i >= s->n, 0)) {
        int rc = make_streams(s, i + 1);
        if (rc < 0)
            return rc;
    }
    struct stream *t = &s->streams[i];
    if (__builtin_expect(t->capacity - t->n < n, 0))
        return put_slowly(s, i, bytes, n);
    memcpy(t->buffer + t->n, bytes, n);
    t->n += (uint32_t)n;
    t->bytes += n;
    return 0;
}

uint64_t streams_bytes(const struct streams *s, size_t i)
{
    return i < s->n ? s->streams[i].bytes : 0;
}

static int copy_chunk(struct streams *s, size_t chunk, uint8_t *buffer, struct export_buffer *to)
{
    size_t got = 0;
    while (got < CHUNK_BYTES) {
        ssize_t n =
            pread(s->file.fd, buffer + got, CHUNK_BYTES - got, (off_t)(chunk * CHUNK_BYTES + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(s->e, "%s", s->file.name);
        if (n == 0)
            return err_set(s->e, -EIO, "%s: the file became shorter while it was read",
                           s->file.name);
        got += (size_t)n;
    }
    export_buffer_put(to, buffer, CHUNK_BYTES);
    return 0;
}

// Returns the numbers of the file's chunks sorted by stream, and in file order within each stream,
// or NULL when out of memory. `first` is scratch space for s->n + 1 numbers, which must be 0.
static uint32_t *sort_chunks(const struct streams *s, size_t *first)
{
    uint32_t *order = malloc((s->n_owners + 1) * sizeof *order);
    for (size_t c = 0; order && c < s->n_owners; c++)
        first[s->owners[c] + 1]++;
    for (size_t i = 0; i < s->n; i++)
        first[i + 1] += first[i];
    // first[i + 1] is the end of stream i. The loop fills each stream from the back, which moves
    // first[i + 1] to the start of the stream.
    for (size_t c = s->n_owners; order && c-- > 0;)
        order[--first[s->owners[c] + 1]] = (uint32_t)c;
    return order;
}

int streams_write(struct streams *s, struct export_buffer *to)
{
    size_t *first = calloc(s->n + 2, sizeof *first);
    uint32_t *order = first ? sort_chunks(s, first) : NULL;
    uint8_t *buffer = malloc(CHUNK_BYTES);
    int rc = order && buffer ? 0 : err_no_memory(s->e, NULL);
    for (size_t i = 0, at = 0; rc == 0 && i < s->n; i++) {
        const struct stream *t = &s->streams[i];
        for (uint64_t left = t->bytes - t->n; rc == 0 && left; left -= CHUNK_BYTES)
            rc = copy_chunk(s, order[at++], buffer, to);
        if (rc == 0)
            export_buffer_put(to, t->buffer, t->n);
    }
    free(first);
    free(order);
    free(buffer);
    return rc;
}
