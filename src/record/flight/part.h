// Writes a part of a recording as a trace of its own: it begins with the blocks that were live, and goes on with the frames
// that come next.
#ifndef HEAPTAPE_FLIGHT_PART_H
#define HEAPTAPE_FLIGHT_PART_H

#include "convert/convert.h"
#include "record/flight/snapshot.h"

// How a converter follows what is live, and hands nothing on.
extern const struct convert_options part_follow;

struct part_start {
    struct trace_reader *reader; // of the frames that came before
    struct converter *converter; // has been fed all of these
    const char *dumped;          // why the part is written; NULL: it is a segment
    uint64_t segment;            // of that number; 0: it is none
    enum frame_codec codec;      // of the frames
    int level;                   // of zstd
};

// All is the part's own but what may be read: `start` and `watermark`, stamps of where it begins and of its last batch.
struct part {
    const struct part_start *from;
    struct trace_writer writer;
    struct snapshot snapshot;
    uint32_t *numbers; // by number in the recording: in the part, or RENUMBER_NONE
    uint32_t *shifts;  // … how much later the module numbers come in it
    bool *ended;       // …
    size_t known, numbers_capacity, shifts_capacity, ended_capacity;
    uint32_t n; // processes in the part
    bool in_batch;
    uint64_t start, watermark;
    uint64_t end_stamp, clock_hz;
    struct err *e;
};

// Writes what stands before the frames. `from` and `out` are borrowed. *p is to be released in any case. 0 or a negative errno
// with the text set.
int part_begin(struct part *p, const struct part_start *from, struct output *out, struct err *e);

// Writes an item that a reader has read, whose processes have the numbers of the recording.
int part_item(struct part *p, const struct trace_item *item);

// Ends the processes that go on, and the trace. `continues`: another segment follows. `unrecorded` may be NULL.
int part_end(struct part *p, const struct trace_unrecorded *unrecorded, bool continues);

void part_release(struct part *p);

#endif
