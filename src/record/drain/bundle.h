// Pieces of a trace, in order: the unit that the drain queues for encoding. A bundle contains the
// segments of at most one batch.
#ifndef HEAPTAPE_RECORD_BUNDLE_H
#define HEAPTAPE_RECORD_BUNDLE_H

#include "base/buf.h"
#include "base/err.h"
#include "trace/names.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum {
    BUNDLE_WORDS = 3 << 15, // 768 KiB: space for a batch and for chunks that fill up while it ends
    BUNDLE_SAMPLES = 256,
};

enum bundle_kind {
    BUNDLE_PROCESS,
    BUNDLE_PROCESS_END,
    BUNDLE_SAMPLE,
    BUNDLE_NAMES,
    BUNDLE_PAGES,
    BUNDLE_SEGMENT,
    BUNDLE_END_BATCH
};

struct bundle_piece {
    enum bundle_kind kind;
    uint64_t events; // events in a segment that are counted
    union {
        struct trace_process process;
        struct trace_segment segment; // its words are stored in the bundle
        uint32_t samples;             // number of the bundle's next samples
        struct {
            struct names *names; // owned
            uint32_t of;         // process number
        };
        struct buf pages; // owned
    };
};

struct bundle {
    struct bundle *next;
    struct bundle_piece *pieces;
    size_t n_pieces, capacity;
    uint64_t *words;
    uint32_t n_words;
    struct trace_sample samples[BUNDLE_SAMPLES];
    uint32_t n_samples;
    bool begins, ends; // the batch begins or ends in this bundle
    bool fast;         // as in trace_writer; also set by the compressors while bundles wait
    // number of the batch, watermark of the batch before, and, if `ends`, watermark of the batch
    uint64_t batch, before, watermark;
    // Set by the compressors.
    bool encoded;
    bool raw;           // not to be compressed: the segments are not encoded in advance
    size_t frame_bytes; // size of the EVENTS frames, which have replaced the words
    int failed;         // 0, or a negative errno
    struct err error;
};

// Returns NULL if out of memory.
struct bundle *bundle_new(void);
void bundle_free(struct bundle *p); // and the bundles after it

// Empties the bundle, for reuse.
void bundle_clear(struct bundle *p);

// Appends a piece. Returns NULL if out of memory.
struct bundle_piece *bundle_add(struct bundle *p, enum bundle_kind kind);

// Encodes the segments as the EVENTS frames of the writer. Returns 0, or a negative errno.
int bundle_encode(const struct bundle *p, struct trace_writer *w, struct err *e);

// Returns the number of events in the segments.
uint64_t bundle_events(const struct bundle *p);

#endif
