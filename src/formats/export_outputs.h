// Where an export goes: one output, or one per process if the output's name has a place for the pid ("%p").
#ifndef HEAPTAPE_FORMATS_EXPORT_OUTPUTS_H
#define HEAPTAPE_FORMATS_EXPORT_OUTPUTS_H

#include "formats/export.h"
#include "formats/export_file.h"

// All zero but for settings and e is none. Processes go by their number; of a workload it is 0.
struct export_outputs {
    const struct export_settings *settings;
    struct export_facts facts;  // to be set before the first output is opened
    struct export_output **all; // by process, or the only one; NULL: not opened, or complete
    size_t n, capacity;
    struct export lost; // what the complete ones could not hold
    struct err *e;
};

// Is there one per process? Also while a program is recorded, where the format holds one process and the output is a file:
// the first process gets it, the others get files with a number behind the name.
bool export_outputs_are_many(const struct export_settings *s);

// Opens the only output, if there will be one, so that what is wrong with it is known early. *out stays closed when there
// will be none or several. It becomes `opened` of the settings then. 0 or a negative errno with the text set.
int export_outputs_prepare(const struct export_settings *s, struct output *out, struct err *e);

// The export that the calls of this process go into; its output is opened if it is new. 0 or a negative errno with the text
// set.
int export_outputs_get(struct export_outputs *o, uint32_t process, uint32_t pid, struct export **x);

// Makes *path, of malloc, a name that no file has: itself if `first` is 0, or itself with a number behind it, counted up
// from `first`. 0 or a negative errno with the text set.
int export_outputs_free_path(char **path, unsigned first, struct err *e);

// Writes what is buffered.
int export_outputs_flush(struct export_outputs *o);

// Nothing more comes of this process, or of all. Without `commit` nothing is left of outputs that are not valid when cut
// off. 0 or a negative errno with the text set.
int export_outputs_end(struct export_outputs *o, uint32_t process);
int export_outputs_close(struct export_outputs *o, bool commit);

#endif
