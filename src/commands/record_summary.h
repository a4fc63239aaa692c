// Messages of `record` after the recording.
#pragma once

#include "record/record.h"

// Prints the result of the recording and its gaps. `out` is NULL if the output is not a trace.
void record_summary_print(bool verbose, const struct record_result *r, const struct output *out);

// Sets *e to the reason why no event was recorded. `pid` is the process that heaptape attached to,
// or 0.
void record_summary_nothing(const char *program, pid_t pid, const struct record_result *r,
                            struct err *e);
