// Statistics of a file that may be an aggregate.
#ifndef HEAPTAPE_AGGREGATE_STAT_H
#define HEAPTAPE_AGGREGATE_STAT_H

#include "analysis/file_stat.h"

// As file_stat_span, of a trace, a workload or an aggregate. Of an aggregate there are the totals, the call sites and the
// periods, whatever the part; -EINVAL where a span is asked for.
int aggregate_file_stat(struct file_stat *s, const char *path, enum file_stat_part part,
                        const struct file_stat_points *span, const struct convert_watch *watch,
                        struct err *e);

// The same of an aggregate that is open at its first byte: all that an aggregate holds. The name is that of the input.
int aggregate_input_stat(struct file_stat *s, struct input *in, struct err *e);

#endif
