// Two workloads or two results side by side.
#ifndef HEAPTAPE_REPORT_DIFF_H
#define HEAPTAPE_REPORT_DIFF_H

#include "base/json.h"
#include "replay/figures.h"
#include "report/json/document.h"

enum diff_unit { DIFF_COUNT, DIFF_BYTES, DIFF_NS, DIFF_RATIO };

struct diff_row {
    char of[164]; // "glibc", "glibc : jemalloc", or "" for a workload
    const char *label;
    enum diff_unit unit;
    enum figure_better better;
    double a, b; // NAN: not known
};

// Fills d->rows: compares what the document has with side 0 and side 1, the first workload of each and results of
// allocators with the same name and tunables. Rows that neither side has are left out. 0, -ENOENT when there is nothing
// that both sides have, -ENOMEM.
int diff_rows(struct document *d);

// The member "diff": the rows.
void diff_write(struct json *j, const struct document *d);

#endif
