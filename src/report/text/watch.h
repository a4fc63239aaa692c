// Progress and notes of libraries on standard error.
#ifndef HEAPTAPE_TEXT_WATCH_H
#define HEAPTAPE_TEXT_WATCH_H

#include "convert/process.h"

// Starts the progress line for `what`, for example "import". Returns a static watch with this line
// and with notes.
const struct convert_watch *watch_begin(const char *what);
const struct convert_watch *watch_conversion(void);

// Returns a static watch with notes and without progress.
const struct convert_watch *watch_notes(void);

// Writes the printable name of a process's program into `text` and returns `text`. The name is the
// first argument or, if there is none, the executable.
const char *watch_program(const struct trace_process *p, char *text, size_t room);

#endif
