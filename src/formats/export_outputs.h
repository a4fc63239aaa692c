// Outputs of an export: one, or one per process if the name contains "%p".
#ifndef HEAPTAPE_FORMATS_EXPORT_OUTPUTS_H
#define HEAPTAPE_FORMATS_EXPORT_OUTPUTS_H

#include "formats/export.h"
#include "formats/export_file.h"

// Initialize with zeros, settings and e. A process is given by its number, which is 0 in a
// workload.
struct export_outputs {
    const struct export_settings *settings;
    struct export_facts facts;  // set before the first output is opened
    struct export_output **all; // by process, or only one; NULL: not opened, or complete
    size_t n, capacity;
    struct export lost; // losses of the completed outputs
    struct err *e;
};

// True if each process has its own output. This is also the case while a program is recorded, if
// the format holds one process and the output is a file: the first process gets the file, other
// processes get files with a number appended to the name.
bool export_outputs_are_many(const struct export_settings *s);

// Opens the output early, to report errors before the recording starts. Leaves *out closed if the
// output cannot be opened yet: a directory, or one file per process. Pass it on as `opened` in the
// settings. Returns 0, or a negative errno with the text set.
int export_outputs_prepare(const struct export_settings *s, struct output *out, struct err *e);

// Returns the export of a process in *x, and opens its output at the first call. Returns 0, or a
// negative errno with the text set.
int export_outputs_get(struct export_outputs *o, uint32_t process, uint32_t pid, struct export **x);

// Changes *path, which malloc allocated, to a name that no file has: *path itself if `first` is 0,
// else *path with a number appended, counted up from `first`. Returns 0, or a negative errno with
// the text set.
int export_outputs_free_path(char **path, unsigned first, struct err *e);

// Writes the buffered data of all outputs.
int export_outputs_flush(struct export_outputs *o);

// Completes the output of a process, or all outputs. Without `commit`, removes outputs that are
// invalid when truncated. Return 0, or a negative errno with the text set.
int export_outputs_end(struct export_outputs *o, uint32_t process);
int export_outputs_close(struct export_outputs *o, bool commit);

#endif
