// Writes raw traces.
#ifndef HEAPTAPE_TRACE_WRITER_H
#define HEAPTAPE_TRACE_WRITER_H

#include "base/frame.h"
#include "trace/trace.h"

// All but `frames.codec`, `frames.level` (which may be changed between rounds) is the writer's own; `events` may be read.
struct trace_writer {
    struct frame_writer frames;
    struct buf payload; // of the frame under work
    struct buf table;   // its segments
    struct buf words;   // their words, when they are stored as they are
    struct columns *columns;
    uint32_t frame_words; // most words in a frame
    uint64_t round;
    uint64_t events; // counted events written
};

// `out` is borrowed and stays the caller's to close.
void trace_writer_init(struct trace_writer *w, struct output *out, enum frame_codec codec, int level);
void trace_writer_release(struct trace_writer *w);

int trace_write_session(struct trace_writer *w, const struct trace_session *s, struct err *e);
int trace_write_process(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_process_end(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_samples(struct trace_writer *w, const struct trace_sample *samples, size_t n, struct err *e);

// Writes the segments of one round, in as many EVENTS frames as the frame limit asks for. `watermark` is a
// stamp taken before any of the streams was read: each event published before it is in this round or an
// earlier one. Segments of one lane follow each other without a gap. A round without segments is written too:
// it moves the watermark. Fills in each segment's n_records, epoch_end and base_end. Words that are no record (a
// traced program may scribble over its own spool) end the segment: n_words comes back smaller.
int trace_write_round(struct trace_writer *w, uint64_t watermark, struct trace_segment *segments, size_t n,
                      struct err *e);

int trace_write_end(struct trace_writer *w, uint64_t end_stamp, struct err *e);

#endif
