#include "formats/source.h"

#include "base/bytes.h"
#include "formats/unlz4.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The first four bytes of a frame (LZ4 frame format, version 1.6).
#define LZ4_FRAME_MAGIC 0x184d2204u

int source_init(struct source *s, struct input *in, struct err *e)
{
    const uint8_t *bytes;
    *s = (struct source){.in = in, .offset = in->offset};
    ssize_t n = input_peek(in, 4, &bytes, e);
    if (n < 4 || get_u32(bytes) != LZ4_FRAME_MAGIC)
        return n < 0 ? (int)n : 0;
    s->unlz4 = unlz4_new(in);
    return s->unlz4 ? 0 : err_set(e, -ENOMEM, "%s: out of memory", in->name);
}

void source_release(struct source *s)
{
    unlz4_free(s->unlz4);
    free(s->data);
    *s = (struct source){0};
}

static int make_room(struct source *s, size_t want)
{
    size_t left = source_left(s), need = want + SOURCE_STEP_BYTES;
    if (need > s->capacity) {
        // One more byte, so that one behind a line may be read.
        uint8_t *data = realloc(s->data, need + 1);
        if (!data)
            return -ENOMEM;
        s->data = data;
        s->capacity = need;
    }
    if (s->at)
        memmove(s->data, s->data + s->at, left);
    s->offset += s->at;
    s->at = 0;
    s->end = left;
    return 0;
}

ssize_t source_fill(struct source *s, size_t want, struct err *e)
{
    if (source_left(s) >= want || s->ended)
        return (ssize_t)source_left(s);
    if (make_room(s, want) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", s->in->name);
    // A pipe gives little at a time: what is there already is worked on while more is written.
    while (source_left(s) < want && !s->ended) {
        size_t room = s->capacity - s->end;
        ssize_t n = s->unlz4 ? unlz4_read(s->unlz4, s->data + s->end, room, e)
                             : input_read_some(s->in, s->data + s->end, room, e);
        if (n < 0)
            return n;
        s->end += (size_t)n;
        s->ended = n == 0;
    }
    s->data[s->end] = 0;
    return (ssize_t)source_left(s);
}

// Moves behind the next newline.
static int skip_line(struct source *s, struct err *e)
{
    ssize_t n;
    while ((n = source_fill(s, 1, e)) > 0) {
        const uint8_t *from = s->data + s->at, *newline = memchr(from, '\n', source_left(s));
        s->at = newline ? (size_t)(newline + 1 - s->data) : s->end;
        if (newline)
            break;
    }
    s->skip = false;
    return n < 0 ? (int)n : 0;
}

int source_line(struct source *s, const char **line, size_t *n, struct err *e)
{
    size_t seen = 0;
    int skipped = s->skip ? skip_line(s, e) : 0;
    if (skipped < 0)
        return skipped;
    for (;;) {
        size_t left = source_left(s);
        const uint8_t *from = left ? s->data + s->at : (const uint8_t *)"";
        const uint8_t *newline = left > seen ? memchr(from + seen, '\n', left - seen) : NULL;
        if (newline || (s->ended && left)) {
            *line = (const char *)from;
            *n = newline ? (size_t)(newline - from) : left;
            s->at += *n + (newline != NULL);
            s->line++;
            return 1;
        }
        if (s->ended)
            return 0;
        seen = left;
        if (left >= SOURCE_MAX_BYTES) {
            s->line++;
            s->skip = true;
            return -EMSGSIZE;
        }
        ssize_t got = source_fill(s, left + 1, e);
        if (got < 0)
            return (int)got;
    }
}
