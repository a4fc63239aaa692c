// Compresses drained records and writes the trace. One thread adds pieces and another thread writes
// them. Helper threads compress (record/drain/compressors.h).
#pragma once

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
    struct output *out; // borrowed
    enum frame_codec codec;
    int level;
    struct clock_point started;
    uint64_t max_bytes;            // no batch starts above this output size; 0 if there is no limit
    struct trace_session *session; // borrowed; clock_hz is set when the frame is written
};

// Valid after encoder_write_all and encoder_finish.
struct encoder_totals {
    uint64_t events, batches;
    uint64_t left_out; // number of events added but not written
};

// Returns NULL and sets `e` on failure.
struct encoder *encoder_new(const struct encoder_settings *s, struct err *e);

// Frees the encoder and its backlog. `n` may be NULL.
void encoder_free(struct encoder *n);

// Adds a piece of the trace, like the other encoder_put functions. Pieces stay in order, and are
// written when their bundle is full or flushed. Takes ownership of `p`, even on failure. Returns 0,
// or a negative errno if out of memory or after a write error.
int encoder_put_process(struct encoder *n, struct trace_process *p, struct err *e);
int encoder_put_process_end(struct encoder *n, struct trace_process *p, struct err *e);
int encoder_put_samples(struct encoder *n, const struct trace_sample *samples, size_t count,
                        struct err *e);
// Adds names of code. Call outside a batch. Takes ownership of `names`, even on failure.
int encoder_put_names(struct encoder *n, uint32_t process, struct names *names, struct err *e);

// Adds a page map (trace_pages_put). Call outside a batch. Takes ownership of `payload`, even on
// failure.
int encoder_put_pages(struct encoder *n, struct buf *payload, struct err *e);

int encoder_begin_batch(struct encoder *n, struct err *e);

// Returns a buffer for up to `words` words of the next segments, or NULL with `e` set.
uint64_t *encoder_room(struct encoder *n, uint32_t words, struct err *e);

// encoder_put_segment adds a segment like trace_batch_add. The words must be in the buffer that
// encoder_room returned last. Several segments may share that buffer, in order.
struct encoder_seen {
    const uint64_t *words; // where the words are after the call
    uint64_t events;       // number of events for which event_counts is true
    bool modules;          // the segment contains HT_MODULE records
};
int encoder_put_segment(struct encoder *n, struct trace_segment *g, struct encoder_seen *seen,
                        struct err *e);
int encoder_end_batch(struct encoder *n, uint64_t watermark, struct err *e);

// Queues the open bundle for the writer.
int encoder_flush(struct encoder *n, struct err *e);

bool encoder_has_work(struct encoder *n);

// Returns true if the backlog is full. The caller must then stop draining, so that the programs
// wait.
bool encoder_is_full(struct encoder *n);

// Returns true if the output has reached max_bytes. Later batches are dropped.
bool encoder_has_ended(struct encoder *n);

// Returns 0, or the errno of the first write error.
int encoder_check(struct encoder *n, struct err *e);

// Encodes a bundle, or waits briefly for a helper. Writes the oldest bundle if it is encoded.
// Returns false if the backlog is empty. See encoder_check for errors.
bool encoder_work(struct encoder *n);

// Calls compressors_help.
bool encoder_help(struct encoder *n);

int encoder_write_all(struct encoder *n, struct err *e);

// Starts a new trace. Call after encoder_write_all.
void encoder_restart(struct encoder *n);

// Writes everything, then the UNRECORDED and END frames.
int encoder_finish(struct encoder *n, const struct trace_unrecorded *missed, uint64_t end_stamp,
                   struct err *e);

struct encoder_totals encoder_totals(const struct encoder *n);
