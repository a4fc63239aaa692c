// Comparison of two workloads or of two sets of results.
#pragma once

#include "base/json.h"
#include "replay/figures.h"
#include "report/json/document.h"

struct diff_row {
    char of[164]; // "glibc", "glibc : jemalloc", or "" for a workload
    const char *label;
    enum figure_unit unit;
    enum figure_better better;
    double a, b; // NAN if unknown
};

// Fills d->rows with the figures of both sides. Compares the first workload of each side, and the
// results of allocators with the same name and tunables. Omits figures that neither side has.
// Returns 0, -ENOENT if no row is left, or -ENOMEM.
int diff_rows(struct document *d);

// Writes the rows as the member "diff".
void diff_write(struct json *j, const struct document *d);
