// What is whole in a damaged trace, as a trace of its own.
#ifndef HEAPTAPE_TRACE_SALVAGE_H
#define HEAPTAPE_TRACE_SALVAGE_H

#include "base/fio.h"

#include <stdbool.h>
#include <stdint.h>

struct trace_salvaged {
    uint64_t frames, events;    // kept
    uint64_t lost_frames;       // known by the gaps in the sequence, or that hold wrong records
    uint64_t lost_bytes;        // of the file, in no frame that was kept
    uint32_t unknown_processes; // whose PROCESS frame was lost: nothing but their number is known
    bool session_lost;          // times are then in units of 2^4 ns
    bool end_lost;              // what came behind the last frame is not known
};

// Copies all intact frames of `in`, a regular file at its start, to `out`. 0 when there is one at least, else a negative
// errno. The result has every event that is in an intact frame, and an END that counts these.
int trace_salvage(struct input *in, struct output *out, struct trace_salvaged *result,
                  struct err *e);

#endif
