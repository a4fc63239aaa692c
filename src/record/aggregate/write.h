// `record --aggregate`: reads a trace while it is being recorded, counts live and allocated memory
// by call site, and periodically rewrites a file with the results.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

// Number of ended processes that are kept: the processes with the highest peaks of live bytes. The
// other processes are summed.
enum { AGGREGATE_KEPT = 64 };

struct aggregate_settings {
    const char *path;
    bool force;                 // replace an existing file
    uint64_t rewrite_ns;        // interval between rewrites
    uint64_t period_ns;         // interval between values of live bytes
    void (*note)(const char *); // reports a line to the user
};

// Checks that the file can be written, without changing anything. Returns 0, or a negative errno
// with `e` set.
int aggregate_check(const struct aggregate_settings *s, struct err *e);

// Reads a trace from standard input until it ends. If the file cannot be rewritten, reports this
// once, keeps the old file and retries after each interval. Returns 0, or a negative errno with `e`
// set. If the input contains no trace, returns -ENODATA without writing a file.
int aggregate_write(const struct aggregate_settings *s, struct err *e);
