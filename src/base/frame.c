#include "base/frame.h"

#include "base/bytes.h"

#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <xxhash.h>
#include <zstd.h>

// Byte offsets in the header; docs/format/trace.md.
enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_CODEC = 5,
    AT_VERSION = 6,
    AT_STORED = 8,
    AT_RAW = 12,
    AT_SEQUENCE = 16,
    AT_PAYLOAD_HASH = 24,
    AT_HEADER_HASH = 32,
};

void frame_writer_init(struct frame_writer *w, struct output *out, uint32_t magic, uint16_t version,
                       enum frame_codec codec, int level)
{
    *w = (struct frame_writer){.out = out, .magic = magic, .version = version, .codec = codec, .level = level};
}

void frame_writer_release(struct frame_writer *w)
{
    ZSTD_freeCCtx(w->zstd);
    buf_release(&w->stored);
    *w = (struct frame_writer){0};
}

static size_t compress_bound(enum frame_codec codec, size_t n)
{
    switch (codec) {
    case FRAME_CODEC_LZ4:
        return (size_t)LZ4_compressBound((int)n);
    case FRAME_CODEC_ZSTD:
        return ZSTD_compressBound(n);
    case FRAME_CODEC_NONE:
        break;
    }
    return n;
}

// Bytes written to `to`, or 0 when the payload is better stored as it is.
static size_t compress_payload(struct frame_writer *w, uint8_t *to, size_t room, const void *raw, size_t n)
{
    size_t got = 0;
    if (w->codec == FRAME_CODEC_LZ4) {
        int r = LZ4_compress_default(raw, (char *)to, (int)n, (int)room);
        got = r > 0 ? (size_t)r : 0;
    } else if (w->codec == FRAME_CODEC_ZSTD) {
        if (!w->zstd)
            w->zstd = ZSTD_createCCtx();
        got = w->zstd ? ZSTD_compressCCtx(w->zstd, to, room, raw, n, w->level) : 0;
        if (ZSTD_isError(got))
            got = 0;
    }
    return got < n ? got : 0;
}

int frame_write(struct frame_writer *w, uint8_t type, const void *raw, size_t raw_bytes, struct err *e)
{
    if (raw_bytes > FRAME_MAX_RAW_BYTES)
        return err_set(e, -E2BIG, "%s: a frame of %zu bytes is over the format's limit", w->out->name, raw_bytes);
    w->stored.size = 0;
    size_t room = compress_bound(w->codec, raw_bytes);
    if (buf_reserve(&w->stored, FRAME_HEADER_BYTES + (room > raw_bytes ? room : raw_bytes)) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", w->out->name);
    uint8_t *head = w->stored.data, *payload = head + FRAME_HEADER_BYTES;
    enum frame_codec codec = w->codec;
    size_t stored = compress_payload(w, payload, room, raw, raw_bytes);
    if (!stored) {
        codec = FRAME_CODEC_NONE;
        stored = raw_bytes;
        if (raw_bytes)
            memcpy(payload, raw, raw_bytes);
    }
    put_u32(head + AT_MAGIC, w->magic);
    head[AT_TYPE] = type;
    head[AT_CODEC] = (uint8_t)codec;
    put_u16(head + AT_VERSION, w->version);
    put_u32(head + AT_STORED, (uint32_t)stored);
    put_u32(head + AT_RAW, (uint32_t)raw_bytes);
    put_u64(head + AT_SEQUENCE, w->next_sequence);
    put_u64(head + AT_PAYLOAD_HASH, XXH3_64bits(payload, stored));
    put_u64(head + AT_HEADER_HASH, XXH3_64bits(head, AT_HEADER_HASH));
    int rc = output_write(w->out, head, FRAME_HEADER_BYTES + stored, e);
    if (rc == 0)
        w->next_sequence++;
    return rc;
}

void frame_reader_init(struct frame_reader *r, struct input *in, uint32_t magic, uint16_t max_version)
{
    *r = (struct frame_reader){.in = in, .magic = magic, .max_version = max_version};
}

void frame_reader_release(struct frame_reader *r)
{
    ZSTD_freeDCtx(r->zstd);
    buf_release(&r->stored);
    buf_release(&r->raw);
    *r = (struct frame_reader){0};
}

int frame_magic_at(const uint8_t *bytes, size_t n, uint32_t magic)
{
    return n >= 4 && get_u32(bytes + AT_MAGIC) == magic;
}

static const char *kind_of(uint32_t magic)
{
    return magic == FRAME_MAGIC_WORKLOAD ? "workload" : "trace";
}

static bool header_intact(const uint8_t *head)
{
    return XXH3_64bits(head, AT_HEADER_HASH) == get_u64(head + AT_HEADER_HASH);
}

// Is this header one that the reader can go on with? 0 or a negative errno with the text set.
static int check_header(struct frame_reader *r, const uint8_t *head, uint64_t at, struct err *e)
{
    unsigned long long where = at;
    const char *name = r->in->name;
    uint32_t magic = get_u32(head + AT_MAGIC);
    if (magic != r->magic) {
        uint32_t other = r->magic == FRAME_MAGIC_TRACE ? FRAME_MAGIC_WORKLOAD : FRAME_MAGIC_TRACE;
        if (at == 0 && magic == other)
            return err_set(e, -EPROTO, "%s: is a %s, expected a %s, at byte 0", name, kind_of(other),
                           kind_of(r->magic));
        if (at == 0)
            return err_set(e, -EPROTO, "%s: is not a heaptape %s, at byte 0", name, kind_of(r->magic));
        return err_set(e, -EBADMSG, "%s: expected a frame header, at byte %llu", name, where);
    }
    if (!header_intact(head))
        return err_set(e, -EBADMSG, "%s: frame header is corrupt, at byte %llu", name, where);
    if (get_u16(head + AT_VERSION) > r->max_version)
        return err_set(e, -EPROTO, "%s: format version %u is newer than this heaptape reads (%u), at byte %llu", name,
                       get_u16(head + AT_VERSION), r->max_version, where);
    if (get_u32(head + AT_RAW) > FRAME_MAX_RAW_BYTES || get_u32(head + AT_STORED) > get_u32(head + AT_RAW))
        return err_set(e, -EBADMSG, "%s: frame lengths are impossible, at byte %llu", name, where);
    return 0;
}

static void describe(struct frame *f, const uint8_t *head, uint64_t offset)
{
    *f = (struct frame){
        .type = head[AT_TYPE],
        .version = get_u16(head + AT_VERSION),
        .codec = head[AT_CODEC],
        .sequence = get_u64(head + AT_SEQUENCE),
        .offset = offset,
        .stored_bytes = FRAME_HEADER_BYTES + get_u32(head + AT_STORED),
    };
}

int frame_read_stored(struct frame_reader *r, struct buf *stored, struct frame *f, struct err *e)
{
    uint64_t at = r->in->offset;
    const char *name = r->in->name;
    if (buf_resize(stored, FRAME_HEADER_BYTES) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", name);
    ssize_t n = input_read(r->in, stored->data, FRAME_HEADER_BYTES, e);
    if (n < 0)
        return (int)n;
    if (n == 0 && at > 0)
        return 0;
    if (n == 0)
        return err_set(e, -ENODATA, "%s: is empty", name);
    bool magic_so_far = memcmp(stored->data, &r->magic, n < 4 ? (size_t)n : 4) == 0;
    if (magic_so_far && n < FRAME_HEADER_BYTES)
        return err_set(e, -ENODATA, "%s: cut off inside a frame header, at byte %llu", name, (unsigned long long)at);
    memset(stored->data + n, 0, FRAME_HEADER_BYTES - (size_t)n);
    int rc = check_header(r, stored->data, at, e);
    if (rc < 0)
        return rc;
    describe(f, stored->data, at);
    if (f->sequence != r->next_sequence)
        return err_set(e, -EBADMSG, "%s: frame %llu stands where frame %llu is due, at byte %llu", name,
                       (unsigned long long)f->sequence, (unsigned long long)r->next_sequence, (unsigned long long)at);
    size_t payload = f->stored_bytes - FRAME_HEADER_BYTES;
    if (buf_resize(stored, f->stored_bytes) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", name);
    n = input_read(r->in, stored->data + FRAME_HEADER_BYTES, payload, e);
    if (n < 0)
        return (int)n;
    if ((size_t)n < payload)
        return err_set(e, -ENODATA, "%s: cut off inside a frame of %zu bytes, at byte %llu", name, f->stored_bytes,
                       (unsigned long long)at);
    r->next_sequence++;
    return 1;
}

static bool decompress(const uint8_t *head, const uint8_t *payload, size_t stored, struct buf *raw, void *zstd)
{
    size_t want = get_u32(head + AT_RAW);
    switch (head[AT_CODEC]) {
    case FRAME_CODEC_NONE:
        if (stored != want)
            return false;
        if (want)
            memcpy(raw->data, payload, want);
        return true;
    case FRAME_CODEC_LZ4:
        return LZ4_decompress_safe((const char *)payload, (char *)raw->data, (int)stored, (int)want) == (int)want;
    case FRAME_CODEC_ZSTD:
        return ZSTD_decompressDCtx(zstd, raw->data, want, payload, stored) == want;
    }
    return false;
}

int frame_unpack(const struct buf *stored, struct buf *raw, void *zstd, const char *name, struct frame *f,
                 struct err *e)
{
    const uint8_t *head = stored->data, *payload = head + FRAME_HEADER_BYTES;
    size_t n = get_u32(head + AT_STORED);
    unsigned long long at = f->offset;
    if (XXH3_64bits(payload, n) != get_u64(head + AT_PAYLOAD_HASH))
        return err_set(e, -EBADMSG, "%s: frame checksum does not match, at byte %llu", name, at);
    if (buf_resize(raw, get_u32(head + AT_RAW)) < 0)
        return err_set(e, -ENOMEM, "%s: out of memory", name);
    if (!decompress(head, payload, n, raw, zstd))
        return err_set(e, -EBADMSG, "%s: frame does not decompress, at byte %llu", name, at);
    f->data = raw->data;
    f->size = raw->size;
    return 1;
}

int frame_next(struct frame_reader *r, struct frame *f, struct err *e)
{
    if (!r->zstd)
        r->zstd = ZSTD_createDCtx();
    if (!r->zstd)
        return err_set(e, -ENOMEM, "%s: out of memory", r->in->name);
    int rc = frame_read_stored(r, &r->stored, f, e);
    return rc <= 0 ? rc : frame_unpack(&r->stored, &r->raw, r->zstd, r->in->name, f, e);
}

int frame_resync(struct frame_reader *r, uint64_t *skipped_bytes, struct err *e)
{
    enum { WINDOW = 65536 };
    for (;;) {
        const uint8_t *p;
        ssize_t n = input_peek(r->in, WINDOW, &p, e);
        if (n < 0)
            return (int)n;
        size_t i = 0;
        for (; i + FRAME_HEADER_BYTES <= (size_t)n; i++) {
            if (get_u32(p + i) == r->magic && header_intact(p + i))
                break;
        }
        bool found = i + FRAME_HEADER_BYTES <= (size_t)n;
        uint64_t sequence = found ? get_u64(p + i + AT_SEQUENCE) : 0;
        size_t skip = found ? i : n < WINDOW ? (size_t)n : i;
        uint8_t sink[4096];
        *skipped_bytes += skip;
        while (skip) {
            ssize_t got = input_read(r->in, sink, skip < sizeof sink ? skip : sizeof sink, e);
            if (got <= 0)
                return (int)got;
            skip -= (size_t)got;
        }
        if (found) {
            r->next_sequence = sequence;
            return 1;
        }
        if (n < WINDOW)
            return 0;
    }
}
