// `record --flight`: keeps the end of a recording and the blocks that were live before it, and
// writes both as a trace on request.
#pragma once

#include "base/err.h"
#include "record/flight/files.h"
#include "record/flight/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLIGHT_BYTES = 256 << 20 }; // default limit

struct flight_settings {
    const char *path; // path of a dump; %n is replaced with its number, from 1
    bool force;       // replace existing files
    struct flight_window window;
    struct flight_triggers triggers;
    uint64_t keep; // number of latest dumps to keep; 0 keeps all dumps
    // Shell command to run after each dump, with the dump's path as $1, or NULL.
    const char *command;
    // Called to report that a dump was written, or why it was not.
    void (*note)(const char *text);
};

// Checks that the path can be written. Returns 0, or a negative errno with `e` set.
int flight_check(const struct flight_settings *s, struct err *e);

// Reads a trace from standard input until it ends. SIGUSR2, which may be blocked, requests a dump.
// If a dump fails, reports the error and continues to record. Returns 0, -ENODATA if the input is
// empty, or another negative errno. Sets `e` on error.
int flight_run(const struct flight_settings *s, struct err *e);
