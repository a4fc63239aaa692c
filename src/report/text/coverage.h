// What share of bytes has a stack that reaches the program, in words.
#ifndef HEAPTAPE_PRINT_COVERAGE_H
#define HEAPTAPE_PRINT_COVERAGE_H

#include "analysis/coverage.h"

// As a table, for `stat`.
void coverage_print(const struct coverage *c);

// For a recording with stacks: reads the trace at `path`, and prints a line on stderr if stacks of 1 % of the bytes end before the
// program's own code. `verbose`: also the shares of the others.
void coverage_note(const char *path, bool verbose);

#endif
