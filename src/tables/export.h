// Writes a table to a CSV or Parquet file.
#pragma once

#include "base/buf.h"
#include "base/fio.h"
#include "tables/tables.h"

struct convert_watch;

// Output of a format. `state` belongs to the format.
struct tables_output {
    const struct tables_definition *table;
    struct output out;
    struct buf text; // bytes that have not been written yet
    size_t buffered; // number of rows that the format holds in memory
    bool csv_safe;   // as in struct tables_export_settings
    void *state;
    struct err *e;
};

// Functions of a format. All except `release` return 0 or a negative errno.
struct tables_format {
    const char *name;
    int (*begin)(struct tables_output *o);
    int (*row)(struct tables_output *o, const struct tables_row *row);
    int (*end)(struct tables_output *o);
    // Writes the rows that are held in memory and frees that memory. NULL if the format never holds
    // rows.
    int (*flush)(struct tables_output *o);
    void (*release)(struct tables_output *o); // also called after an error; may be NULL
};

extern const struct tables_format tables_csv, tables_parquet;

struct tables_export_settings {
    const struct tables_format *format;
    enum tables_id table;
    const char *output; // FILE or "-"
    bool force;         // replace an existing output
    bool csv_safe;      // escape strings that a spreadsheet would evaluate
    const struct convert_watch *watch;
};

// Writes one table of the trace or workload at `from`. "-" is standard input. The output gets its
// name when it is complete. Returns 0, or a negative errno with the message set.
int tables_export(const char *from, const struct tables_export_settings *s, struct err *e);

// Writes one table of a trace as one file per process. s->output is a directory, which is created
// if necessary. The files are TABLE/host=HOST/recording=TIME/pid=PID/PROCESS.csv or .parquet. The
// table of processes is a single file, TABLE/host=HOST/recording=TIME/0.csv or .parquet. A file
// gets its name when it is complete. Memory use is limited as in tables_scan, and also depends on
// the number of processes that run concurrently. Returns 0, or a negative errno with the message
// set.
int tables_partition(const char *from, const struct tables_export_settings *s, struct err *e);

// Appends a string as a field of CSV (RFC 4180), quoting it if necessary. With `safe`, a string
// that a spreadsheet would evaluate is quoted and prefixed with an apostrophe. Returns 0 or
// -ENOMEM.
int tables_csv_put(struct buf *b, const char *text, size_t n, bool safe);

// Writes o->text to the output and clears o->text. Returns 0, or a negative errno with the message
// set.
int tables_export_flush(struct tables_output *o);

// Releases the output. If `rc` is 0, first writes the end of the file and gives the file its name.
// Returns `rc` if it is negative, else 0 or a negative errno.
int tables_export_finish(const struct tables_format *format, struct tables_output *o, int rc);
