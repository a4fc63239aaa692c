// Describes the data that is missing from a recording: one line for each kind of loss, with the
// next step for the user. `record` prints these lines when it ends; `stat` prints the same lines
// from the trace.
#pragma once

#include "analysis/file_stat.h"
#include "trace/losses.h"

enum {
    // Maximum length of a program's name. Some programs overwrite their arguments with a long text.
    BALANCE_PROGRAM_BYTES = 4 * 72,
    BALANCE_LINE_BYTES = 1024,
};

// Collects the losses of all processes in a trace or aggregate.
void balance_of_file(struct trace_losses *l, const struct file_stat *s);

// Printable strings of a struct trace_fact. The strings come from the traced program. Valid until
// the next call.
struct balance_texts {
    char process[4 * sizeof((struct trace_fact *)0)->program + 32]; // "process 12 (NAME)"
    char text[4 * sizeof((struct trace_fact *)0)->text];
    char others[80]; // ", and 2 other processes", or ""
};
const struct balance_texts *balance_texts(const struct trace_fact *f);

// Returns a line such as "process 12 (sh) was not recorded: …" without a newline, or NULL when out
// of memory. The caller frees the line.
char *balance_missed_line(const struct trace_missed *m);

// Returns a static string about unrecorded processes that the list may lack. Returns NULL if the
// list is complete or its completeness is unknown.
const char *balance_limits(const struct trace_unrecorded *u);

// Passes each line to `print`, but at most `most` lines about unrecorded processes. A recording
// without losses has no lines. If `limits` is set and heaptape may not know all unrecorded
// processes, adds a line that reports this.
struct balance_how {
    void (*print)(const char *line);
    size_t most;
    bool limits;
};
void balance_print(const struct trace_losses *l, const struct trace_unrecorded *u,
                   const struct balance_how *how);

// Writes the printable name of a process's program into `text` and returns `text`. The name is the
// first argument or, if there is none, the executable.
const char *balance_program(const struct trace_process *p, char *text, size_t room);

// Writes the line about a process with memory that no recorded block explains. `record` and the
// findings print this line.
void balance_unexplained(char line[BALANCE_LINE_BYTES], const struct trace_process *p,
                         const struct unexplained_process *u);
