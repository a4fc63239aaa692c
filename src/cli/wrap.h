// What the terminal can show.
#ifndef HEAPTAPE_CLI_WRAP_H
#define HEAPTAPE_CLI_WRAP_H

#include <stdbool.h>
#include <stdio.h>

// Columns of the terminal that standard output is, or as $COLUMNS says; 0: it is none.
unsigned wrap_columns(void);

// Does the user's locale have UTF-8?
bool wrap_is_utf8(void);

// The same of the terminal that standard error is, whatever $COLUMNS says; 0: it is none.
unsigned wrap_error_columns(void);

// Writes the text without a newline at its end; broken like wrap_lines() does, unless `columns` is 0.
void wrap_text(FILE *to, const char *text, size_t n, unsigned columns);

// From now on, breaks lines on standard output that are longer than the terminal is wide, at a space; what goes on is
// indented. For text that people read.
void wrap_lines(void);

// The next line is not broken: it is to be copied into a shell or a file.
void wrap_keep_line(void);

#endif
