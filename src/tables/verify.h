// Verifies files that tables/export.h has written.
#ifndef HEAPTAPE_TABLES_VERIFY_H
#define HEAPTAPE_TABLES_VERIFY_H

#include "base/fio.h"

// The input stands at its first byte. Parquet must be seekable. Sets the number of rows. 0, or a negative errno with the text set:
// -EBADMSG with the byte, or the row of CSV.
int tables_verify_parquet(struct input *in, uint64_t *rows, struct err *e);
int tables_verify_csv(struct input *in, uint64_t *rows, struct err *e);

// Is the text the first line of one of the tables as CSV?
bool tables_is_csv(const uint8_t *text, size_t n);

#endif
