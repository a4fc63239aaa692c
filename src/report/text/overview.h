// One screen about a recording: the text of `stat` without options.
#ifndef HEAPTAPE_TEXT_OVERVIEW_H
#define HEAPTAPE_TEXT_OVERVIEW_H

#include "report/findings.h"

// Prints at most 40 lines of 80 columns, apart from long file names: the verdict, the findings that
// fit, the peak, the totals, and the call paths with the most bytes at the peak. Returns 0 or
// -ENOMEM.
int overview_print(const struct file_stat *s, const struct findings *found);

#endif
