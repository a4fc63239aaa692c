// A table as CSV (RFC 4180, lines end with a newline): a line of names, then the rows. NULL is empty.
#ifndef HEAPTAPE_TABLES_CSV_H
#define HEAPTAPE_TABLES_CSV_H

#include "convert/process.h"
#include "tables/tables.h"

#include <stdio.h>

struct tables_csv_settings {
    enum tables_id table;
    const char *output; // FILE or "-"
    bool force;         // replace the output
    const struct convert_watch *watch;
};

// Writes the table of the trace or workload at `from` ("-": stdin). 0 or a negative errno with the text set.
int tables_csv_export(const char *from, const struct tables_csv_settings *s, struct err *e);

// A text as a field: in quotes where it has to be.
void tables_csv_text(FILE *to, const char *text, size_t n);

#endif
