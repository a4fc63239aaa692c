#include "base/frame.h"

#include "base/bytes.h"
#include "base/frame_private.h"

#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdio.h>
#include <xxhash.h>
#include <zstd.h>

void frame_reader_init(struct frame_reader *r, struct input *in, uint32_t magic,
                       uint16_t max_version)
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

static const char *type_name(uint32_t magic)
{
    return magic == FRAME_MAGIC_WORKLOAD ? "workload" : "trace";
}

static bool header_intact(const uint8_t *head)
{
    return XXH3_64bits(head, AT_HEADER_HASH) == get_u64(head + AT_HEADER_HASH);
}

// Checks a header. Returns 0, or a negative errno with the message set.
static int check_header(struct frame_reader *r, const uint8_t *head, uint64_t at, struct err *e)
{
    unsigned long long where = at;
    const char *name = r->in->name;
    uint32_t magic = get_u32(head + AT_MAGIC);
    if (magic != r->magic) {
        uint32_t other = r->magic == FRAME_MAGIC_TRACE ? FRAME_MAGIC_WORKLOAD : FRAME_MAGIC_TRACE;
        if (at == 0 && magic == other)
            return err_set(e, -EPROTO, "%s: is a %s, expected a %s, at byte 0", name,
                           type_name(other), type_name(r->magic));
        if (at == 0)
            return err_set(e, -EPROTO, "%s: is not a heaptape %s, at byte 0", name,
                           type_name(r->magic));
        return err_set(e, -EBADMSG, "%s: expected a frame header, at byte %llu", name, where);
    }
    if (!header_intact(head))
        return err_set(e, -EBADMSG, "%s: frame header is corrupt, at byte %llu", name, where);
    if (get_u16(head + AT_VERSION) > r->max_version)
        return err_set(e, -EPROTO,
                       "%s: format version %u is newer than this heaptape reads (%u), at byte %llu",
                       name, get_u16(head + AT_VERSION), r->max_version, where);
    if (get_u32(head + AT_RAW) > FRAME_MAX_RAW_BYTES ||
        get_u32(head + AT_STORED) > get_u32(head + AT_RAW))
        return err_set(e, -EBADMSG, "%s: frame header has invalid lengths, at byte %llu", name,
                       where);
    return 0;
}

static void fill_frame(struct frame *f, const uint8_t *head, uint64_t offset)
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

// Reads a header into `stored`. Returns the same values as frame_next.
static int read_header(struct frame_reader *r, struct buf *stored, struct frame *f, struct err *e)
{
    uint64_t at = r->in->offset;
    const char *name = r->in->name;
    if (buf_resize(stored, FRAME_HEADER_BYTES) < 0)
        return err_no_memory(e, name);
    ssize_t n = input_read(r->in, stored->data, FRAME_HEADER_BYTES, e);
    if (n < 0)
        return (int)n;
    if (n == 0 && at > 0)
        return 0;
    if (n == 0)
        return err_set(e, -ENODATA, "%s: is empty", name);
    bool magic_so_far = memcmp(stored->data, &r->magic, n < 4 ? (size_t)n : 4) == 0;
    if (magic_so_far && n < FRAME_HEADER_BYTES)
        return err_set(e, -ENODATA, "%s: cut off inside a frame header, at byte %llu", name,
                       (unsigned long long)at);
    memset(stored->data + n, 0, FRAME_HEADER_BYTES - (size_t)n);
    int rc = check_header(r, stored->data, at, e);
    if (rc < 0)
        return rc;
    fill_frame(f, stored->data, at);
    if (f->sequence != r->next_sequence)
        return err_set(e, -EBADMSG, "%s: found frame %llu, expected frame %llu, at byte %llu", name,
                       (unsigned long long)f->sequence, (unsigned long long)r->next_sequence,
                       (unsigned long long)at);
    return 1;
}

int frame_newer(const char *file, uint64_t offset, const char *writer, const char *what,
                struct err *e)
{
    return err_set(e, -EPROTO, "%s: frame at byte %llu: %s: written by a newer heaptape%s%s%s?",
                   file, (unsigned long long)offset, what, writer ? " (" : "", writer ? writer : "",
                   writer ? ")" : "");
}

static int read_payload(struct frame_reader *r, struct buf *stored, const struct frame *f,
                        struct err *e)
{
    const char *name = r->in->name;
    size_t payload = f->stored_bytes - FRAME_HEADER_BYTES;
    if (buf_resize(stored, f->stored_bytes) < 0)
        return err_no_memory(e, name);
    ssize_t n = input_read(r->in, stored->data + FRAME_HEADER_BYTES, payload, e);
    if (n < 0)
        return (int)n;
    if ((size_t)n < payload)
        return err_set(e, -ENODATA, "%s: cut off inside a frame of %zu bytes, at byte %llu", name,
                       f->stored_bytes, (unsigned long long)f->offset);
    r->next_sequence++;
    return 1;
}

int frame_read_stored(struct frame_reader *r, struct buf *stored, struct frame *f, struct err *e)
{
    int rc = read_header(r, stored, f, e);
    return rc <= 0 ? rc : read_payload(r, stored, f, e);
}

static bool decompress(const uint8_t *head, const uint8_t *payload, size_t stored, struct buf *raw,
                       void *zstd)
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
        return LZ4_decompress_safe((const char *)payload, (char *)raw->data, (int)stored,
                                   (int)want) == (int)want;
    case FRAME_CODEC_ZSTD:
        return ZSTD_decompressDCtx(zstd, raw->data, want, payload, stored) == want;
    }
    return false;
}

int frame_unpack(const struct buf *stored, struct buf *raw, void *zstd, const char *name,
                 struct frame *f, struct err *e)
{
    const uint8_t *head = stored->data, *payload = head + FRAME_HEADER_BYTES;
    size_t n = get_u32(head + AT_STORED);
    unsigned long long at = f->offset;
    if (head[AT_CODEC] > FRAME_CODEC_ZSTD) {
        char what[64];
        snprintf(what, sizeof what, "codec %u of the payload is not known", head[AT_CODEC]);
        return frame_newer(name, f->offset, NULL, what, e);
    }
    if (XXH3_64bits(payload, n) != get_u64(head + AT_PAYLOAD_HASH))
        return err_set(e, -EBADMSG, "%s: frame checksum does not match, at byte %llu", name, at);
    if (buf_resize(raw, get_u32(head + AT_RAW)) < 0)
        return err_no_memory(e, name);
    if (!decompress(head, payload, n, raw, zstd))
        return err_set(e, -EBADMSG, "%s: frame does not decompress, at byte %llu", name, at);
    f->data = raw->data ? raw->data : (const uint8_t *)"";
    f->size = raw->size;
    return 1;
}

int frame_reader_unpack(struct frame_reader *r, const struct buf *stored, struct frame *f,
                        struct err *e)
{
    if (!r->zstd)
        r->zstd = ZSTD_createDCtx();
    if (!r->zstd)
        return err_no_memory(e, r->in->name);
    return frame_unpack(stored, &r->raw, r->zstd, r->in->name, f, e);
}

int frame_next(struct frame_reader *r, struct frame *f, struct err *e)
{
    int rc = frame_read_stored(r, &r->stored, f, e);
    return rc <= 0 ? rc : frame_reader_unpack(r, &r->stored, f, e);
}

int frame_next_of(struct frame_reader *r, uint8_t type, struct frame *f, struct err *e)
{
    int rc;
    while ((rc = read_header(r, &r->stored, f, e)) > 0 && f->type != type) {
        r->next_sequence++;
        rc = input_seek(r->in, f->offset + f->stored_bytes, e);
        if (rc < 0)
            return rc;
    }
    if (rc > 0)
        rc = read_payload(r, &r->stored, f, e);
    return rc <= 0 ? rc : frame_reader_unpack(r, &r->stored, f, e);
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
