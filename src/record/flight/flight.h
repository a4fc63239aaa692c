// `record --flight`: keeps the last part of a recording, and what was live before it, and writes both as a trace when it is
// asked to.
#ifndef HEAPTAPE_FLIGHT_FLIGHT_H
#define HEAPTAPE_FLIGHT_FLIGHT_H

#include "base/err.h"
#include "record/flight/watch.h"
#include "record/flight/window.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLIGHT_BYTES = 256 << 20 }; // kept when no limit is set

struct flight_settings {
    const char *path; // of a dump; %n in it is its number, from 1
    bool force;       // replace files that were there before
    struct flight_window window;
    struct flight_triggers triggers;
    uint64_t keep;       // dumps, the last ones; 0: all
    const char *command; // run by the shell after each dump, with its path as $1; NULL: none
    // Says that a dump has been written, or why not.
    void (*note)(const char *text);
};

// Is the path free? 0, or a negative errno with the text set.
int flight_check(const struct flight_settings *s, struct err *e);

// Reads the trace from standard input, to its end; SIGUSR2, which may be blocked before, asks for a dump. 0 or a negative errno
// with the text set, -ENODATA where nothing came. A dump that cannot be written is said, and the recording goes on.
int flight_run(const struct flight_settings *s, struct err *e);

#endif
