// Verifies files that tables/export.h has written.
#ifndef HEAPTAPE_TABLES_VERIFY_H
#define HEAPTAPE_TABLES_VERIFY_H

#include "base/fio.h"

// Verify the rest of an input that is at its first byte; Parquet must be seekable. Return 0 with the
// number of rows, or a negative errno with the text set: -EBADMSG with the byte of the fault.
int tables_verify_parquet(struct input *in, uint64_t *rows, struct err *e);
int tables_verify_csv(struct input *in, uint64_t *rows, struct err *e);

// Returns true if the text begins with the first line of a table as CSV.
bool tables_is_csv(const uint8_t *text, size_t n);

#endif
