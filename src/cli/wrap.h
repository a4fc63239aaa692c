// Wraps output at the width of the terminal.
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Returns the width of standard output in columns, from $COLUMNS or the terminal. Returns 0 if
// standard output is not a terminal.
unsigned wrap_columns(void);

// Returns true if the locale uses UTF-8.
bool wrap_is_utf8(void);

// Returns the width of standard error in columns, or 0 if standard error is not a terminal. Ignores
// $COLUMNS.
unsigned wrap_error_columns(void);

// Writes text without a final newline. Wraps it like wrap_lines(), unless `columns` is 0.
void wrap_text(FILE *to, const char *text, size_t n, unsigned columns);

// Starts to wrap lines on standard output at spaces, if standard output is a terminal. Continuation
// lines are indented.
void wrap_lines(void);

// Does not wrap the next line. Use this for lines that users copy to a shell or file.
void wrap_keep_line(void);
