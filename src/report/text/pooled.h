// Results of 'replay --json' and 'compare --json' of one workload, put together.
#ifndef HEAPTAPE_PRINT_POOLED_H
#define HEAPTAPE_PRINT_POOLED_H

#include "report/json/document.h"

// Prints the medians of all runs of each allocator, and their ratios to the allocator of the first file with intervals,
// and what is known to have disturbed times. Runs of different machines are mixed only if `across_machines`.
// -EINVAL, with the text set, when a file is no such result, when two of them cannot be compared (and what differs), or when
// the same runs are there twice; -ENOMEM.
int pooled_print(const struct document *d, bool across_machines, struct err *e);

// A table of several workloads, with a column for each allocator: its head, then the rows of the workload `label`, of which *d
// has all results. A row has the median of names[0] and the ratios of the others to it. Names are those of matrix jobs; "-"
// stands for one without results. Errors as above.
void pooled_print_head(const char *const *names, size_t n);
int pooled_print_rows(const struct document *d, const char *label, const char *const *names,
                      size_t n, struct err *e);

#endif
