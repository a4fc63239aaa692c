// Writes a trace or workload in another tool's format, for `export` and `record --format`.
#pragma once

#include "base/fio.h"
#include "convert/process.h"
#include "convert/walk.h"
#include "formats/export.h"

struct export_settings {
    const struct format *format;
    // FILE or "-". If the name contains "%p", each process gets its own file, with "%p" replaced by
    // the pid.
    const char *output;
    int fd;      // if above 0, this file descriptor is used instead of `output`
    bool force;  // replace an existing output
    bool append; // append to an existing output
    bool stamps; // write the time of each call
    bool live;   // the trace is still being recorded: write events immediately, in place
    // Output opened by export_outputs_prepare. If NULL, export_file opens the output at the first
    // event.
    struct output *opened;
    // Pid of the only process to export; 0 exports all processes that the format can hold.
    uint32_t pid;
    // Losses are reported through its `note` callback. May be NULL.
    const struct convert_watch *watch;
};

// Exports the trace or workload at `from` ("-": standard input). Returns 0, or a negative errno
// with the message set.
int export_file(const char *from, const struct export_settings *s, struct err *e);

// Set *c to a call of a trace (export_call_from_walk) or to an op of a workload
// (export_call_from_op). `c` borrows the text and the dependencies.
void export_call_from_walk(const struct trace_session *s, const struct walk_call *w,
                           struct export_call *c);
void export_call_from_op(const struct workload_header *h, uint32_t thread,
                         const struct workload_op *op, struct export_call *c);
