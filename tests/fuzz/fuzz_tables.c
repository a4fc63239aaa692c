// Fuzzes tables of a trace or workload with correct checksums: all tables at once, and each as CSV
// and Parquet. Bit 0 of the first byte selects a trace (1) or workload (0); bit 1 leaves out the
// columns that only a trace has.
#include "base/frame.h"
#include "tables/export.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE = 1, FEW_COLUMNS = 2 };

struct totals {
    size_t rows[TABLES_N], text_bytes;
};

// Checks that only existing columns have values, and that all strings are readable.
static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct totals *t = context;
    const struct tables_definition *d = &tables_definitions[table];
    t->rows[table]++;
    if (row->present >> d->n_columns)
        abort();
    for (unsigned i = 0; i < d->n_columns; i++) {
        if (!(row->present >> i & 1))
            continue;
        if (d->columns[i].type >= TABLES_NAME)
            t->text_bytes += strlen(row->values[i].text);
        else if (row->values[i].integer < 0)
            abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    struct totals totals = {0};
    struct tables_scan scan = {.row = put_row, .context = &totals};
    char path[32];
    if (n < 1 || data[0] > (TRACE | FEW_COLUMNS))
        return -1; // tells libFuzzer to drop the input
    fuzz_frames(&in, data[0] & TRACE ? FRAME_MAGIC_TRACE : FRAME_MAGIC_WORKLOAD, data + 1, n - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", in.fd);
    for (unsigned i = 0; i < TABLES_N; i++) {
        uint32_t all = (1u << tables_definitions[i].n_columns) - 1;
        scan.of[i] =
            (struct tables_wanted){.rows = true, .columns = data[0] & FEW_COLUMNS ? 3 : all};
    }
    struct err e = {0};
    int rc = tables_scan(path, &scan, &e);
    if ((rc < 0) != (e.text[0] != 0))
        abort();
    for (unsigned i = 0; i < TABLES_N && rc == 0; i++) {
        struct tables_export_settings how = {
            .format = &tables_csv, .table = (enum tables_id)i, .output = "/dev/null"};
        if (tables_export(path, &how, &e) < 0)
            abort();
        how.format = &tables_parquet;
        if (tables_export(path, &how, &e) < 0)
            abort();
    }
    input_close(&in);
    return 0;
}
