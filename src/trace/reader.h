// Reads raw traces frame by frame. Memory use is bounded by the size of a frame.
#pragma once

#include "base/frame.h"
#include "trace/trace.h"

#include <stdbool.h>

// Result of trace_next. Pointers are borrowed until the next call.
struct trace_item {
    enum trace_frame type;
    uint64_t offset; // offset of the frame in the file
    // For TRACE_PROCESS, TRACE_PROCESS_END, TRACE_NAMES and TRACE_PAGES: the process, with all
    // fields read so far.
    struct trace_process *process;
    // For TRACE_EVENTS.
    uint64_t batch, watermark;
    bool batch_ends; // this frame is the last frame of its batch
    const struct trace_segment *segments;
    size_t n_segments;
    // For TRACE_SAMPLES.
    const struct trace_sample *samples;
    size_t n_samples;
    // For TRACE_NAMES, in addition to `process`: payload for names_get (trace/names.h).
    const uint8_t *names;
    size_t names_bytes;
    // For TRACE_PAGES, in addition to `process`: payload for trace_pages_get (trace/pages.h).
    const uint8_t *pages;
    size_t pages_bytes;
    // For TRACE_END.
    uint64_t end_stamp, events;
    uint64_t clock_hz; // clock rate measured over the whole session, or 0
    bool continues;    // another segment follows
};

struct trace_reader {
    struct input *in;
    struct frame_reader frames;
    struct trace_session session; // valid after trace_reader_open
    struct trace_process **processes;
    size_t n_processes, processes_capacity;
    struct trace_unrecorded unrecorded; // empty until the UNRECORDED frame
    bool saw_unrecorded;
    bool saw_end; // the END frame was read, so the recording is complete
    struct columns *columns;
    // Optional filter of processes. EVENTS frames that contain no selected process are not decoded
    // and are returned without segments.
    bool (*wants)(void *context, const struct trace_process *p);
    void *wants_context;
    // Storage of the item.
    struct buf words, segments, samples;
};

// Reads the SESSION frame. `in` is borrowed. Returns 0, or a negative errno like frame_next;
// -EBADMSG if the first frame is not SESSION.
int trace_reader_open(struct trace_reader *r, struct input *in, struct err *e);
void trace_reader_close(struct trace_reader *r);

// Reads the next frame. Returns 1, 0 at the end of the file, or a negative errno with the message
// set, like frame_next. If the recording was cut off between frames, returns 0 at the end, with
// saw_end false. If it was cut off inside a frame, returns -ENODATA after the last complete frame.
// Skips frames of unknown type. Returned segments consist of complete records of known kinds.
// Returns -EPROTO for a frame with an unknown kind.
int trace_next(struct trace_reader *r, struct trace_item *item, struct err *e);

// Decodes a frame, for salvage. Returns 1 and fills in the item, 0 if trace_next skips frames of
// this type, or a negative errno.
int trace_read_frame(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                     struct err *e);

// Sets an error that lists the first processes that were read. Returns -ENOENT.
int trace_reader_no_process(const struct trace_reader *r, uint32_t pid, struct err *e);

// Returns 0 if `pid` is 0 or the process was read, or -ENOENT with the message set.
int trace_reader_find_pid(const struct trace_reader *r, uint32_t pid, struct err *e);

// Adds a process with the next process number. All other fields are unknown.
int trace_reader_add_process(struct trace_reader *r, struct trace_process **process, struct err *e);
