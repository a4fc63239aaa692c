// What the importers of text share.
#ifndef HEAPTAPE_FORMATS_TEXT_IMPORT_H
#define HEAPTAPE_FORMATS_TEXT_IMPORT_H

#include "formats/import.h"

struct text_line {
    const char *text;
    const char *end; // where its newline stands, or the carriage return before it: parsers stop there
};

// The next line: 1; 0 at the end; negative errno. One without a newline is told or skipped: the file is cut off there.
int text_next(struct import *im, struct text_line *line);

// The line had something else than `expected` at `at`. As import_bad.
int text_bad(struct import *im, const struct text_line *line, const char *at, const char *expected);

#endif
