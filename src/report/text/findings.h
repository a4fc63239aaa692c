// Findings as text.
#ifndef HEAPTAPE_TEXT_FINDINGS_H
#define HEAPTAPE_TEXT_FINDINGS_H

#include "report/findings.h"

// Prints a paragraph for each finding. An asterisk marks the findings for which a change may help.
void findings_print(const struct findings *f);

// Prints the first `n` paragraphs, without a heading.
void findings_print_some(const struct findings *f, size_t n);

// Returns the number of lines in the paragraph of item `i`.
unsigned findings_lines(const struct findings *f, size_t i);

#endif
