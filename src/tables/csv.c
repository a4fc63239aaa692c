#include "tables/export.h"

#include <string.h>

enum { CHUNK_BYTES = 1 << 16 };

// Returns true if spreadsheets would evaluate the text as a formula, even in quotes. The last four
// characters in the list are the full-width forms of = + - and @.
static bool is_formula(const char *text, size_t n)
{
    return n && (memchr("=+-@\t\r\n", text[0], 7) || (n >= 3 && memcmp(text, "\xef\xbc", 2) == 0 &&
                                                      memchr("\x9d\x8b\x8d\xa0", text[2], 4)));
}

static bool needs_quotes(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == ',' || text[i] == '\n' || text[i] == '\r')
            return true;
    }
    return n == 0;
}

int tables_csv_put(struct buf *b, const char *text, size_t n, bool safe)
{
    bool formula = safe && is_formula(text, n);
    if (!formula && !needs_quotes(text, n))
        return buf_put(b, text, n);
    int rc = buf_put(b, "\"'", formula ? 2 : 1);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = text[i] == '"' ? buf_put_u8(b, '"') : 0;
        rc = rc < 0 ? rc : buf_put_u8(b, (uint8_t)text[i]);
    }
    return rc < 0 ? rc : buf_put_u8(b, '"');
}

// Writes a number. Values in tables are never negative.
static int put_number(struct buf *b, uint64_t v)
{
    char digits[20], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    return buf_put(b, at, (size_t)(digits + sizeof digits - at));
}

static int csv_row(struct tables_output *o, const struct tables_row *row)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < o->table->n_columns; i++) {
        bool is_text = o->table->columns[i].type >= TABLES_NAME;
        rc = i ? buf_put_u8(&o->text, ',') : 0;
        if (rc == 0 && row->present >> i & 1)
            rc = is_text ? tables_csv_put(&o->text, row->values[i].text,
                                          strlen(row->values[i].text), o->csv_safe)
                         : put_number(&o->text, (uint64_t)row->values[i].integer);
    }
    rc = rc < 0 ? rc : buf_put_u8(&o->text, '\n');
    return rc < 0 || o->text.size < CHUNK_BYTES ? rc : tables_export_flush(o);
}

// Writes the line of column names. Lines end in "\n", although RFC 4180 specifies "\r\n". NULL is
// written as an empty field.
static int csv_begin(struct tables_output *o)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < o->table->n_columns; i++) {
        rc = i ? buf_put_u8(&o->text, ',') : 0;
        rc = rc < 0
                 ? rc
                 : buf_put(&o->text, o->table->columns[i].name, strlen(o->table->columns[i].name));
    }
    return rc < 0 ? rc : buf_put_u8(&o->text, '\n');
}

static int csv_end(struct tables_output *o)
{
    (void)o;
    return 0;
}

const struct tables_format tables_csv = {
    .name = "csv", .begin = csv_begin, .row = csv_row, .end = csv_end};
