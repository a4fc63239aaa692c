// `record --segment`: writes a recording as files that each are a trace: all but the first begin with the blocks that are live.
#ifndef HEAPTAPE_FLIGHT_SEGMENTS_H
#define HEAPTAPE_FLIGHT_SEGMENTS_H

#include "base/err.h"
#include "base/frame.h"
#include "record/flight/window.h"

#include <stdbool.h>
#include <stdint.h>

struct segments_settings {
    const char *path; // %n in it is a segment's number, from 1; it is PATH.part until it is whole
    bool force;       // replace files that were there before
    struct flight_window window; // of a segment: one that is over the limit ends with its batch
    enum frame_codec codec;
    int level;           // of zstd
    uint64_t keep;       // segments, the last ones; 0: all
    const char *command; // run by the shell after each segment, with its path as $1; NULL: none
    void (*note)(const char *text);
    void (*published)(void *context); // a segment has got its name; NULL: nothing is called
    void *context;
};

// Are the first names free? 0, or a negative errno with the text set.
int segments_check(const struct segments_settings *s, struct err *e);

// Reads the trace from standard input, to its end. 0 or a negative errno with the text set, -ENODATA where nothing came.
int segments_run(const struct segments_settings *s, struct err *e);

#endif
