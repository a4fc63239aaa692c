// What goes into a page: traces and workloads are counted, JSON is read.
#ifndef HEAPTAPE_COMMANDS_PAGE_INPUT_H
#define HEAPTAPE_COMMANDS_PAGE_INPUT_H

#include "report/document.h"

#include <stdbool.h>

// Adds the file at `path`: a trace, a workload, or what stat, replay or compare gave with --json. 0 or a negative errno
// with the text set.
int page_add_file(struct document *d, const char *path, int side, struct err *e);

#endif
