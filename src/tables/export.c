#include "tables/export.h"

#include <errno.h>
#include <string.h>

int tables_export_flush(struct tables_output *o)
{
    int rc = output_write(&o->out, o->text.data, o->text.size, o->e);
    o->text.size = 0;
    return rc;
}

int tables_export_finish(const struct tables_format *format, struct tables_output *o, int rc)
{
    rc = rc < 0 ? rc : format->end(o) ?: tables_export_flush(o);
    if (format->release)
        format->release(o);
    rc = output_finish(&o->out, rc, o->e);
    buf_release(&o->text);
    return rc;
}

struct export_target {
    const struct tables_format *format;
    struct tables_output output;
};

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct export_target *t = context;
    (void)table;
    return t->format->row(&t->output, row);
}

int tables_export(const char *from, const struct tables_export_settings *s, struct err *e)
{
    const struct tables_definition *table = &tables_definitions[s->table];
    struct export_target t = {
        .format = s->format,
        .output = {.table = table, .out = {.fd = -1}, .csv_safe = s->csv_safe, .e = e}};
    struct tables_output *o = &t.output;
    struct tables_scan scan = {.row = put_row, .context = &t, .watch = s->watch};
    scan.of[s->table] =
        (struct tables_wanted){.rows = true, .columns = (1u << table->n_columns) - 1};
    // Check the input first, so that a wrong name does not create an output.
    int rc = strcmp(from, "-") == 0 ? 0 : tables_check(from, e);
    rc = rc < 0 ? rc
                : output_open(&o->out, s->output, OUTPUT_ASIDE | (s->force ? OUTPUT_FORCE : 0), e);
    if (rc < 0)
        return rc;
    rc = s->format->begin(o) ?: tables_scan(from, &scan, e);
    rc = tables_export_finish(s->format, o, rc);
    return rc == -ENOMEM ? err_no_memory(e, from) : rc;
}
