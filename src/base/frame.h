// Frames: checksummed, compressed, self-contained pieces of traces, workloads and aggregates.
// Layout: docs/reference/trace-format.md, "Frames".
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/fio.h"

#include <stdbool.h>
#include <stdint.h>

// First four bytes of each frame, by file type.
#define FRAME_MAGIC_TRACE     0x31725448u // "HTr1"
#define FRAME_MAGIC_WORKLOAD  0x31775448u // "HTw1"
#define FRAME_MAGIC_AGGREGATE 0x31615448u // "HTa1"

enum {
    FRAME_HEADER_BYTES = 40,
    FRAME_MAX_RAW_BYTES = 16 << 20, // limit for writers, and the maximum that a reader allocates
};

// Compression of a payload. Files contain these values.
enum frame_codec { FRAME_CODEC_NONE = 0, FRAME_CODEC_LZ4 = 1, FRAME_CODEC_ZSTD = 2 };

struct frame_writer {
    struct output *out; // borrowed
    uint32_t magic;
    uint16_t version;
    enum frame_codec codec;
    int level;
    uint64_t next_sequence;
    void *zstd; // ZSTD_CCtx
    void *hash; // XXH3_state_t
    // Frames are appended to `stored`, and another writer passes them to frame_write_stored.
    bool packs;
    struct buf stored; // header and compressed payload of the current frame
    struct buf joined; // parts that are compressed together
};

// `level` is a zstd level; other codecs ignore it.
void frame_writer_init(struct frame_writer *w, struct output *out, uint32_t magic, uint16_t version,
                       enum frame_codec codec, int level);
void frame_writer_release(struct frame_writer *w);

// Compresses the payload and writes one frame with a single write(2). If compression does not
// shrink the payload, stores it uncompressed. Requires raw_bytes ≤ FRAME_MAX_RAW_BYTES. Returns 0,
// or a negative errno.
int frame_write(struct frame_writer *w, uint8_t type, const void *raw, size_t raw_bytes,
                struct err *e);

// Compression results of parts of the same type in earlier frames. Initialize to zero.
struct frame_hint {
    uint8_t frames;  // frames since all methods were tried
    uint8_t method;  // enum method of frame_write.c
    uint8_t percent; // compressed size at the last trial, in percent of the part
    // Set by the caller.
    bool fast; // at fast levels, prefer speed at the cost of a few percent in size
    bool far;  // matches are far apart
};

// Part of a payload.
struct frame_part {
    const void *bytes;
    size_t size;
    struct frame_hint *hint; // if NULL, always search for matches
};

// Like frame_write, but for a payload of up to 64 parts. Where possible, does not copy the parts
// into one buffer. Parts with different statistics compress better separately.
int frame_write_parts(struct frame_writer *w, uint8_t type, const struct frame_part *parts,
                      size_t n, struct err *e);

// Writes all frames in `stored` with the next sequence numbers. `stored` holds either the one frame
// that frame_read_stored or frame_next has read, or all frames of a writer with `packs`. Modifies
// `stored`. Returns 0, or a negative errno.
int frame_write_stored(struct frame_writer *w, struct buf *stored, struct err *e);

// A frame read from a file. `data` is decompressed and verified, and borrowed until the next call.
struct frame {
    uint8_t type;
    uint16_t version;
    enum frame_codec codec;
    uint64_t sequence;
    uint64_t offset;     // offset of the header in the file
    size_t stored_bytes; // header and payload
    const uint8_t *data;
    size_t size;
};

struct frame_reader {
    struct input *in; // borrowed
    uint32_t magic;
    uint16_t max_version;
    uint64_t next_sequence;
    void *zstd; // ZSTD_DCtx
    struct buf stored, raw;
};

// The reader rejects frames with another magic or a version above `max_version`.
void frame_reader_init(struct frame_reader *r, struct input *in, uint32_t magic,
                       uint16_t max_version);
void frame_reader_release(struct frame_reader *r);

// Reads the next frame. Returns 1, or 0 at the end of the file. Errors: -ENODATA if the file ends
// inside a frame, -EBADMSG if a checksum, a length or a sequence number is wrong, -EPROTO if the
// file has another type or was written by a newer heaptape, or another negative errno. The message
// contains the offset.
int frame_next(struct frame_reader *r, struct frame *f, struct err *e);

// Reads the next frame of type `type` and skips the payloads of the frames before it. The input
// must be a regular file. Returns the same values as frame_next.
int frame_next_of(struct frame_reader *r, uint8_t type, struct frame *f, struct err *e);

// frame_next in two steps, so that another thread can decompress. frame_read_stored reads the
// header and the payload into `stored`, which the caller owns and reuses. frame_unpack verifies the
// payload and decompresses it into `raw`; `zstd` is the caller's ZSTD_DCtx.
int frame_read_stored(struct frame_reader *r, struct buf *stored, struct frame *f, struct err *e);
int frame_unpack(const struct buf *stored, struct buf *raw, void *zstd, const char *name,
                 struct frame *f, struct err *e);
// Like frame_unpack, but uses the reader's buffers.
int frame_reader_unpack(struct frame_reader *r, const struct buf *stored, struct frame *f,
                        struct err *e);

// Sets the message for a frame that contains something unknown: "FILE: frame at byte OFFSET: WHAT:
// written by a newer heaptape (WRITER)?". `writer` is the version that wrote the file, or NULL if
// the file does not contain it. Returns -EPROTO.
int frame_newer(const char *file, uint64_t offset, const char *writer, const char *what,
                struct err *e);

// Skips to the next intact frame header, for salvage. Returns 1 if frame_next can read the next
// frame, 0 if no header is left, or a negative errno. Adds the skipped bytes to *skipped_bytes.
int frame_resync(struct frame_reader *r, uint64_t *skipped_bytes, struct err *e);

// Returns 1 if the bytes start with this magic, else 0.
int frame_magic_at(const uint8_t *bytes, size_t n, uint32_t magic);
