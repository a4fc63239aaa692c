// Writes part of a recording as a complete trace: first the live blocks, then the frames that
// follow.
#pragma once

#include "convert/convert.h"
#include "record/flight/snapshot.h"

// Options that make a converter track live blocks without output.
extern const struct convert_options part_follow;

// `choose` callback of part_follow. Chooses all processes.
int part_choose_process(void *context, const struct trace_process *p, struct convert_sink *sink);

// Maximum time from a fork to the child's first call. The PROCESS frame of the child precedes this
// call.
enum { PART_FORK_NS = 500000000 };

struct part_start {
    struct trace_reader *reader; // positioned after the frames that precede the part
    struct converter *converter; // has converted all of these frames
    const char *dumped;          // reason for the dump, or NULL for a segment
    uint64_t segment;            // number of the segment, or 0 for a dump
    enum frame_codec codec;
    int level; // zstd level
};

// Callers may read `start`, `watermark`, snapshot.blocks and snapshot.words. `start` is the stamp
// at which the part begins, and `watermark` the stamp of the last batch. The other members are
// private.
struct part {
    const struct part_start *from;
    struct trace_writer writer;
    struct snapshot snapshot;
    // Number of each process in the part, or RENUMBER_NONE. Indexed by the process number in the
    // recording.
    uint32_t *numbers;
    struct part_process {
        uint32_t shift; // offset of the module numbers
        bool ended;
    } * processes;
    size_t known, numbers_capacity, processes_capacity;
    uint32_t n; // processes in the part
    bool in_batch;
    bool ends; // in a segment: pending events are written too
    uint64_t start, watermark;
    uint64_t passed; // in a segment: events up to this stamp are in the list of live blocks
    uint64_t late; // in a segment: number of events that were published late, before the last batch
    uint64_t end_stamp, clock_hz;
    struct err *e;
};

// Writes everything before the frames. Borrows `from` and `out`. The caller must release *p, even
// on failure. Returns 0, or a negative errno with `e` set.
int part_begin(struct part *p, const struct part_start *from, struct output *out, struct err *e);

// Writes an item. The process numbers in the item are the numbers in the recording. In a segment,
// omits EVENTS and PROCESS_END frames, which the functions below write. In a segment, call
// part_item for a PROCESS frame only after the converter has read the frame.
int part_item(struct part *p, const struct trace_item *item);

// Writes, as a batch, the events of a segment that the converter has emitted since the last call.
int part_put_passed(struct part *p);

// Writes all remaining events of a segment. Call at the end of the recording.
int part_put_rest(struct part *p);

// Ends a process in a segment. All events of the process must have been emitted.
int part_put_end(struct part *p, uint32_t process);

// Ends the processes that have not ended, and then the trace. `continues` is true if another
// segment follows. `unrecorded` may be NULL.
int part_end(struct part *p, const struct trace_unrecorded *unrecorded, bool continues);

void part_release(struct part *p);
