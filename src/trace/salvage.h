// Salvages the intact frames of a damaged trace into a new trace.
#pragma once

#include "base/fio.h"

#include <stdbool.h>
#include <stdint.h>

struct trace_salvaged {
    uint64_t frames, events; // frames and events kept
    uint64_t lost_frames;    // number of frames missing from the sequence, or with invalid records
    uint64_t lost_bytes;     // number of bytes outside the frames that were kept
    // Number of processes whose PROCESS frame is missing. Only their process numbers are known.
    uint32_t unknown_processes;
    bool session_lost; // the SESSION frame was lost, so timestamps are in units of 2^4 ns
    bool end_lost;     // the END frame was lost, so frames after the last frame may be missing
};

// Copies the intact frames from `in`, a regular file at offset 0, to `out`. Appends an END frame
// with the totals of these frames. Returns 0 if there is an intact frame, else a negative errno:
// -EPROTO if a newer heaptape wrote the file.
int trace_salvage(struct input *in, struct output *out, struct trace_salvaged *result,
                  struct err *e);
