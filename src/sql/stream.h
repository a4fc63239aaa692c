// The rows of a table one by one: a thread scans the file ahead of its reader, by a bounded number of rows.
#ifndef HEAPTAPE_SQL_STREAM_H
#define HEAPTAPE_SQL_STREAM_H

#include "tables/tables.h"

struct sql_stream;

// Begins to scan. `path` is borrowed until the stop; the conditions are copied. NULL when out of memory.
struct sql_stream *sql_stream_start(const char *path, enum tables_id table, const struct tables_wanted *wanted,
                                    const struct convert_watch *watch);

// The next row, borrowed until the next call: 1; 0 at the end; negative errno with the text set.
int sql_stream_next(struct sql_stream *s, const struct tables_row **row, struct err *e);

// Ends the scan where it is. NULL: nothing.
void sql_stream_stop(struct sql_stream *s);

#endif
