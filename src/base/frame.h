// Frames: the self-contained, checksummed, compressed pieces that traces and workloads are made of.
// Layout: docs/reference/trace-format.md, "Frames".
#ifndef HEAPTAPE_BASE_FRAME_H
#define HEAPTAPE_BASE_FRAME_H

#include "base/buf.h"
#include "base/err.h"
#include "base/fio.h"

#include <stdbool.h>
#include <stdint.h>

// First four bytes of every frame: say the file's kind.
#define FRAME_MAGIC_TRACE     0x31725448u // "HTr1"
#define FRAME_MAGIC_WORKLOAD  0x31775448u // "HTw1"
#define FRAME_MAGIC_AGGREGATE 0x31615448u // "HTa1"

enum {
    FRAME_HEADER_BYTES = 40,
    FRAME_MAX_RAW_BYTES = 16 << 20, // what a reader must be ready to allocate, and the most it does
};

// How a payload is stored. Wire values.
enum frame_codec { FRAME_CODEC_NONE = 0, FRAME_CODEC_LZ4 = 1, FRAME_CODEC_ZSTD = 2 };

struct frame_writer {
    struct output *out; // borrowed
    uint32_t magic;
    uint16_t version;
    enum frame_codec codec;
    int level;
    uint64_t next_sequence;
    void *zstd;        // ZSTD_CCtx
    void *hash;        // XXH3_state_t
    struct buf stored; // header and compressed payload of the frame under work
    struct buf joined; // parts of it that are compressed together
};

// `level` is zstd's; other codecs ignore it.
void frame_writer_init(struct frame_writer *w, struct output *out, uint32_t magic, uint16_t version,
                       enum frame_codec codec, int level);
void frame_writer_release(struct frame_writer *w);

// Compresses and writes one frame with a single write(2). A payload that does not shrink is stored as it is.
// `raw_bytes` ≤ FRAME_MAX_RAW_BYTES.
int frame_write(struct frame_writer *w, uint8_t type, const void *raw, size_t raw_bytes,
                struct err *e);

// What is known of the parts of one sort, from frame to frame. All zero knows nothing yet.
struct frame_hint {
    uint8_t frames; // since the methods were tried
    uint8_t method; // frame_write.c's
    // The caller's.
    bool fast; // at fast levels time counts more than some percent of size
    bool far;  // what repeats does so far apart
};

// A piece of a payload.
struct frame_part {
    const void *bytes;
    size_t size;
    struct frame_hint *hint; // NULL: patterns are looked for
};

// As frame_write, of up to 64 parts in a row, which are not copied together when that can be helped. Parts of unlike
// statistics compress better apart.
int frame_write_parts(struct frame_writer *w, uint8_t type, const struct frame_part *parts,
                      size_t n, struct err *e);

// Writes a frame as frame_read_stored, or frame_next in the reader's `stored`, has read it, as the next one. What is in `stored` is changed.
int frame_write_stored(struct frame_writer *w, struct buf *stored, struct err *e);

// One frame as read. `data` is decompressed and verified, borrowed until the next call.
struct frame {
    uint8_t type;
    uint16_t version;
    enum frame_codec codec;
    uint64_t sequence;
    uint64_t offset;     // of its header in the file
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

// Frames of another magic or of a version above `max_version` are refused.
void frame_reader_init(struct frame_reader *r, struct input *in, uint32_t magic,
                       uint16_t max_version);
void frame_reader_release(struct frame_reader *r);

// The next frame: 1; 0 at a clean end; -ENODATA when the file ends inside a frame (cut off); -EBADMSG when a
// checksum, a length or the order of frames is wrong (corrupt); -EPROTO when it is no such file or of a later
// version; other negative errno. The text names the offset.
int frame_next(struct frame_reader *r, struct frame *f, struct err *e);

// The next frame of this type; the payloads of those between are passed over unread. The input is a regular file.
int frame_next_of(struct frame_reader *r, uint8_t type, struct frame *f, struct err *e);

// As frame_next in two steps, so that a pipeline can unpack in another thread: read gives header and stored
// payload in `stored` (owned by the caller, reused), unpack verifies and decompresses into `raw`; `zstd` is
// the caller's ZSTD_DCtx.
int frame_read_stored(struct frame_reader *r, struct buf *stored, struct frame *f, struct err *e);
int frame_unpack(const struct buf *stored, struct buf *raw, void *zstd, const char *name,
                 struct frame *f, struct err *e);
// The second step in the reader's own storage.
int frame_reader_unpack(struct frame_reader *r, const struct buf *stored, struct frame *f,
                        struct err *e);

// Describes a frame at `offset` that holds something this version does not know, as
// "FILE: frame at byte OFFSET: WHAT: written by a newer heaptape (WRITER)?". `writer` is the version that wrote the file,
// NULL if the file does not name it. Returns -EPROTO.
int frame_newer(const char *file, uint64_t offset, const char *writer, const char *what,
                struct err *e);

// Skips forward to the next intact frame header, for salvage: 1 found (frame_next reads it), 0 none, negative
// errno. *skipped_bytes counts what was passed over.
int frame_resync(struct frame_reader *r, uint64_t *skipped_bytes, struct err *e);

// Does this look like a file of frames of `magic`? For telling kinds of files apart by their first bytes.
int frame_magic_at(const uint8_t *bytes, size_t n, uint32_t magic);

#endif
