// How a command shows what a library works on: a line of progress and notes, on stderr.
#ifndef HEAPTAPE_PRINT_WATCH_H
#define HEAPTAPE_PRINT_WATCH_H

#include "convert/process.h"

// Progress of `what` ("import"), and notes. Static; the progress is that of the last call.
const struct convert_watch *watch_begin(const char *what);
const struct convert_watch *watch_conversion(void);

// Notes without progress.
const struct convert_watch *watch_notes(void);

// The process's program, for a message: as its command line names it, printable. Returns `text`.
const char *watch_program(const struct trace_process *p, char *text, size_t room);

#endif
