#include "formats/import_source.h"

#include "base/bytes.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

// The first four bytes of a frame (LZ4 frame format, version 1.6).
#define LZ4_FRAME_MAGIC 0x184d2204u

enum { STEP_BYTES = 1 << 16 };

struct unlz4 {
    struct input *in;
    LZ4F_dctx *context;
    uint8_t data[STEP_BYTES];
    size_t at, end;
    size_t hint; // what LZ4F still wants of the frame under work; 0 between frames
    bool ended;
};

static struct unlz4 *unlz4_new(struct input *in)
{
    struct unlz4 *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->in = in;
    if (!LZ4F_isError(LZ4F_createDecompressionContext(&u->context, LZ4F_VERSION)))
        return u;
    free(u);
    return NULL;
}

static void unlz4_free(struct unlz4 *u)
{
    if (!u)
        return;
    LZ4F_freeDecompressionContext(u->context);
    free(u);
}

static int refill(struct unlz4 *u, struct err *e)
{
    if (u->at < u->end || u->ended)
        return 0;
    ssize_t n = input_read_some(u->in, u->data, sizeof u->data, e);
    if (n < 0)
        return (int)n;
    u->at = 0;
    u->end = (size_t)n;
    u->ended = n == 0;
    return 0;
}

static int decompress(struct unlz4 *u, void *to, size_t most, size_t *got, struct err *e)
{
    size_t used = u->end - u->at;
    *got = most;
    size_t hint = LZ4F_decompress(u->context, to, got, u->data + u->at, &used, NULL);
    if (LZ4F_isError(hint))
        return err_set(e, -EBADMSG, "%s: invalid LZ4 frame (%s) before byte %llu", u->in->name, LZ4F_getErrorName(hint),
                       (unsigned long long)u->in->offset);
    u->at += used;
    u->hint = hint;
    return 0;
}

// Up to `most` decompressed bytes, at least one; 0 at the end. Negative errno with the text set: -EBADMSG for
// an invalid frame, -ENODATA when the last one is cut off.
static ssize_t unlz4_read(struct unlz4 *u, void *to, size_t most, struct err *e)
{
    size_t got = 0;
    while (!got) {
        int rc = refill(u, e);
        if (rc < 0)
            return rc;
        if (u->ended && !u->hint)
            return 0;
        // At the input's end what LZ4F holds back is still asked for.
        size_t before = u->at;
        rc = decompress(u, to, most, &got, e);
        if (rc < 0)
            return rc;
        if (u->ended && !got && u->at == before && u->hint)
            return err_set(e, -ENODATA, "%s: the LZ4 frame is cut off at byte %llu", u->in->name,
                           (unsigned long long)u->in->offset);
    }
    return (ssize_t)got;
}

int import_source_init(struct import_source *s, struct input *in, struct err *e)
{
    const uint8_t *bytes;
    *s = (struct import_source){.in = in, .offset = in->offset};
    ssize_t n = input_peek(in, 4, &bytes, e);
    if (n < 4 || get_u32(bytes) != LZ4_FRAME_MAGIC)
        return n < 0 ? (int)n : 0;
    s->unlz4 = unlz4_new(in);
    return s->unlz4 ? 0 : err_set(e, -ENOMEM, "%s: out of memory", in->name);
}

void import_source_release(struct import_source *s)
{
    unlz4_free(s->unlz4);
    free(s->data);
    *s = (struct import_source){0};
}

static int make_space(struct import_source *s, size_t want)
{
    size_t left = import_source_left(s), need = want + IMPORT_SOURCE_STEP_BYTES;
    if (need > s->capacity) {
        uint8_t *data = realloc(s->data, need + IMPORT_SOURCE_SLACK_BYTES);
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

ssize_t import_source_fill(struct import_source *s, size_t want, struct err *e)
{
    if (import_source_left(s) >= want || s->ended)
        return (ssize_t)import_source_left(s);
    if (make_space(s, want) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", s->in->name);
    // A pipe holds little at a time: what is there already is worked on while more is written.
    while (import_source_left(s) < want && !s->ended) {
        size_t space = s->capacity - s->end;
        ssize_t n = s->unlz4 ? unlz4_read(s->unlz4, s->data + s->end, space, e)
                             : input_read_some(s->in, s->data + s->end, space, e);
        if (n == -ENODATA && s->cut_is_end) {
            *e = (struct err){0};
            n = 0;
        }
        if (n < 0)
            return n;
        s->end += (size_t)n;
        s->ended = n == 0;
    }
    memset(s->data + s->end, 0, IMPORT_SOURCE_SLACK_BYTES);
    return (ssize_t)import_source_left(s);
}

// Moves behind the next newline.
static int skip_line(struct import_source *s, struct err *e)
{
    ssize_t n;
    while ((n = import_source_fill(s, 1, e)) > 0) {
        const uint8_t *from = s->data + s->at, *newline = memchr(from, '\n', import_source_left(s));
        s->at = newline ? (size_t)(newline + 1 - s->data) : s->end;
        if (newline)
            break;
    }
    s->skip = false;
    return n < 0 ? (int)n : 0;
}

int import_source_line(struct import_source *s, const char **line, size_t *n, struct err *e)
{
    size_t seen = 0;
    int skipped = s->skip ? skip_line(s, e) : 0;
    if (skipped < 0)
        return skipped;
    for (;;) {
        size_t left = import_source_left(s);
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
        if (left >= IMPORT_SOURCE_MAX_BYTES) {
            s->line++;
            s->skip = true;
            return -EMSGSIZE;
        }
        ssize_t got = import_source_fill(s, left + 1, e);
        if (got < 0)
            return (int)got;
    }
}
