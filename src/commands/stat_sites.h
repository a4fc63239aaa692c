// "stat --by caller": what each call site of a trace or workload takes and holds.
#ifndef HEAPTAPE_COMMANDS_STAT_SITES_H
#define HEAPTAPE_COMMANDS_STAT_SITES_H

#include "base/err.h"
#include "report/profile.h"

#include <stdint.h>

enum by_caller_format { BY_CALLER_TEXT, BY_CALLER_JSON, BY_CALLER_FOLDED, BY_CALLER_PPROF };

struct by_caller_options {
    enum by_caller_format format;
    enum profile_weight weight; // what sites are sorted by, and weighed by when folded
    uint64_t top;               // sites to show as text, 0: all
};

// Reads the file and prints to stdout. 0 or negative errno with the text set.
int by_caller(const char *path, const struct by_caller_options *o, struct err *e);

#endif
