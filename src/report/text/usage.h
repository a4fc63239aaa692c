// The sections of the text of `stat` that follow the totals.
#ifndef HEAPTAPE_TEXT_USAGE_H
#define HEAPTAPE_TEXT_USAGE_H

#include "analysis/file_stat.h"

// Prints the sections. Prints nothing if only the totals were counted.
void usage_print(const struct file_stat *s);

#endif
