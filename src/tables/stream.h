// The rows of a scan one by one: a thread scans the file ahead of its reader, by a bounded number of rows. The thread
// handles no signals.
#ifndef HEAPTAPE_TABLES_STREAM_H
#define HEAPTAPE_TABLES_STREAM_H

#include "tables/tables.h"

struct tables_stream;

// Begins to scan `file` (tables_scan_file), or when it is NULL the file at `path`, both borrowed until the stop. Of *how, row
// is not used, and `of` is copied with its conditions; facts is called in the thread that scans. NULL when out of memory.
struct tables_stream *tables_stream_start(const char *path, struct file *file,
                                          const struct tables_scan *how);

// The next row, borrowed until the next call: 1; 0 at the end; negative errno with the text set. *table, which may be NULL, is
// the table that it is of.
int tables_stream_next(struct tables_stream *s, enum tables_id *table,
                       const struct tables_row **row, struct err *e);

// Ends the scan where it is. NULL: nothing.
void tables_stream_stop(struct tables_stream *s);

#endif
