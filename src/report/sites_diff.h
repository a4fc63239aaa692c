// The call sites of two recordings side by side, matched by function, file and line: addresses differ between two versions of
// a program, lines where something above them changed.
#ifndef HEAPTAPE_REPORT_SITES_DIFF_H
#define HEAPTAPE_REPORT_SITES_DIFF_H

#include "analysis/file_stat.h"
#include "base/json.h"

struct sites_diff_side {
    bool found;
    int line; // 0: not known
    uint64_t peak_bytes, end_bytes, bytes, calls;
};

// All stacks of a side whose innermost function of the program is the same, at the same line.
struct sites_diff_row {
    char *function,
        *file;  // owned; the file's name without folders, or the object's where no lines are known
    bool named; // the function's name is known; else it is OBJECT+0xOFFSET
    struct sites_diff_side sides[2];
};

struct sites_diff {
    struct sites_diff_row *rows;
    size_t n, capacity;
};

// Reads two traces or workloads: their call sites, matched, and their totals, in which `found` says whether there are sites.
// 0 or a negative errno with the text set; *d is to be released either way.
int sites_diff_files(struct sites_diff *d, struct sites_diff_side totals[2], char *const paths[2],
                     const struct convert_watch *watch, struct err *e);

// Adds the sites of a file whose sites were counted. 0 or -ENOMEM. Nothing where it has none.
int sites_diff_add(struct sites_diff *d, unsigned side, const struct file_stat *s);

// After both sides: rows of the same function and file that only one side has are matched in the order of their lines, and
// all rows are sorted by how much they changed: live at the peak, then allocated.
void sites_diff_match(struct sites_diff *d);
void sites_diff_release(struct sites_diff *d);

// Has the row another figure on side b? A line alone makes no difference.
bool sites_diff_changed(const struct sites_diff_row *r);

// The member "sites": the rows that changed.
void sites_diff_json(struct json *j, const struct sites_diff *d);

#endif
