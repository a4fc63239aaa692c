#include "base/frame.h"

#include "base/bytes.h"
#include "base/frame_private.h"

// Makes zstd.h declare ZSTD_c_literalCompressionMode. If the library lacks this parameter, frames
// are larger or slower to write, but valid.
#define ZSTD_STATIC_LINKING_ONLY
#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

enum {
    MAX_PARTS = 64,
    // Parts of at least this size are compressed separately, because their statistics differ.
    OWN_PART_BYTES = 8192,
    FAST_LEVEL = 2, // up to this level, prefer speed
    // Use matches only if they reduce the Huffman-coded size by more than this percentage. If
    // matches are rare, searching for them takes about 2 ns per byte, and Huffman coding takes 0.9
    // ns.
    WORTH_PERCENT = 3,
    FAST_PERCENT = 25,
    RAW_PERCENT = 1, // store the part uncompressed if Huffman coding saves a lower percentage
    FAST_RAW_PERCENT = 16,
    SMALL_LEVEL = 7,  // from this level on, prefer size
    HINT_FRAMES = 64, // try all methods again after this many frames
    // Also try all methods again if the compressed size has changed since the last trial by more
    // than this percentage of the part.
    HINT_PERCENT = 10,
};

// Compression of a part: matches and Huffman coding, Huffman coding only, or none.
enum method { METHOD_PATTERNS, METHOD_PLAIN, METHOD_RAW };

void frame_writer_init(struct frame_writer *w, struct output *out, uint32_t magic, uint16_t version,
                       enum frame_codec codec, int level)
{
    *w = (struct frame_writer){
        .out = out, .magic = magic, .version = version, .codec = codec, .level = level};
}

void frame_writer_release(struct frame_writer *w)
{
    ZSTD_freeCCtx(w->zstd);
    XXH3_freeState(w->hash);
    buf_release(&w->stored);
    buf_release(&w->joined);
    *w = (struct frame_writer){0};
}

// Joins the parts into one. Returns false if out of memory.
static bool join_parts(struct frame_writer *w, const struct frame_part *parts, size_t n,
                       struct frame_part *all)
{
    *all = *parts;
    if (n == 1)
        return true;
    w->joined.size = 0;
    for (size_t i = 0; i < n; i++) {
        if (buf_put(&w->joined, parts[i].bytes, parts[i].size) < 0)
            return false;
    }
    *all = (struct frame_part){.bytes = w->joined.data, .size = w->joined.size};
    return true;
}

// Sets the compression parameters. With `near`, fast levels may miss distant matches.
static void set_parameters(ZSTD_CCtx *z, int level, bool near, enum method method)
{
    ZSTD_CCtx_reset(z, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
    // Use a hash table that fits in the L1 cache, although this makes the output 2 % larger.
    if (level <= FAST_LEVEL && near && method == METHOD_PATTERNS)
        ZSTD_CCtx_setParameter(z, ZSTD_c_hashLog, 11);
    // Large negative levels skip most of the match search.
    ZSTD_paramSwitch_e literals = method == METHOD_PLAIN ? ZSTD_ps_enable : ZSTD_ps_disable;
    if (method != METHOD_PATTERNS &&
        !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_literalCompressionMode, literals)))
        ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_minCLevel());
}

// Writes the part as a zstd frame without compression. If all bytes are equal, writes one byte per
// block (RFC 8878, 3.1.1). Returns the size.
static size_t store_part(const struct frame_part *part, bool constant, uint8_t *to)
{
    const uint8_t *bytes = part->bytes;
    uint8_t *at = to;
    put_u32(at, ZSTD_MAGICNUMBER);
    at[4] = 2 << 6 | 1 << 5; // the content size has 4 bytes and is also the window size
    put_u32(at + 5, (uint32_t)part->size);
    at += 9;
    for (size_t from = 0, n; from < part->size; from += n) {
        n = part->size - from < ZSTD_BLOCKSIZE_MAX ? part->size - from : ZSTD_BLOCKSIZE_MAX;
        uint32_t last = from + n == part->size,
                 head = last | (uint32_t)constant << 1 | (uint32_t)n << 3;
        put_u32(at, head); // a block header has 3 bytes; the content overwrites the fourth
        memcpy(at + 3, bytes + from, constant ? 1 : n);
        at += 3 + (constant ? 1 : n);
    }
    return (size_t)(at - to);
}

static size_t compress_part(struct frame_writer *w, enum method method,
                            const struct frame_part *part, uint8_t *to, size_t room)
{
    if (method == METHOD_RAW)
        return store_part(part, false, to);
    set_parameters(w->zstd, w->level, !part->hint->far, method);
    return ZSTD_compress2(w->zstd, to, room, part->bytes, part->size);
}

static enum method choose_method(const struct frame_writer *w, const struct frame_part *part,
                                 size_t plain, size_t patterns)
{
    bool fast = part->hint->fast && w->level <= FAST_LEVEL;
    size_t worth = fast ? FAST_PERCENT : w->level < SMALL_LEVEL ? WORTH_PERCENT : 0;
    if (ZSTD_isError(plain) || (!ZSTD_isError(patterns) && patterns + plain / 100 * worth < plain))
        return METHOD_PATTERNS;
    size_t raw = fast ? FAST_RAW_PERCENT : w->level < SMALL_LEVEL ? RAW_PERCENT : 0;
    return plain > part->size / 100 * (100 - raw) ? METHOD_RAW : METHOD_PLAIN;
}

static uint8_t percent_of(size_t bytes, const struct frame_part *part)
{
    size_t percent = bytes / (part->size / 100);
    return (uint8_t)(percent < UINT8_MAX ? percent : UINT8_MAX);
}

// Compresses the part with the method that was best in earlier frames. After HINT_FRAMES frames, or
// when the compression ratio changes, tries all methods again.
static size_t compress_by_hint(struct frame_writer *w, const struct frame_part *part, uint8_t *to,
                               size_t room)
{
    struct frame_hint *h = part->hint;
    const uint8_t *bytes = part->bytes;
    if (memcmp(bytes, bytes + 1, part->size - 1) == 0)
        return store_part(part, true, to);
    bool trial = h->frames == 0;
    h->frames = (uint8_t)((h->frames + 1) % HINT_FRAMES);
    if (trial) {
        // Try the previous method last, because its result is usually the one to keep.
        enum method last = h->method == METHOD_PLAIN ? METHOD_PLAIN : METHOD_PATTERNS;
        size_t sizes[METHOD_RAW];
        sizes[!last] = compress_part(w, !last, part, to, room);
        sizes[last] = compress_part(w, last, part, to, room);
        h->method = (uint8_t)choose_method(w, part, sizes[METHOD_PLAIN], sizes[METHOD_PATTERNS]);
        h->percent = percent_of(sizes[h->method != METHOD_PATTERNS], part);
        if (h->method == last)
            return sizes[last];
    }
    size_t got = compress_part(w, h->method, part, to, room);
    if (!trial && h->method != METHOD_RAW && abs(percent_of(got, part) - h->percent) > HINT_PERCENT)
        h->frames = 0;
    return got;
}

// Compresses the parts as one zstd frame. Returns the size, or 0 if out of memory.
static size_t compress_joined(struct frame_writer *w, const struct frame_part *parts, size_t n,
                              uint8_t *to, size_t room, bool many)
{
    struct frame_part all;
    if (!join_parts(w, parts, n, &all))
        return 0;
    set_parameters(w->zstd, w->level, many, METHOD_PATTERNS);
    return ZSTD_compress2(w->zstd, to, room, all.bytes, all.size);
}

// Compresses the parts as consecutive zstd frames, which decompressors read as one. Returns the
// size, or 0 on failure.
static size_t compress_zstd(struct frame_writer *w, const struct frame_part *parts, size_t n,
                            uint8_t *to, size_t room)
{
    size_t total = 0;
    if (!w->zstd)
        w->zstd = ZSTD_createCCtx();
    for (size_t i = 0; w->zstd && i < n;) {
        size_t run = 1, bytes = parts[i].size;
        while (bytes < OWN_PART_BYTES && i + run < n && parts[i + run].size < OWN_PART_BYTES)
            bytes += parts[i + run++].size;
        size_t got = bytes >= OWN_PART_BYTES && run == 1 && parts[i].hint
                         ? compress_by_hint(w, parts + i, to + total, room - total)
                         : compress_joined(w, parts + i, run, to + total, room - total, n > 1);
        if (got == 0 || ZSTD_isError(got))
            return 0;
        total += got;
        i += run;
    }
    return total;
}

static size_t compress_bound(const struct frame_writer *w, const struct frame_part *parts, size_t n,
                             size_t raw_bytes)
{
    size_t room = w->codec == FRAME_CODEC_LZ4 ? (size_t)LZ4_compressBound((int)raw_bytes) : 0;
    for (size_t i = 0; w->codec == FRAME_CODEC_ZSTD && i < n; i++)
        room += ZSTD_compressBound(parts[i].size);
    return room;
}

// Compresses the payload. Returns the compressed size, or 0 if compression fails or does not shrink
// the payload.
static size_t compress_payload(struct frame_writer *w, const struct frame_part *parts, size_t n,
                               size_t raw_bytes, uint8_t *to, size_t room)
{
    size_t got = 0;
    if (w->codec == FRAME_CODEC_LZ4) {
        struct frame_part all;
        if (join_parts(w, parts, n, &all) && all.bytes)
            got = (size_t)LZ4_compress_default(all.bytes, (char *)to, (int)raw_bytes, (int)room);
    } else if (w->codec == FRAME_CODEC_ZSTD) {
        got = compress_zstd(w, parts, n, to, room);
    }
    return got < raw_bytes ? got : 0;
}

// Hashes the parts. Returns 0 or -ENOMEM.
static int hash_parts(struct frame_writer *w, const struct iovec *v, size_t n, uint64_t *hash)
{
    if (!w->hash)
        w->hash = XXH3_createState();
    if (!w->hash)
        return -ENOMEM;
    XXH3_64bits_reset(w->hash);
    for (size_t i = 0; i < n; i++)
        XXH3_64bits_update(w->hash, v[i].iov_base, v[i].iov_len);
    *hash = XXH3_64bits_digest(w->hash);
    return 0;
}

// Appends a frame to `stored`. The header, and the payload if it is compressed, are already in the
// spare capacity after the end of `stored`.
static int pack_frame(struct frame_writer *w, const struct iovec *v, size_t n, bool compressed,
                      struct err *e)
{
    size_t before = w->stored.size;
    w->stored.size += v[0].iov_len + (compressed ? v[1].iov_len : 0);
    for (size_t i = 1; !compressed && i < n; i++) {
        if (buf_put(&w->stored, v[i].iov_base, v[i].iov_len) < 0) {
            w->stored.size = before;
            return err_no_memory(e, w->out->name);
        }
    }
    return 0;
}

int frame_write_parts(struct frame_writer *w, uint8_t type, const struct frame_part *parts,
                      size_t n, struct err *e)
{
    size_t raw_bytes = 0;
    for (size_t i = 0; i < n; i++)
        raw_bytes += parts[i].size;
    if (raw_bytes > FRAME_MAX_RAW_BYTES || n > MAX_PARTS)
        return err_set(e, -E2BIG, "%s: a frame of %zu bytes exceeds the limit of the format",
                       w->out->name, raw_bytes);
    size_t room = compress_bound(w, parts, n, raw_bytes);
    if (!w->packs)
        w->stored.size = 0;
    if (buf_reserve(&w->stored, FRAME_HEADER_BYTES + room) < 0)
        return err_no_memory(e, w->out->name);
    uint8_t *head = w->stored.data + w->stored.size, *payload = head + FRAME_HEADER_BYTES;
    size_t stored = compress_payload(w, parts, n, raw_bytes, payload, room), n_out = 1;
    struct iovec out[1 + MAX_PARTS] = {{head, FRAME_HEADER_BYTES}, {payload, stored}};
    for (size_t i = 0; !stored && i < n; i++)
        out[n_out++] = (struct iovec){(void *)(uintptr_t)parts[i].bytes, parts[i].size};
    n_out += stored != 0;
    uint64_t hash;
    if (hash_parts(w, out + 1, n_out - 1, &hash) < 0)
        return err_no_memory(e, w->out->name);
    put_u32(head + AT_MAGIC, w->magic);
    head[AT_TYPE] = type;
    head[AT_CODEC] = (uint8_t)(stored ? w->codec : FRAME_CODEC_NONE);
    put_u16(head + AT_VERSION, w->version);
    put_u32(head + AT_STORED, (uint32_t)(stored ? stored : raw_bytes));
    put_u32(head + AT_RAW, (uint32_t)raw_bytes);
    put_u64(head + AT_SEQUENCE, w->next_sequence);
    put_u64(head + AT_PAYLOAD_HASH, hash);
    put_u64(head + AT_HEADER_HASH, XXH3_64bits(head, AT_HEADER_HASH));
    int rc = w->packs ? pack_frame(w, out, n_out, stored != 0, e)
                      : output_write_parts(w->out, out, n_out, e);
    if (rc == 0)
        w->next_sequence++;
    return rc;
}

int frame_write_stored(struct frame_writer *w, struct buf *stored, struct err *e)
{
    uint64_t sequence = w->next_sequence;
    for (size_t at = 0; at < stored->size;) {
        uint8_t *head = stored->data + at;
        put_u64(head + AT_SEQUENCE, sequence++);
        put_u64(head + AT_HEADER_HASH, XXH3_64bits(head, AT_HEADER_HASH));
        at += FRAME_HEADER_BYTES + get_u32(head + AT_STORED);
    }
    int rc = output_write(w->out, stored->data, stored->size, e);
    if (rc == 0)
        w->next_sequence = sequence;
    return rc;
}

int frame_write(struct frame_writer *w, uint8_t type, const void *raw, size_t raw_bytes,
                struct err *e)
{
    return frame_write_parts(w, type, &(struct frame_part){.bytes = raw, .size = raw_bytes}, 1, e);
}
