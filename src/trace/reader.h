// Reads raw traces frame by frame, in memory bounded by a frame.
#ifndef HEAPTAPE_TRACE_READER_H
#define HEAPTAPE_TRACE_READER_H

#include "base/frame.h"
#include "trace/trace.h"

#include <stdbool.h>

// What trace_next gives. Pointers are borrowed until the next call.
struct trace_item {
    enum trace_frame type;
    uint64_t offset; // of the frame in the file
    // TRACE_PROCESS, TRACE_PROCESS_END, TRACE_NAMES and TRACE_PAGES: the process, with what is known so far
    struct trace_process *process;
    // TRACE_EVENTS
    uint64_t batch, watermark;
    bool batch_ends; // the last frame of its batch
    const struct trace_segment *segments;
    size_t n_segments;
    // TRACE_SAMPLES
    const struct trace_sample *samples;
    size_t n_samples;
    // TRACE_NAMES, with `process`: a payload for names_get (trace/names.h)
    const uint8_t *names;
    size_t names_bytes;
    // TRACE_PAGES, with `process`: a payload for trace_pages_get (trace/pages.h)
    const uint8_t *pages;
    size_t pages_bytes;
    // TRACE_END
    uint64_t end_stamp, events;
    uint64_t clock_hz; // of the session, measured over all of it; 0: not given
    bool continues;    // another segment follows
};

struct trace_reader {
    struct input *in;
    struct frame_reader frames;
    struct trace_session session; // valid after trace_reader_open
    struct trace_process **processes;
    size_t n_processes, processes_capacity;
    struct trace_unrecorded unrecorded; // what its frame says; before that, and without it, nothing
    bool saw_unrecorded;
    bool saw_end; // an END frame came: the recording was not cut off
    struct columns *columns;
    // NULL, or the reader's user: is the process wanted? A frame of events that has none of a wanted process is given without
    // segments, and its records are not decoded.
    bool (*wants)(void *context, const struct trace_process *p);
    void *wants_context;
    // Storage of the item.
    struct buf words, segments, samples;
};

// Reads the SESSION frame. `in` is borrowed. Errors as frame_next, and -EBADMSG when the first frame is no
// SESSION.
int trace_reader_open(struct trace_reader *r, struct input *in, struct err *e);
void trace_reader_close(struct trace_reader *r);

// The next frame: 1; 0 at the end of the file; negative errno with the text set, as frame_next. A recording
// that was cut off between frames ends with 0 and saw_end false; inside one with -ENODATA: all frames before
// it were given. Frames of unknown type are skipped. Every record of a segment given is whole and of a known
// kind.
int trace_next(struct trace_reader *r, struct trace_item *item, struct err *e);

// The half of trace_next behind the reading of a frame, for salvage: 1 when the item is filled in, 0 when frames of this
// type are skipped, negative errno.
int trace_read_frame(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                     struct err *e);

// A process of which nothing is known but that it has the next number.
int trace_reader_add_process(struct trace_reader *r, struct trace_process **process, struct err *e);

#endif
