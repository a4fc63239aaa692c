// Results of 'replay --json' and 'compare --json' of one workload, put together.
#ifndef HEAPTAPE_PRINT_POOLED_H
#define HEAPTAPE_PRINT_POOLED_H

#include "report/document.h"

// Prints the medians of all runs of each allocator, and their ratios to the allocator of the first file with intervals.
// Runs of different machines are mixed only if `across_machines`.
// -EINVAL, with the text set, when a file is no such result, when two of them cannot be compared (and what differs), or when
// the same runs are there twice; -ENOMEM.
int pooled_print(const struct document *d, bool across_machines, struct err *e);

#endif
