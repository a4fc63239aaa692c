#include "tables/csv.h"

#include "base/buf.h"
#include "base/fio.h"

#include <errno.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16 };

struct csv {
    const struct tables_definition *table;
    struct output out;
    struct buf text;
    struct err *e;
};

static bool needs_quotes(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == ',' || text[i] == '\n' || text[i] == '\r')
            return true;
    }
    return n == 0;
}

void tables_csv_text(FILE *to, const char *text, size_t n)
{
    if (!needs_quotes(text, n)) {
        fwrite(text, 1, n, to);
        return;
    }
    putc('"', to);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            putc('"', to);
        putc(text[i], to);
    }
    putc('"', to);
}

static int put_text(struct buf *b, const char *text)
{
    size_t n = strlen(text);
    if (!needs_quotes(text, n))
        return buf_put(b, text, n);
    int rc = buf_put_u8(b, '"');
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = text[i] == '"' ? buf_put_u8(b, '"') : 0;
        rc = rc < 0 ? rc : buf_put_u8(b, (uint8_t)text[i]);
    }
    return rc < 0 ? rc : buf_put_u8(b, '"');
}

// No value of a table is below zero.
static int put_number(struct buf *b, uint64_t v)
{
    char digits[20], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    return buf_put(b, at, (size_t)(digits + sizeof digits - at));
}

static int flush(struct csv *c)
{
    int rc = output_write(&c->out, c->text.data, c->text.size, c->e);
    c->text.size = 0;
    return rc;
}

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct csv *c = context;
    int rc = 0;
    (void)table;
    for (unsigned i = 0; rc == 0 && i < c->table->n_columns; i++) {
        bool is_text = c->table->columns[i].type >= TABLES_NAME;
        rc = i ? buf_put_u8(&c->text, ',') : 0;
        if (rc == 0 && row->present >> i & 1)
            rc = is_text ? put_text(&c->text, row->values[i].text)
                         : put_number(&c->text, (uint64_t)row->values[i].integer);
    }
    rc = rc < 0 ? rc : buf_put_u8(&c->text, '\n');
    return rc < 0 || c->text.size < CHUNK_BYTES ? rc : flush(c);
}

static int put_head(struct csv *c)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < c->table->n_columns; i++) {
        rc = i ? buf_put_u8(&c->text, ',') : 0;
        rc = rc < 0 ? rc : buf_put(&c->text, c->table->columns[i].name, strlen(c->table->columns[i].name));
    }
    return rc < 0 ? rc : buf_put_u8(&c->text, '\n');
}

int tables_csv_export(const char *from, const struct tables_csv_settings *s, struct err *e)
{
    struct csv c = {.table = &tables_definitions[s->table], .out = {.fd = -1}, .e = e};
    struct tables_scan scan = {.row = put_row, .context = &c, .watch = s->watch};
    scan.of[s->table] = (struct tables_wanted){.rows = true, .columns = (1u << c.table->n_columns) - 1};
    // The file is opened first: a name that is wrong leaves no output.
    int rc = strcmp(from, "-") == 0 ? 0 : tables_check(from, e);
    rc = rc < 0 ? rc : output_open(&c.out, s->output, OUTPUT_ASIDE | (s->force ? OUTPUT_FORCE : 0), e);
    if (rc < 0)
        return rc;
    rc = put_head(&c);
    rc = rc < 0 ? rc : tables_scan(from, &scan, e);
    rc = rc < 0 ? rc : flush(&c);
    int closed = output_close(&c.out, rc == 0, e);
    buf_release(&c.text);
    rc = rc < 0 ? rc : closed;
    return rc == -ENOMEM ? err_set(e, rc, "%s: out of memory", from) : rc;
}
