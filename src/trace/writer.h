// Writes raw traces.
#ifndef HEAPTAPE_TRACE_WRITER_H
#define HEAPTAPE_TRACE_WRITER_H

#include "base/frame.h"
#include "trace/names.h"
#include "trace/tail.h"
#include "trace/trace.h"

// All but `frames.codec`, `frames.level` and `fast` (which may be changed between batches) is the writer's own; `events` may be read.
struct trace_writer {
    struct frame_writer frames;
    bool fast;                    // at fast levels time counts more than some percent of size
    struct buf payload;           // of the frame under work
    struct buf table;             // its segments
    uint64_t row_epoch, row_base; // codec state at the end of the last of them
    struct buf words;             // their words, when they are stored as they are …
    const uint64_t *scanned;      // … and more of them, which are not copied
    uint32_t scanned_words;
    struct columns *columns;
    uint32_t frame_words; // most words in a frame
    uint64_t batch;
    uint64_t watermark;         // of the last whole batch
    uint64_t batch_words;       // added to the batch under work
    uint64_t events;            // counted events written
    struct trace_count *counts; // the same by process
    size_t n_counts, counts_capacity;
};

// `out` is borrowed and stays the caller's to close.
void trace_writer_init(struct trace_writer *w, struct output *out, enum frame_codec codec,
                       int level);
void trace_writer_release(struct trace_writer *w);

// The next frame is the first of a trace again. Between batches.
void trace_writer_restart(struct trace_writer *w);

int trace_write_session(struct trace_writer *w, const struct trace_session *s, struct err *e);
int trace_write_process(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_process_end(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_unrecorded(struct trace_writer *w, const struct trace_unrecorded *u, struct err *e);
int trace_write_samples(struct trace_writer *w, const struct trace_sample *samples, size_t n,
                        struct err *e);

// Names of code of a process, in as many frames as they need; outside of a batch.
int trace_write_names(struct trace_writer *w, uint32_t process, const struct names *names,
                      struct err *e);

// The payload of a PAGES frame (trace_pages_put); outside of a batch.
int trace_write_pages(struct trace_writer *w, const uint8_t *at, size_t n, struct err *e);

// A batch is written in as many EVENTS frames as the frame limit asks for; the last of them comes with
// trace_batch_end, also when nothing was added: it moves the watermark.
int trace_batch_begin(struct trace_writer *w, struct err *e);

// Adds a segment. Segments of one stream follow each other without a gap. Fills in n_records, epoch_end and base_end.
// Words that are no record (a traced program may scribble over its own spool) end the segment: n_words comes back
// smaller. The words are the caller's again afterwards.
int trace_batch_add(struct trace_writer *w, struct trace_segment *s, struct err *e);

// As trace_batch_add, of a segment that columns_scan has seen whole: n_records, epoch_end and base_end are right, and
// `events` of its records count. In a frame without compression its words are not copied: they must stay until
// trace_batch_flush or trace_batch_end.
int trace_batch_add_scanned(struct trace_writer *w, const struct trace_segment *s, uint64_t events,
                            struct err *e);

// Writes what is not copied. Does nothing outside a batch.
int trace_batch_flush(struct trace_writer *w, struct err *e);

// `watermark` is a stamp taken before any of the streams was read for the last time: each event published before it
// is in this batch or an earlier one.
int trace_batch_end(struct trace_writer *w, uint64_t watermark, struct err *e);

// The three in one.
int trace_write_batch(struct trace_writer *w, uint64_t watermark, struct trace_segment *segments,
                      size_t n, struct err *e);

// `clock_hz`: as measured over the whole recording; 0 when nothing better is known than what SESSION says.
int trace_write_end(struct trace_writer *w, uint64_t end_stamp, uint64_t clock_hz, struct err *e);
// The same of a segment that another one follows.
int trace_write_segment_end(struct trace_writer *w, uint64_t end_stamp, struct err *e);

#endif
