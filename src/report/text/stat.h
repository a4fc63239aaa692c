// Text of `stat`.
#pragma once

#include "analysis/memory/rss.h"
#include "report/findings.h"

// Prints one screen about a recording: at most 40 lines of 80 columns, apart from long file names.
// The screen contains the verdict, the findings that fit, the peak, the totals, and the call paths
// with the most bytes at the peak. Returns 0 or -ENOMEM.
int stat_print_overview(const struct file_stat *s, const struct findings *found);

// Prints the sections of `stat --verbose` that follow the totals. Prints nothing if only the totals
// were counted.
void stat_print_usage(const struct file_stat *s);

// Prints the share of bytes whose stacks reach the program's own code.
void stat_print_coverage(const struct coverage *c);

// Prints the composition of a process's resident memory.
void stat_print_rss(const struct rss *r);
