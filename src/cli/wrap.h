// What the terminal can show.
#ifndef HEAPTAPE_CLI_WRAP_H
#define HEAPTAPE_CLI_WRAP_H

#include <stdbool.h>

// Columns of the terminal that standard output is, or as $COLUMNS says; 0: it is none.
unsigned wrap_columns(void);

// Does the user's locale have UTF-8?
bool wrap_is_utf8(void);

// From now on, breaks lines on standard output that are longer than the terminal is wide, at a space; what goes on is
// indented. For text that people read.
void wrap_lines(void);

#endif
