// Outputs of an export: a single output, or one output per process if the name contains "%p".
#pragma once

#include "base/map.h"
#include "formats/export.h"
#include "formats/export_file.h"

// Set `settings` and `e`; the other members start as zero. Processes are identified by number,
// which is 0 in a workload.
struct export_outputs {
    const struct export_settings *settings;
    struct export_facts facts; // must be set before the first output is opened
    // Indexed by process, or a single output; an entry is NULL before it is opened and after it is
    // complete.
    struct export_output **all;
    size_t n, capacity;
    struct map images;  // by pid + 1: number of the pid's next file, because exec keeps the pid
    struct export lost; // losses of the outputs completed so far
    struct err *e;
};

// Returns true if each process has its own output. During a recording, each process also has its
// own output if the format holds a single process and the output is a file. The first process then
// gets this file, and the other processes get files with a number appended to the name.
bool export_outputs_are_many(const struct export_settings *s);

// Opens the output early, so that errors are reported before the recording starts. If the output is
// a directory, or if there is one file per process, leaves *out closed, and the output is opened
// later. Store `out` in `opened` of the settings. Returns 0, or a negative errno with the message
// set.
int export_outputs_prepare(const struct export_settings *s, struct output *out, struct err *e);

// Sets *x to a process's export, opening its output on the first call. Returns 0, or a negative
// errno with the message set.
int export_outputs_get(struct export_outputs *o, uint32_t process, uint32_t pid, struct export **x);

// Replaces *path, which was allocated with malloc, with the name of a file that does not exist. If
// `first` is 0, tries *path itself first. Otherwise, appends a number to *path, counting up from
// `first`. Returns 0, or a negative errno with the message set.
int export_outputs_free_path(char **path, unsigned first, struct err *e);

// Writes the buffered data of all outputs.
int export_outputs_flush(struct export_outputs *o);

// Complete a process's output, or all outputs. Without `commit`, outputs that would be invalid when
// truncated are removed. Return 0, or a negative errno with the message set.
int export_outputs_end(struct export_outputs *o, uint32_t process);
int export_outputs_close(struct export_outputs *o, bool commit);
