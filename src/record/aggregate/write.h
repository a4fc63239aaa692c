// `record --aggregate`: reads a trace while it is recorded, counts what is live and allocated by call site, and rewrites a file
// of these figures now and then.
#ifndef HEAPTAPE_AGGREGATE_WRITE_H
#define HEAPTAPE_AGGREGATE_WRITE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

// Of processes that have ended so many are kept, those with the highest peaks of live bytes; the others become one sum.
enum { AGGREGATE_KEPT = 64 };

struct aggregate_settings {
    const char *path;
    bool force;                 // replace an existing file
    uint64_t rewrite_ns;        // between two rewritings
    uint64_t period_ns;         // of which the live bytes at the end are kept
    void (*note)(const char *); // a line for the user
};

// Can the file be written? 0 or a negative errno with the text set. Nothing is changed.
int aggregate_check(const struct aggregate_settings *s, struct err *e);

// Reads the trace from standard input to its end. A file that cannot be rewritten stays as it was until the next time; that
// is noted once. 0 or a negative errno with the text set: -ENODATA where there is no trace, and no file is written.
int aggregate_write(const struct aggregate_settings *s, struct err *e);

#endif
