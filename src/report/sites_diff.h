// Comparison of the call sites of two recordings. Sites are matched by function, file and line,
// because addresses differ between two builds of a program. Line numbers differ if the code above
// the line has changed.
#pragma once

#include "analysis/file_stat.h"
#include "analysis/symbols/stack.h"
#include "base/json.h"

struct sites_diff_side {
    bool found;
    int line; // 0 if unknown
    uint64_t peak_bytes, end_bytes, bytes, calls;
};

// All stacks of one side that have the same shown function and line.
struct sites_diff_row {
    char *function; // owned
    char *file;     // owned; base name of the source file, or of the object if lines are unknown
    bool named;     // false if the function is OBJECT+0xOFFSET
    struct sites_diff_side sides[2];
};

struct sites_diff {
    struct sites_diff_row *rows;
    size_t n, capacity;
    // Called for each call site, before the call sites of one function are joined. May be NULL.
    void (*count)(void *context, unsigned side, const struct stack *stack,
                  const struct sites_diff_side *totals);
    void *context;
};

// Reads two traces or workloads and matches their call sites. *d must be all zero, except for
// `count` and `context`. Sets totals[i].found if recording i has call sites. Returns 0, or a
// negative errno with the message set. The caller releases *d, even after an error.
int sites_diff_files(struct sites_diff *d, struct sites_diff_side totals[2], char *const paths[2],
                     const struct convert_watch *watch, struct err *e);

void sites_diff_release(struct sites_diff *d);

// Returns true if a figure differs between the sides. Ignores line numbers.
bool sites_diff_changed(const struct sites_diff_row *r);

// Writes the changed rows as the member "sites".
void sites_diff_json(struct json *j, const struct sites_diff *d);
