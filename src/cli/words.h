// Prints paragraphs of text.
#pragma once

#include <stdio.h>

enum { WORDS_COLUMNS = 80 };

// Prints words in lines of WORDS_COLUMNS columns, from `column` on. Escapes characters that are not
// printable. All lines but the first begin at column `indent`. Returns the next column. If `to` is
// NULL, prints nothing. Adds the number of line breaks to *breaks, which may be NULL.
size_t words_print(FILE *to, const char *text, size_t column, size_t indent, unsigned *breaks);

// Returns the width of a line in columns.
size_t words_columns(const char *text);
