// Writes raw traces.
#ifndef HEAPTAPE_TRACE_WRITER_H
#define HEAPTAPE_TRACE_WRITER_H

#include "base/frame.h"
#include "trace/trace.h"

struct trace_writer {
    struct frame_writer frames;
    struct buf payload; // of the frame under work
    struct buf columns[16];
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
// it moves the watermark.
int trace_write_round(struct trace_writer *w, uint64_t watermark, const struct trace_segment *segments, size_t n,
                      struct err *e);

int trace_write_end(struct trace_writer *w, uint64_t end_stamp, struct err *e);

#endif
