// Converts one process of a trace into a workload (convert_one), or each process into a file
// (convert_each).
#ifndef HEAPTAPE_CONVERT_PROCESS_H
#define HEAPTAPE_CONVERT_PROCESS_H

#include "base/progress.h"
#include "convert/convert.h"
#include "convert/peaks.h"
#include "trace/file.h"
#include "workload/writer.h"

// Progress and messages of a conversion.
struct convert_watch {
    struct progress *progress; // initialized; `total` is set to the size of the trace; may be NULL
    void (*note)(const char *text); // a line for the user; may be NULL
    // Called by convert_one if the trace has several processes: `process` of `n` was converted.
    // `peaks` lists the candidates and is empty if only one process could be meant. May be NULL.
    void (*chosen)(const struct trace_reader *r, uint32_t process, size_t n,
                   const struct peaks *peaks);
};

struct convert_settings {
    uint32_t pid;       // for convert_one; 0: the process with the highest peak of live bytes
    uint64_t window_ns; // 0: the default of the converter
    int level;          // of zstd
    bool strict;        // fail if the order is ambiguous or events are missing
    bool no_stamps;
    const struct convert_watch *watch; // may be NULL
};

// Converts one process of a trace that was opened to be read twice. The caller closes `out`.
// *summary is filled in from the workload. Returns 0, or a negative errno with *e set.
int convert_one(struct trace_file *t, struct output *out, const struct convert_settings *s,
                struct workload_summary *summary, struct err *e);

// Output of convert_each.
struct convert_files {
    const char *
        pattern; // "%p" is replaced by the pid, which is otherwise added to the name; NULL: unnamed
    unsigned flags; // for output_open
    // Called after each named file is complete. May be NULL.
    void (*written)(const char *path, uint64_t bytes, const struct workload_summary *s);
    // Called for each complete unnamed file; closes `in`. Returns 0, or a negative errno with *e
    // set, which ends the conversion.
    int (*read)(void *context, const struct trace_process *p, struct input *in, struct err *e);
    void *context;
};

// Converts every process that has events, in one pass. Without "%p" the pid is inserted before
// ".htw" or appended. Later images of the same pid (exec) are named PID-2, PID-3, … Files that were
// complete before an error are kept. Returns 0, or a negative errno with *e set.
int convert_each(struct trace_file *t, const struct convert_files *files,
                 const struct convert_settings *s, struct err *e);

// Workload of one process, for callers that order the events themselves. Set settings, source and
// e.
struct convert_process {
    const struct convert_settings *settings; // borrowed
    const char *source;                      // name of the input for messages; borrowed
    const struct trace_process *process;     // borrowed from the trace reader
    struct workload_output to;
    uint64_t clock_hz;
    struct workload_summary summary; // valid after convert_process_done
    struct err *e;                   // receives the text of an error
};

// Begins the workload of a process on `out`, which the caller closes. Returns 0, or a negative
// errno with *e set. *c can be released in either case.
int convert_process_begin(struct convert_process *c, struct output *out,
                          const struct trace_session *session, const struct trace_process *p);
void convert_process_release(struct convert_process *c);

// Callbacks of a convert_sink whose context is the convert_process.
int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n);
struct workload_output *convert_process_output(void *context);
int convert_process_samples(void *context, const struct trace_sample *samples, size_t n);
// Also checks the workload if the settings are strict.
int convert_process_done(void *context, const struct order_counts *counts,
                         const struct workload_sites *sites);

#endif
