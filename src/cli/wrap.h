// Wraps output at the width of the terminal.
#ifndef HEAPTAPE_CLI_WRAP_H
#define HEAPTAPE_CLI_WRAP_H

#include <stdbool.h>
#include <stdio.h>

// Returns the columns of standard output, from $COLUMNS or the terminal, or 0 if it is not a
// terminal.
unsigned wrap_columns(void);

// Returns true if the locale uses UTF-8.
bool wrap_is_utf8(void);

// Returns the columns of standard error, or 0 if it is not a terminal. Ignores $COLUMNS.
unsigned wrap_error_columns(void);

// Writes text without a final newline. Wraps it like wrap_lines(), unless `columns` is 0.
void wrap_text(FILE *to, const char *text, size_t n, unsigned columns);

// From now on, wraps lines on standard output at spaces if standard output is a terminal.
// Continuation lines are indented.
void wrap_lines(void);

// Does not wrap the next line. Use this for lines that users copy to a shell or file.
void wrap_keep_line(void);

#endif
