// Two workloads or two results side by side.
#ifndef HEAPTAPE_REPORT_DIFF_H
#define HEAPTAPE_REPORT_DIFF_H

#include "report/document.h"

#include <stdbool.h>

enum diff_unit { DIFF_COUNT, DIFF_BYTES, DIFF_NS, DIFF_RATIO };

struct diff_row {
    char of[80]; // "glibc", or "" for a workload
    char label[80];
    enum diff_unit unit;
    double a, b; // NAN: not known
};

// Compares what the document has with side 0 and side 1: the first workload of each, and results of allocators with the
// same name and tunables. Rows that neither side has are left out. The document gets them as "diff": [{"of", "label",
// "unit", "a", "b"}]; *rows is the caller's to free. 0, -ENOENT when there is nothing that both sides have, -ENOMEM.
int diff_rows(struct document *d, struct diff_row **rows, size_t *n);

#endif
