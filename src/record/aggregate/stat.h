// Statistics of a trace, a workload or an aggregate.
#pragma once

#include "analysis/file_stat.h"

// Like file_stat_input, but opens `path`, which may also be an aggregate. For an aggregate, reads
// totals, call sites and periods, regardless of how->part, and returns -EINVAL if a span is
// requested.
int aggregate_file_stat(struct file_stat *s, const char *path, const struct file_stat_settings *how,
                        struct err *e);

// Reads all statistics of an aggregate from an input that is at its first byte. The result contains
// the input's name.
int aggregate_input_stat(struct file_stat *s, struct input *in, struct err *e);
