// CSV fields (RFC 4180).
#ifndef HEAPTAPE_TABLES_CSV_H
#define HEAPTAPE_TABLES_CSV_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

// Appends a string as a field, quoting it if necessary. With `safe`, a string that a spreadsheet
// would evaluate is quoted and prefixed with an apostrophe. Returns 0 or -ENOMEM.
int tables_csv_put(struct buf *b, const char *text, size_t n, bool safe);

#endif
