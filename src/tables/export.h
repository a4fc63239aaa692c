// Writes a table to a file in a format of tables.
#ifndef HEAPTAPE_TABLES_EXPORT_H
#define HEAPTAPE_TABLES_EXPORT_H

#include "base/buf.h"
#include "base/fio.h"
#include "tables/tables.h"

struct convert_watch;

// What a format writes to. `state` is the format's own.
struct tables_output {
    const struct tables_definition *table;
    struct output out;
    struct buf text; // not written yet
    size_t buffered; // rows that the format holds in memory
    bool csv_safe;   // as in the settings
    void *state;
    struct err *e;
};

// The functions return 0 or a negative errno.
struct tables_format {
    const char *name;
    int (*begin)(struct tables_output *o);
    int (*row)(struct tables_output *o, const struct tables_row *row);
    int (*end)(struct tables_output *o);
    int (*flush)(struct tables_output
                     *o); // writes the rows that are in memory, and frees it; NULL: there are none
    void (*release)(struct tables_output *o); // also after an error; NULL: nothing
};

extern const struct tables_format tables_csv, tables_parquet;

struct tables_export_settings {
    const struct tables_format *format;
    enum tables_id table;
    const char *output; // FILE or "-"
    bool force;         // replace the output
    bool csv_safe;      // texts that a spreadsheet would evaluate are marked as texts
    const struct convert_watch *watch;
};

// Writes the table of the trace or workload at `from` ("-": stdin), aside until it is whole. 0 or a negative errno with the
// text set.
int tables_export(const char *from, const struct tables_export_settings *s, struct err *e);

// The same of a trace as one file for each process: s->output is a folder, which is made, and a file in it is
// TABLE/host=HOST/recording=TIME/pid=PID/PROCESS.csv or .parquet, of the table of processes TABLE/host=HOST/recording=TIME/0.csv or
// .parquet. Each has its name when it is whole. Memory is also bounded by the number of processes that run at once.
int tables_partition(const char *from, const struct tables_export_settings *s, struct err *e);

// Writes `text` to the output and empties it. 0 or a negative errno with the text set.
int tables_export_flush(struct tables_output *o);

#endif
