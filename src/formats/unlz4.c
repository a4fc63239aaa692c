#include "formats/unlz4.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>

enum { STEP_BYTES = 1 << 16 };

struct unlz4 {
    struct input *in;
    LZ4F_dctx *context;
    uint8_t data[STEP_BYTES];
    size_t at, end;
    size_t hint; // what LZ4F still wants of the frame under work; 0 between frames
    bool ended;
};

struct unlz4 *unlz4_new(struct input *in)
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

void unlz4_free(struct unlz4 *u)
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

ssize_t unlz4_read(struct unlz4 *u, void *to, size_t most, struct err *e)
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
