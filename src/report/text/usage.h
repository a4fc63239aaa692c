// The part of the text of `stat` behind the totals.
#ifndef HEAPTAPE_PRINT_USAGE_H
#define HEAPTAPE_PRINT_USAGE_H

#include "analysis/file_stat.h"

// Prints nothing when only the totals were counted.
void usage_print(const struct file_stat *s);

#endif
