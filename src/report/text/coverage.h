// Text about the share of bytes whose stacks reach the program's own code.
#ifndef HEAPTAPE_TEXT_COVERAGE_H
#define HEAPTAPE_TEXT_COVERAGE_H

#include "analysis/coverage.h"

// Prints the table of `stat`.
void coverage_print(const struct coverage *c);

// Reads the trace at `path`, which has `events` events, again. Prints a note if at least 1 % of the
// bytes have stacks that end before they reach the program's own code. If `verbose` is set, always
// prints the shares. If the trace has more than 5 million events, only names the command that
// prints them.
void coverage_note(const char *path, uint64_t events, bool verbose);

#endif
