// Statistics of a trace, a workload or an aggregate.
#ifndef HEAPTAPE_AGGREGATE_STAT_H
#define HEAPTAPE_AGGREGATE_STAT_H

#include "analysis/file_stat.h"

// Like file_stat_span, also for an aggregate. An aggregate yields totals, call sites and periods
// whatever `part` is, and -EINVAL if a span is requested.
int aggregate_file_stat(struct file_stat *s, const char *path, enum file_stat_part part,
                        const struct file_stat_points *span, const struct convert_watch *watch,
                        struct err *e);

// Reads all statistics of an aggregate from an input at its first byte. The result's name is the
// input's.
int aggregate_input_stat(struct file_stat *s, struct input *in, struct err *e);

#endif
