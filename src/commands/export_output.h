// Where an export goes: one output, or one a process.
#ifndef HEAPTAPE_COMMANDS_EXPORT_OUTPUT_H
#define HEAPTAPE_COMMANDS_EXPORT_OUTPUT_H

#include "commands/export_file.h"
#include "formats/export.h"

struct export_output {
    struct export x;
    struct output out;
    char *path;   // of the output, when it is made for a process; NULL: options->output as it stands
    char *folder; // of a format that is one, until it is complete; NULL: none
};

// Opens the output of the process with this pid, or of all, and writes the format's beginning. 0 or a negative errno with
// the text set; export_output_close in either case.
int export_output_open(struct export_output *o, const struct export_file_options *options,
                       const struct export_facts *facts, uint32_t pid, struct err *e);

// Finishes it, and adds what was lost to `lost`; without `commit` nothing is left of what was written aside.
int export_output_close(struct export_output *o, const struct export_file_options *options, bool commit,
                        struct export *lost, struct err *e);

// Has the output's name a place for a pid?
bool export_output_is_per_process(const struct export_file_options *options);

#endif
