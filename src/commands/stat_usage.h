// The part of the text of `stat` behind the totals.
#ifndef HEAPTAPE_COMMANDS_STAT_USAGE_H
#define HEAPTAPE_COMMANDS_STAT_USAGE_H

#include "analysis/file_stat.h"

// Prints nothing when only the totals were counted.
void stat_usage_print(const struct file_stat *s);

#endif
