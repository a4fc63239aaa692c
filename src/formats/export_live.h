// `record --format`: the trace goes through a pipe to a writer process, which converts it while the
// program runs.
#pragma once

#include "base/fio.h"
#include "formats/export_file.h"

#include <sys/types.h>

// Format and destination, as set by options and environment variables.
struct export_live_target {
    const struct format *format; // NULL records a trace
    const char *output;          // as for export_file; NULL if no output was specified
    int fd;                      // if above 0, this descriptor is used instead of `output`
    bool append;
    char *made; // storage for a generated `output`; the caller frees it
};

// Completes *t. If no option names an output, reads the output's name from MALLOC_LOG,
// MTRACE_CTL_FILE or TCMALLOC_TRACE_OUTPUT. If none of these variables is set, uses the default
// name of the format. Returns 0 or -ENOMEM.
int export_live_complete(struct export_live_target *t);

// Removes the empty file left by a recording without events.
void export_live_discard(const struct export_live_target *t);

// The writer's result.
struct export_live_end {
    int code; // exit status; negative if the writer has not called _exit
    struct err e;
};

struct export_live {
    pid_t writer;
    struct export_live_end *end; // in memory shared by both processes
};

// Starts the writer and sets *to to the pipe that the writer reads. The writer ignores the usual
// signals and exits when the pipe is closed. The `note` callback of `s->watch` runs in the writer.
// Returns 0, or a negative errno with the message set.
int export_live_start(struct export_live *l, const struct export_settings *s, struct output *to,
                      struct err *e);

// Starts a writer process that calls `write` with the trace on standard input. `write` returns 0,
// or a negative errno with the message set. export_live_finish reports that error, except -ENODATA,
// which means that the trace is empty.
int export_live_start_other(struct export_live *l, int (*write)(const void *context, struct err *e),
                            const void *context, struct output *to, struct err *e);

// Value of `requests` for export_live_finish: wait until the writer exits.
enum { EXPORT_LIVE_PATIENT = -1 };

// Waits until the writer exits. The pipe must be closed. `requests` is the number of signals so far
// that requested the end. During the wait, SIGTERM and SIGHUP count as one more request each, and
// SIGINT counts as two. One second after the second request, the writer is killed, because its
// output may be blocked. Returns 0, or a negative errno with the message set if the writer failed.
int export_live_finish(struct export_live *l, int requests, struct err *e);
