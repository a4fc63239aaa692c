#include "formats/import_source.h"

#include "base/bytes.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

// Magic numbers that begin a frame (LZ4 frame format, version 1.6; RFC 8878).
#define LZ4_FRAME_MAGIC  0x184d2204u
#define ZSTD_FRAME_MAGIC 0xfd2fb528u

enum { STEP_BYTES = 1 << 16 };

struct unpack {
    struct input *in;
    LZ4F_dctx *lz4; // NULL for zstd frames; `zstd` is NULL for LZ4 frames
    ZSTD_DCtx *zstd;
    uint8_t data[STEP_BYTES];
    size_t at, end;
    size_t hint; // number of bytes that the library expects next; 0 between frames
    bool ended;
};

static void unpack_free(struct unpack *u)
{
    if (!u)
        return;
    LZ4F_freeDecompressionContext(u->lz4);
    ZSTD_freeDCtx(u->zstd);
    free(u);
}

static struct unpack *unpack_new(struct input *in, bool is_zstd)
{
    struct unpack *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->in = in;
    if (is_zstd)
        u->zstd = ZSTD_createDCtx();
    else if (LZ4F_isError(LZ4F_createDecompressionContext(&u->lz4, LZ4F_VERSION)))
        u->lz4 = NULL;
    if (u->lz4 || u->zstd)
        return u;
    free(u);
    return NULL;
}

static int refill(struct unpack *u, struct err *e)
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

static int bad_frame(const struct unpack *u, const char *what, struct err *e)
{
    return err_set(e, -EBADMSG, "%s: invalid %s frame (%s) before byte %llu", u->in->name,
                   u->zstd ? "zstd" : "LZ4", what, (unsigned long long)u->in->offset);
}

static int decompress_zstd(struct unpack *u, void *to, size_t most, size_t *got, struct err *e)
{
    ZSTD_outBuffer out = {to, most, 0};
    ZSTD_inBuffer in = {u->data, u->end, u->at};
    size_t hint = ZSTD_decompressStream(u->zstd, &out, &in);
    if (ZSTD_isError(hint))
        return bad_frame(u, ZSTD_getErrorName(hint), e);
    u->at = in.pos;
    *got = out.pos;
    u->hint = hint;
    return 0;
}

static int decompress(struct unpack *u, void *to, size_t most, size_t *got, struct err *e)
{
    if (u->zstd)
        return decompress_zstd(u, to, most, got, e);
    size_t used = u->end - u->at;
    *got = most;
    size_t hint = LZ4F_decompress(u->lz4, to, got, u->data + u->at, &used, NULL);
    if (LZ4F_isError(hint))
        return bad_frame(u, LZ4F_getErrorName(hint), e);
    u->at += used;
    u->hint = hint;
    return 0;
}

// Returns up to `most` decompressed bytes, at least one, or 0 at the end. On error, returns a
// negative errno with the message set: -EBADMSG if a frame is invalid, -ENODATA if the last frame
// is truncated.
static ssize_t unpack_read(struct unpack *u, void *to, size_t most, struct err *e)
{
    size_t got = 0;
    while (!got) {
        int rc = refill(u, e);
        if (rc < 0)
            return rc;
        if (u->ended && !u->hint)
            return 0;
        // At the end of the input, keep calling until the library has returned all buffered data.
        size_t before = u->at;
        rc = decompress(u, to, most, &got, e);
        if (rc < 0)
            return rc;
        if (u->ended && !got && u->at == before && u->hint)
            return err_set(e, -ENODATA, "%s: the %s frame is cut off at byte %llu", u->in->name,
                           u->zstd ? "zstd" : "LZ4", (unsigned long long)u->in->offset);
    }
    return (ssize_t)got;
}

int import_source_init(struct import_source *s, struct input *in, struct err *e)
{
    const uint8_t *bytes;
    *s = (struct import_source){.in = in, .offset = in->offset};
    ssize_t n = input_peek(in, 4, &bytes, e);
    uint32_t magic = n < 4 ? 0 : get_u32(bytes);
    if (magic != LZ4_FRAME_MAGIC && magic != ZSTD_FRAME_MAGIC)
        return n < 0 ? (int)n : input_check_compressed(in, bytes, (size_t)n, e);
    s->unpack = unpack_new(in, magic == ZSTD_FRAME_MAGIC);
    return s->unpack ? 0 : err_no_memory(e, in->name);
}

void import_source_release(struct import_source *s)
{
    unpack_free(s->unpack);
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
        return err_no_memory(e, s->in->name);
    // Stop at `want` bytes, so that data from a pipe is processed while the pipe's writer produces
    // more.
    while (import_source_left(s) < want && !s->ended) {
        size_t space = s->capacity - s->end;
        ssize_t n = s->unpack ? unpack_read(s->unpack, s->data + s->end, space, e)
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

// Skips to the end of the current line.
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
