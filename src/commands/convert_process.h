// What becomes of one process of a trace that is converted: its workload, on an output of the caller's.
#ifndef HEAPTAPE_COMMANDS_CONVERT_PROCESS_H
#define HEAPTAPE_COMMANDS_CONVERT_PROCESS_H

#include "commands/convert_trace.h"
#include "commands/workload_output.h"
#include "convert/convert.h"

struct convert_process {
    const struct convert_trace_options *options; // borrowed
    const char *trace;                           // its name, for messages; borrowed
    const struct trace_process *process;         // the trace reader's
    struct workload_output to;
    struct workload_summary summary; // valid once it is finished
    struct err *e;                   // where the text of an error goes
};

// Begins the process's workload on `out`, which stays the caller's to close. c->options, c->trace and c->e are set. 0 or
// a negative errno with the text set. *c can be released in either case.
int convert_process_begin(struct convert_process *c, struct output *out, const struct trace_session *session,
                          const struct trace_process *p);
void convert_process_release(struct convert_process *c);

// The functions of a struct convert_sink, whose context is the struct convert_process.
int convert_process_ops(void *context, const struct workload_thread_op *ops, size_t n);
int convert_process_samples(void *context, const struct trace_sample *samples, size_t n);
// Also holds the workload against --strict.
int convert_process_done(void *context, const struct order_counts *counts, const struct workload_sites *sites);

// The process by its pid and command line, as a note that begins with `what`.
void convert_process_tell(const char *what, const struct trace_process *p);

#endif
