// Salvages the intact frames of a damaged trace into a new trace.
#ifndef HEAPTAPE_TRACE_SALVAGE_H
#define HEAPTAPE_TRACE_SALVAGE_H

#include "base/fio.h"

#include <stdbool.h>
#include <stdint.h>

struct trace_salvaged {
    uint64_t frames, events; // frames and events kept
    uint64_t lost_frames;    // frames missing from the sequence, or with invalid records
    uint64_t lost_bytes;     // bytes that are not in a frame that was kept
    // Processes without a PROCESS frame, of which only the number is known.
    uint32_t unknown_processes;
    bool session_lost; // the SESSION frame was lost: timestamps are in units of 2^4 ns
    bool end_lost;     // the END frame was lost: frames after the last one may be missing
};

// Copies the intact frames from `in`, a regular file at offset 0, to `out`, and appends an END
// frame with their totals. Returns 0 if there is an intact frame, else a negative errno; -EPROTO if
// a newer heaptape wrote the file.
int trace_salvage(struct input *in, struct output *out, struct trace_salvaged *result,
                  struct err *e);

#endif
