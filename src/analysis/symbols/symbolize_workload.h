// Copies a workload with other names of code in it.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLIZE_WORKLOAD_H
#define HEAPTAPE_ANALYSIS_SYMBOLIZE_WORKLOAD_H

#include "base/fio.h"
#include "trace/names.h"

// `in`, a regular file, from its start to `out`: all frames as they are but for the names, and where they stand. 0 or a
// negative errno with the text set; -ENODATA if the workload is cut off.
int symbolize_workload(struct input *in, struct output *out, const struct names *names,
                       struct err *e);

#endif
