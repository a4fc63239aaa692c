// "stat --by site": what each call site of a trace or workload allocated, and what of it is live.
#ifndef HEAPTAPE_COMMANDS_STAT_SITES_H
#define HEAPTAPE_COMMANDS_STAT_SITES_H

#include "base/err.h"
#include "report/profile.h"

#include <stdint.h>

enum stat_sites_format { STAT_SITES_TEXT, STAT_SITES_JSON, STAT_SITES_FOLDED, STAT_SITES_PPROF };

struct stat_sites_options {
    enum stat_sites_format format;
    enum profile_weight weight; // what sites are sorted by, and weighed by when folded
    uint64_t top;               // sites to show as text, 0: all
};

// Reads the file and prints to stdout. 0 or negative errno with the text set.
int stat_sites(const char *path, const struct stat_sites_options *o, struct err *e);

#endif
