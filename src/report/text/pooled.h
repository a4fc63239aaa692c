// Tables of results for one workload, which pool the runs from several files of `replay --json` and
// `compare --json`.
#pragma once

#include "report/json/document.h"

// Prints the median of each allocator's runs, the ratios to the first file's allocator with their
// confidence intervals, and conditions that may have disturbed the times. Runs on different
// machines are pooled only if `across_machines` is set. Returns 0 or -ENOMEM. Returns -EINVAL with
// the message set if a file is not such a result, if two results are not comparable, or if runs
// occur twice.
int pooled_print(const struct document *d, bool across_machines, struct err *e);

struct pooled_total;

// A table of several workloads with a column for each allocator.
struct pooled_table {
    const char *const *names; // names of matrix jobs
    size_t n, workloads;      // number of names and of workloads
    // For each figure and name, the ratios of the workloads printed so far; owned. NULL at first.
    struct pooled_total *totals;
};

// pooled_print_head prints the head. pooled_print_rows prints the rows of the workload `label` from
// all its results in *d: the median of names[0], and the ratios of the other names to names[0]. "-"
// marks an allocator without results. pooled_print_foot prints the geometric mean and the worst of
// the ratios, and how certain the differences are. The functions return the same values as
// pooled_print. pooled_table_release frees the totals.
void pooled_print_head(const struct pooled_table *t);
int pooled_print_rows(const struct document *d, const char *label, struct pooled_table *t,
                      struct err *e);
void pooled_print_foot(const struct pooled_table *t);
void pooled_table_release(struct pooled_table *t);

// Numbers of significant changes since an earlier run of the same jobs.
struct pooled_changes {
    const char *label; // of the workload, borrowed
    size_t better, worse;
    size_t runs; // smallest number of runs of a side, or SIZE_MAX before the first comparison
};

// Prints a row for each figure of the workload c->label whose median in *now differs significantly
// from the median in *before, and adds to *c. Compares the results of equal names of allocators.
// Returns the same values as pooled_print.
int pooled_print_changes(const struct document *before, const struct document *now,
                         const struct pooled_table *t, struct pooled_changes *c, struct err *e);
// Prints the numbers of changes since the run in the directory `against`.
void pooled_print_changes_foot(const struct pooled_changes *c, const struct pooled_table *t,
                               const char *against);
