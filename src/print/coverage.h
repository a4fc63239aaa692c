// What share of bytes has a stack that reaches the program, in words.
#ifndef HEAPTAPE_PRINT_COVERAGE_H
#define HEAPTAPE_PRINT_COVERAGE_H

#include "analysis/coverage.h"

// As a table, for `stat`.
void coverage_print(const struct coverage *c);

// After a recording with stacks: reads the trace at `path`, and says it in a line or two on stderr.
void coverage_note(const char *path);

#endif
