// Verifies files written by tables/export.h.
#ifndef HEAPTAPE_TABLES_VERIFY_H
#define HEAPTAPE_TABLES_VERIFY_H

#include "base/fio.h"

// Verify the rest of an input, which must be positioned at its first byte; Parquet requires a
// seekable input. Return 0 and set *rows to the number of rows, or return a negative errno with the
// message set: -EBADMSG for a fault, whose byte offset is in the text.
int tables_verify_parquet(struct input *in, uint64_t *rows, struct err *e);
int tables_verify_csv(struct input *in, uint64_t *rows, struct err *e);

// Returns true if the text begins with the line of column names of a table in CSV.
bool tables_is_csv(const uint8_t *text, size_t n);

#endif
