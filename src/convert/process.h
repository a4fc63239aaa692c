// Converts processes of a trace into workloads: one (convert_one), or each into a file of its own (convert_each).
#ifndef HEAPTAPE_CONVERT_PROCESS_H
#define HEAPTAPE_CONVERT_PROCESS_H

#include "base/progress.h"
#include "convert/convert.h"
#include "convert/peaks.h"
#include "trace/file.h"
#include "workload/writer.h"

// What the caller shows while a trace is converted.
struct convert_watch {
    struct progress
        *progress; // initialised; its total is set to the size of the trace. NULL: not wanted
    void (*note)(
        const char *text); // a line for the user: where the trace is cut off. NULL: not wanted
    // Which of `n` processes convert_one has converted; `peaks` lists it and the next ones unless nothing had to be chosen.
    // NULL: not wanted.
    void (*chosen)(const struct trace_reader *r, uint32_t process, size_t n,
                   const struct peaks *peaks);
};

struct convert_settings {
    uint32_t pid;       // of convert_one; 0: the process with the highest peak of live bytes
    uint64_t window_ns; // 0: the converter's own
    int level;          // zstd's
    bool strict;        // fail if the order of events is ambiguous or something is missing
    bool no_stamps;
    const struct convert_watch *watch; // NULL: not wanted
};

// Converts one process. The trace was opened to be read twice; `out` stays the caller's to close. *summary is that of the
// workload. 0 or negative errno with the text set.
int convert_one(struct trace_file *t, struct output *out, const struct convert_settings *s,
                struct workload_summary *summary, struct err *e);

// Files of convert_each.
struct convert_files {
    const char *
        pattern; // "%p" stands for the pid; without it the pid comes before ".htw", or at the end. NULL: the
                 // files have no names, and are gone when `read` has returned
    unsigned flags; // of output_open
    // Called for each that is complete; NULL: not wanted.
    void (*written)(const char *path, uint64_t bytes, const struct workload_summary *s);
    // Called, if there is no pattern, for each that is complete; `in` is closed by it. 0 or a negative errno with the text
    // set, which ends the conversion.
    int (*read)(void *context, const struct trace_process *p, struct input *in, struct err *e);
    void *context;
};

// Converts each process that has events, in one pass. Further images of one pid (exec) are named PID-2, PID-3, … A file
// is complete once its process is; after an error those that were complete stay. 0 or negative errno with the text set.
int convert_each(struct trace_file *t, const struct convert_files *files,
                 const struct convert_settings *s, struct err *e);

// A process on its way to a workload: for those that order its events themselves. Set settings, source and e.
struct convert_process {
    const struct convert_settings *settings; // borrowed
    const char *source;                      // what is converted, for messages; borrowed
    const struct trace_process *process;     // the trace reader's
    struct workload_output to;
    uint64_t clock_hz;
    struct workload_summary summary; // valid once it is finished
    struct err *e;                   // where the text of an error goes
};

// Begins the process's workload on `out`, which stays the caller's to close. 0 or a negative errno with the text set.
// *c can be released in either case.
int convert_process_begin(struct convert_process *c, struct output *out,
                          const struct trace_session *session, const struct trace_process *p);
void convert_process_release(struct convert_process *c);

// The functions of a struct convert_sink, whose context is the struct convert_process.
int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n);
struct workload_output *convert_process_output(void *context);
int convert_process_samples(void *context, const struct trace_sample *samples, size_t n);
// Also checks the workload if the settings are strict.
int convert_process_done(void *context, const struct order_counts *counts,
                         const struct workload_sites *sites);

#endif
