// Imports a foreign file as a trace.
#ifndef HEAPTAPE_COMMANDS_IMPORT_TRACE_H
#define HEAPTAPE_COMMANDS_IMPORT_TRACE_H

#include "base/fio.h"
#include "base/frame.h"
#include "formats/formats.h"

struct import_trace_options {
    const struct format *format;
    bool keep_going;
    enum frame_codec codec;
    int level;
};

// Writes the trace of all that `in` holds to `out`; both stay the caller's to close. Tells on stderr what was skipped.
// *has_times: its stamps are times, else they only number the events. 0 or a negative errno with the text set.
int import_trace(struct input *in, struct output *out, const struct import_trace_options *o, bool *has_times,
                 struct err *e);

struct import;

// A piece that --keep-going skips, and how many it were, as notes.
void import_name_skipped(const char *text);
void import_tell_skipped(const struct import *im);

#endif
