// The file format of `record --aggregate` (docs/reference/aggregate-format.md). It consists of
// frames (base/frame.h).
#pragma once

#include "base/frame.h"
#include "record/aggregate/counts.h"
#include "trace/trace.h"
#include "workload/sites.h"

enum { AGGREGATE_VERSION = 1 };

// Frame types. Wire values.
enum aggregate_frame {
    AGGREGATE_SESSION = 1, // fields, as in a trace; always the first frame
    AGGREGATE_PROCESS = 2, // fields, as in a trace; the following frames belong to this process
    AGGREGATE_SUMMARY = 3, // fields, as in a workload
    AGGREGATE_PERIODS = 4, // varints: live bytes at the end of each period
    AGGREGATE_TOTALS = 5,  // totals of call sites
    AGGREGATE_SITES = 6,   // as in a workload
    AGGREGATE_NAMES = 7,   // as in a workload
    // A varint with the number of other processes, then fields with sums over these processes.
    AGGREGATE_OTHERS = 8,
    AGGREGATE_UNRECORDED = 9, // fields, as in a trace
    AGGREGATE_END = 10,       // fields; always the last frame
};

// Tags of the fields of END. Wire values.
enum aggregate_field {
    AGGREGATE_F_STAMP = 1, // stamp of the last counted event
    AGGREGATE_F_STATE = 2, // enum aggregate_state
};

// State of the recording when the file was written. These are wire values.
enum aggregate_state {
    AGGREGATE_UNDER_WAY = 0,
    AGGREGATE_ENDED = 1,
    AGGREGATE_CUT_OFF = 2, // the recorder ended before the recording
};

struct aggregate_end {
    uint64_t stamp;
    enum aggregate_state state;
};

// The contents of a process's frames. `facts` is the payload of its PROCESS frame.
struct aggregate_process {
    const struct buf *facts;
    const struct workload_summary *summary;
    const struct aggregate_counts *counts;
    const struct workload_sites *sites;
};

// Append one or more payloads to a buffer, each after its frame type and length. Return 0, or
// -ENOMEM.
int aggregate_put_process(struct buf *b, const struct aggregate_process *p);
int aggregate_put(struct buf *b, enum aggregate_frame type, const void *payload, size_t n);
int aggregate_put_end(struct buf *b, const struct aggregate_end *end);

// Writes the buffered payloads as frames. Returns 0, or a negative errno with `e` set.
int aggregate_write_frames(struct frame_writer *w, const struct buf *b, struct err *e);

// Decode a payload. aggregate_get_totals appends the sites and levels to `to`. Before the first
// payload, `to` must be empty except for sample_bytes. Return 0, -EBADMSG, or -ENOMEM.
int aggregate_get_periods(const uint8_t *at, size_t n, struct by_site *to,
                          uint64_t levels[BY_SITE_BINS]);
int aggregate_get_totals(const uint8_t *at, size_t n, struct by_site *to);
int aggregate_get_others(const uint8_t *at, size_t n, uint64_t *processes,
                         struct workload_summary *sum);
int aggregate_get_end(const uint8_t *at, size_t n, struct aggregate_end *end);
