// Writes raw traces.
#pragma once

#include "base/frame.h"
#include "trace/names.h"
#include "trace/tail.h"
#include "trace/trace.h"

// Callers may change `frames.codec`, `frames.level` and `fast` between batches, and may read
// `events`.
struct trace_writer {
    struct frame_writer frames;
    // At fast levels, prefer speed at the cost of a few percent in size.
    bool fast;
    struct buf payload;           // current frame
    struct buf table;             // segments of the current frame
    uint64_t row_epoch, row_base; // codec state after the last segment of the table
    struct buf words;             // words of the frame, if stored as words
    const uint64_t *scanned;      // words of the frame after `words`, not copied
    uint32_t scanned_words;
    struct columns *columns;
    uint32_t frame_words; // limit per frame
    uint64_t batch;
    uint64_t watermark;         // watermark of the last complete batch
    uint64_t batch_words;       // words in the current batch
    uint64_t events;            // number of counted events that were written
    struct trace_count *counts; // counted events by process
    size_t n_counts, counts_capacity;
};

// Initializes a writer. `out` is borrowed, and the caller closes it.
void trace_writer_init(struct trace_writer *w, struct output *out, enum frame_codec codec,
                       int level);
void trace_writer_release(struct trace_writer *w);

// Starts another trace with the next frame. Call between batches.
void trace_writer_restart(struct trace_writer *w);

int trace_write_session(struct trace_writer *w, const struct trace_session *s, struct err *e);
int trace_write_process(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_process_end(struct trace_writer *w, const struct trace_process *p, struct err *e);
int trace_write_unrecorded(struct trace_writer *w, const struct trace_unrecorded *u, struct err *e);
int trace_write_samples(struct trace_writer *w, const struct trace_sample *samples, size_t n,
                        struct err *e);

// Writes the names of a process's code, in as many frames as necessary. Call outside a batch.
int trace_write_names(struct trace_writer *w, uint32_t process, const struct names *names,
                      struct err *e);

// Writes the payload of trace_pages_put as a PAGES frame. Call outside a batch.
int trace_write_pages(struct trace_writer *w, const uint8_t *at, size_t n, struct err *e);

// Starts a batch, which consists of as many EVENTS frames as their size limit requires.
// trace_batch_end writes the last frame, even if it is empty, to publish the watermark.
int trace_batch_begin(struct trace_writer *w, struct err *e);

// Appends a segment. Segments of the same stream must follow each other without a gap. Sets
// n_records, epoch_end and base_end. A traced program that overwrites its spool can produce invalid
// words: the segment then ends before the first invalid word, and n_words is reduced. The words are
// not used after trace_batch_add returns.
int trace_batch_add(struct trace_writer *w, struct trace_segment *s, struct err *e);

// Like trace_batch_add, but for a segment that columns_scan has accepted completely. n_records,
// epoch_end and base_end must be set. `events` is the number of counted events. Without
// compression, the words are not copied and must stay valid until trace_batch_flush or
// trace_batch_end.
int trace_batch_add_scanned(struct trace_writer *w, const struct trace_segment *s, uint64_t events,
                            struct err *e);

// Writes the segments added so far as a frame, if there are any. Call inside a batch.
int trace_batch_flush(struct trace_writer *w, struct err *e);

// Ends a batch. `watermark` is a stamp taken before each stream was read for the last time. All
// events that were published before the watermark are in this batch or an earlier batch.
int trace_batch_end(struct trace_writer *w, uint64_t watermark, struct err *e);

// Counts events that another writer has encoded.
void trace_writer_count(struct trace_writer *w, uint32_t process, uint64_t events);

// Calls trace_batch_begin, trace_batch_add for each segment, and trace_batch_end.
int trace_write_batch(struct trace_writer *w, uint64_t watermark, struct trace_segment *segments,
                      size_t n, struct err *e);

// Writes the END frame. `clock_hz` is the clock rate measured over the whole recording, or 0.
int trace_write_end(struct trace_writer *w, uint64_t end_stamp, uint64_t clock_hz, struct err *e);
// Writes the END frame of a segment that another segment follows.
int trace_write_segment_end(struct trace_writer *w, uint64_t end_stamp, struct err *e);
