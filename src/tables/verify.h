// Verifies the files that tables_export writes.
#pragma once

#include "base/fio.h"

// Verify an input, which must be positioned at its first byte. For Parquet, the input must be
// seekable. Return 0 and set *rows to the number of rows, or return a negative errno with the
// message set. -EBADMSG means that the file is invalid; the message then contains the byte offset.
int tables_verify_parquet(struct input *in, uint64_t *rows, struct err *e);
int tables_verify_csv(struct input *in, uint64_t *rows, struct err *e);

// Returns true if the text begins with the column names of a table, as a line of CSV.
bool tables_is_csv(const uint8_t *text, size_t n);
