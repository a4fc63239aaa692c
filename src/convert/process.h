// Converts one process of a trace into a workload (convert_one), or each process into a file
// (convert_each).
#pragma once

#include "base/progress.h"
#include "convert/convert.h"
#include "convert/peaks.h"
#include "trace/file.h"
#include "workload/writer.h"

// Progress and messages of a conversion.
struct convert_watch {
    // Initialized by the caller, or NULL. Its `total` is set to the size of the trace.
    struct progress *progress;
    void (*note)(const char *text); // prints a line for the user; may be NULL
    void (*warn)(const char *text); // prints a line about lost data, also if quiet; may be NULL
    // Called by convert_one if the trace has several processes. `process` is the converted process,
    // and `n` is the number of processes. `peaks` lists the candidates; the list is empty if there
    // was only one candidate. May be NULL.
    void (*chosen)(const struct trace_reader *r, uint32_t process, size_t n,
                   const struct peaks *peaks);
};

struct convert_settings {
    // Only for convert_one; 0 selects the process with the highest peak of live bytes.
    uint32_t pid;
    uint64_t window_ns;  // 0 means the default of the converter
    bool no_early_frees; // see order_options
    int level;           // zstd level
    bool strict;         // fail if the order of events is ambiguous or events are missing
    bool no_stamps;
    unsigned only_allocator;           // see struct merge
    const struct convert_watch *watch; // may be NULL
};

// Converts one process of a trace that was opened for reading twice. The caller closes `out`. Fills
// *summary from the workload. Returns 0, or a negative errno with *e set.
int convert_one(struct trace_file *t, struct output *out, const struct convert_settings *s,
                struct workload_summary *summary, struct err *e);

// Output of convert_each.
struct convert_files {
    // The pid replaces "%p". If the pattern lacks "%p", the pid is added to the name. NULL creates
    // unnamed files.
    const char *pattern;
    unsigned flags; // for output_open
    // Called after each named file has been completed. May be NULL.
    void (*written)(const char *path, uint64_t bytes, const struct workload_summary *s);
    // Called for each completed unnamed file, and must close `in`. Returns 0, or a negative errno
    // with *e set, which ends the conversion.
    int (*read)(void *context, const struct trace_process *p, struct input *in, struct err *e);
    void *context;
};

// Converts every process that has events, in one pass. If the pattern lacks "%p", the pid is
// inserted before ".htw" or appended. Later images of the same pid (after exec) are named PID-2,
// PID-3, … Files completed before an error are kept. Returns 0, or a negative errno with *e set.
int convert_each(struct trace_file *t, const struct convert_files *files,
                 const struct convert_settings *s, struct err *e);

// Workload of one process, for callers that order the events themselves. Before use, set
// `settings`, `source` and `e`.
struct convert_process {
    const struct convert_settings *settings; // borrowed
    const char *source;                      // input name for messages; borrowed
    const struct trace_process *process;     // borrowed from the trace reader
    const struct trace_session *session;     // borrowed from the trace reader
    struct workload_output to;
    struct workload_summary summary; // valid after convert_process_done
    struct err *e;                   // receives error messages
};

// Begins a process's workload on `out`, which the caller closes. Returns 0, or a negative errno
// with *e set. In either case, *c may be released.
int convert_process_begin(struct convert_process *c, struct output *out,
                          const struct trace_session *session, const struct trace_process *p);
void convert_process_release(struct convert_process *c);

// Callbacks for a convert_sink whose context is the convert_process.
int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n);
int convert_process_simple(void *context, uint32_t thread, const struct workload_simple *ops,
                           size_t n);
// Finishes the workload. With settings->strict, fails if the order is ambiguous or events are
// missing.
int convert_process_done(void *context, const struct order_counts *counts,
                         const struct workload_sites *sites);
