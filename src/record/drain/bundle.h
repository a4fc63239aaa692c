// A bundle contains consecutive pieces of a trace that the drain queues for encoding. Its segments
// belong to at most one batch.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "trace/names.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum {
    // 768 KiB: space for a batch and for the chunks that fill up at the end of the batch
    BUNDLE_WORDS = 3 << 15,
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
    uint64_t events; // in a segment: number of events for which event_counts is true
    union {
        struct trace_process process;
        struct trace_segment segment; // the words of the segment are in the bundle
        // Number of samples; they follow the samples of earlier pieces in the bundle.
        uint32_t samples;
        struct {
            struct names names; // owned
            uint32_t of;        // process number
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
    bool fast;         // as in trace_writer; the compressors also set it while bundles wait
    // `batch` is the number of the batch, and `before` the watermark of the previous batch. If
    // `ends` is set, `watermark` is the watermark of this batch.
    uint64_t batch, before, watermark;
    // The compressors set the following members.
    bool encoded;
    bool raw; // the segments are not encoded in advance, because the bundle is not compressed
    size_t frame_bytes; // size of the EVENTS frames, which have replaced the words
    int failed;         // 0, or a negative errno
    struct err error;
};

// Returns NULL if out of memory.
struct bundle *bundle_new(void);
void bundle_free(struct bundle *p); // also frees the bundles after it

// Empties the bundle, for reuse.
void bundle_clear(struct bundle *p);

// Frees the contents of a piece.
void bundle_release_piece(struct bundle_piece *piece);

// Appends a piece. Returns NULL if out of memory.
struct bundle_piece *bundle_add(struct bundle *p, enum bundle_kind kind);

// Encodes the segments as the EVENTS frames of the writer. Returns 0, or a negative errno.
int bundle_encode(const struct bundle *p, struct trace_writer *w, struct err *e);

// Returns the number of events in the segments.
uint64_t bundle_events(const struct bundle *p);
