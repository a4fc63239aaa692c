// The recorder's second half: takes what was drained out of the spools, in order, and makes a trace of it. One thread at
// a time puts, one thread writes, at the same time. What it has not come to yet is the backlog; while that grows, cheaper
// codecs are used, so that the drain never has to wait for compression.
#ifndef HEAPTAPE_RECORD_ENCODER_H
#define HEAPTAPE_RECORD_ENCODER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fio.h"
#include "base/frame.h"
#include "trace/names.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encoder;

struct encoder_settings {
    struct output *out;     // borrowed
    enum frame_codec codec; // the best
    int level;
    struct clock_point started;    // of the recording
    uint64_t max_bytes;            // no batch begins behind this many bytes of output; 0: no limit
    struct trace_session *session; // borrowed; clock_hz is filled in when the frame is written
};

// What it has done so far; valid after encoder_write_all and encoder_finish.
struct encoder_totals {
    uint64_t events, batches;
    uint64_t steps_down; // times it fell behind and changed to a cheaper codec
    uint64_t
        left_out; // events that were put and not written: behind max_bytes, or since writing failed
};

// NULL: the text is set.
struct encoder *encoder_new(const struct encoder_settings *s, struct err *e);

// Whatever is left to do. NULL is allowed.
void encoder_free(struct encoder *n);

// The pieces of a trace, in order. Each returns 0, or a negative errno once writing has failed or memory is short.
// Processes are taken over, also on failure. What was put is handed over with the end of its batch.
int encoder_put_process(struct encoder *n, struct trace_process *p, struct err *e);
int encoder_put_process_end(struct encoder *n, struct trace_process *p, struct err *e);
int encoder_put_samples(struct encoder *n, const struct trace_sample *samples, size_t count,
                        struct err *e);
// Names of code of a process, outside of a batch; taken over, also on failure.
int encoder_put_names(struct encoder *n, uint32_t process, struct names *names, struct err *e);

// A map of pages (trace_pages_put), outside of a batch; taken over, also on failure.
int encoder_put_pages(struct encoder *n, struct buf *payload, struct err *e);

int encoder_begin_batch(struct encoder *n, struct err *e);

// Where words of the next segments are to be put: up to `n` of them. NULL: the text is set.
uint64_t *encoder_room(struct encoder *n, uint32_t words, struct err *e);

// As trace_batch_add, of words that stand where encoder_room said, before any other call. Several segments may be put
// from the same room, in its order.
struct encoder_seen {
    const uint64_t *words; // of the segment, where they stand now
    uint64_t events;       // that count
    bool modules;          // some records are HT_MODULE
};
int encoder_put_segment(struct encoder *n, struct trace_segment *g, struct encoder_seen *seen,
                        struct err *e);
int encoder_end_batch(struct encoder *n, uint64_t watermark, struct err *e);

// Hands over what has been put since the last batch, too.
int encoder_flush(struct encoder *n, struct err *e);

bool encoder_has_work(struct encoder *n);

// Has the backlog reached its bound? Then nothing should be drained, and the programs wait.
bool encoder_is_full(struct encoder *n);

// Has the output reached max_bytes? Batches that are put from then on are left out.
bool encoder_has_ended(struct encoder *n);

// 0, or why writing has failed.
int encoder_check(struct encoder *n, struct err *e);

// Writes the oldest piece of the backlog. False when there is none. encoder_check says how it went.
bool encoder_work(struct encoder *n);

// Writes all that was put.
int encoder_write_all(struct encoder *n, struct err *e);

// After encoder_write_all: the next piece is the first of a trace again.
void encoder_restart(struct encoder *n);

// Writes all that was put, what was missed, and the end.
int encoder_finish(struct encoder *n, const struct trace_unrecorded *missed, uint64_t end_stamp,
                   struct err *e);

struct encoder_totals encoder_totals(const struct encoder *n);

#endif
