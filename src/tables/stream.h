// Iterates over the rows of a scan. A thread scans the file, and waits when it is a certain number
// of rows ahead of the reader. The thread blocks all signals.
#pragma once

#include "tables/tables.h"

struct tables_stream;

// Starts a scan of `file` (as tables_scan_file does) or, if `file` is NULL, of the file at `path`.
// Both arguments are borrowed until tables_stream_stop. `how` and its conditions are copied.
// how->row is ignored, and the scanning thread calls how->facts. Returns NULL when out of memory.
struct tables_stream *tables_stream_start(const char *path, struct file *file,
                                          const struct tables_scan *how);

// Sets *row to the next row, which is borrowed until the next call. Sets *table to the table of the
// row; `table` may be NULL. Returns 1, 0 at the end, or a negative errno with the message set.
int tables_stream_next(struct tables_stream *s, enum tables_id *table,
                       const struct tables_row **row, struct err *e);

// Stops the scan and frees `s`, which may be NULL.
void tables_stream_stop(struct tables_stream *s);
