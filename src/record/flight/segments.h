// `record --segment`: writes a recording as several complete traces. Each trace except the first
// starts with the live blocks.
#pragma once

#include "base/err.h"
#include "base/frame.h"
#include "record/flight/files.h"

#include <stdbool.h>
#include <stdint.h>

struct segments_settings {
    // Path of the segments. %n is replaced with the segment's number, from 1. Until a segment is
    // complete, its file is named PATH.part.
    const char *path;
    bool force; // replace existing files
    // Limits of a segment. A segment ends with the batch that exceeds a limit.
    struct flight_window window;
    enum frame_codec codec;
    int level;     // zstd level
    uint64_t keep; // number of latest segments to keep; 0 keeps all segments
    // Shell command to run after each segment, with the segment's path as $1, or NULL.
    const char *command;
    void (*note)(const char *text);
    void (*published)(void *context); // called when a segment is complete; may be NULL
    void *context;
};

// Checks that the first segment's path is free. Returns 0, or a negative errno with `e` set.
int segments_check(const struct segments_settings *s, struct err *e);

// Reads a trace from standard input until it ends. Returns 0, -ENODATA if the input is empty, or
// another negative errno. Sets `e` on error.
int segments_run(const struct segments_settings *s, struct err *e);
