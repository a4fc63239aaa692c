// What `record` says at its end.
#ifndef HEAPTAPE_COMMANDS_RECORD_SUMMARY_H
#define HEAPTAPE_COMMANDS_RECORD_SUMMARY_H

#include "record/record.h"

// What was recorded, and what is known to be missing. `out` is NULL when it was no trace.
void record_summary_print(bool verbose, const struct record_result *r, const struct output *out);

// The reason why nothing of the program was recorded, as the text of *e.
void record_summary_nothing(const char *program, const struct record_result *r, struct err *e);

#endif
