// Copies a workload and replaces its code names.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLIZE_WORKLOAD_H
#define HEAPTAPE_ANALYSIS_SYMBOLIZE_WORKLOAD_H

#include "base/fio.h"
#include "trace/names.h"

// Copies the regular file `in` from its start. Only names and file offsets change. Returns 0, or a
// negative errno with *e set: -ENODATA if the workload is truncated.
int symbolize_workload(struct input *in, struct output *out, const struct names *names,
                       struct err *e);

#endif
