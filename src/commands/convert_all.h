// Converts every process of a trace, each into a workload of its own, in one pass.
#ifndef HEAPTAPE_COMMANDS_CONVERT_ALL_H
#define HEAPTAPE_COMMANDS_CONVERT_ALL_H

#include "commands/convert_trace.h"

// Writes the workload of each process that has events to a file named by `pattern`: "%p" stands for its pid; without it
// the pid comes before ".htw", or at the end. Further images of one pid (exec) are PID-2, PID-3, … Each file is complete
// once its process is; after an error those that were complete stay. `flags` are those of output_open. `done` is called
// for each, with its name. 0 or negative errno with the text set.
int convert_all(struct trace_file *t, const char *pattern, unsigned flags, const struct convert_trace_options *options,
                void (*done)(const char *path, uint64_t bytes, const struct workload_summary *s), struct err *e);

#endif
