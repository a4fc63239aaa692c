#include "tables/sql/output.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/printable.h"
#include "tables/export.h"

#include <stdlib.h>
#include <string.h>

// The widths of columns are based on the first rows. Later rows may be wider.
enum { WIDTH_ROWS = 1000, WIDTH_BYTES = 1 << 20 };

static const char *value_text(sqlite3_stmt *s, int column, size_t *n)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    *n = text ? (size_t)sqlite3_column_bytes(s, column) : 0;
    return text ? text : "";
}

static void print_json_value(struct json *j, sqlite3_stmt *s, int column)
{
    size_t n;
    switch (sqlite3_column_type(s, column)) {
    case SQLITE_INTEGER:
        json_i64(j, sqlite3_column_int64(s, column));
        break;
    case SQLITE_FLOAT:
        json_double(j, sqlite3_column_double(s, column));
        break;
    case SQLITE_NULL:
        json_null(j);
        break;
    default: {
        const char *text = value_text(s, column, &n);
        json_string_n(j, text, n);
    }
    }
}

static int print_json(sqlite3_stmt *s, FILE *to)
{
    struct json j = {.to = to};
    int rc, columns = sqlite3_column_count(s);
    json_begin_document(&j);
    json_put_array(&j, "columns");
    for (int i = 0; i < columns; i++)
        json_string(&j, sqlite3_column_name(s, i));
    json_end_array(&j);
    json_put_array(&j, "rows");
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        json_begin_array(&j);
        for (int i = 0; i < columns; i++)
            print_json_value(&j, s, i);
        json_end_array(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    return rc;
}

static int csv_cell(struct buf *row, int column, const char *text, size_t n, bool safe)
{
    int rc = column ? buf_put_u8(row, ',') : 0;
    return rc < 0 || !text ? rc : tables_csv_put(row, text, n, safe);
}

static int csv_names(struct buf *row, sqlite3_stmt *s, bool safe)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < sqlite3_column_count(s); i++) {
        const char *name = sqlite3_column_name(s, i);
        rc = csv_cell(row, i, name, strlen(name), safe);
    }
    return rc;
}

// Appends the values of a row. Negative numbers do not count as formulas.
static int csv_values(struct buf *row, sqlite3_stmt *s, bool safe)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < sqlite3_column_count(s); i++) {
        size_t n;
        int type = sqlite3_column_type(s, i);
        const char *text = value_text(s, i, &n);
        rc = csv_cell(row, i, type == SQLITE_NULL ? NULL : text, n,
                      safe && type != SQLITE_INTEGER && type != SQLITE_FLOAT);
    }
    return rc;
}

static int print_csv(sqlite3_stmt *s, bool safe, FILE *to)
{
    struct buf row = {0};
    int step = SQLITE_ROW, rc = csv_names(&row, s, safe);
    while (rc == 0 && step == SQLITE_ROW) {
        fwrite(row.data, 1, row.size, to);
        putc('\n', to);
        row.size = 0;
        step = sqlite3_step(s);
        rc = step == SQLITE_ROW ? csv_values(&row, s, safe) : 0;
    }
    buf_release(&row);
    return rc < 0 ? SQLITE_NOMEM : step;
}

// A table whose first rows are buffered to determine the column widths.
struct output_table {
    struct buf text; // NUL-terminated cells in row order; the first row holds the column names
    size_t rows;
    int columns;
    size_t *width;
    bool *is_number; // true if all values so far were numbers
};

static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static int keep_cell(struct output_table *k, int column, const char *text, size_t n)
{
    size_t at = k->text.size, room = 4 * n + 1;
    if (buf_reserve(&k->text, room) < 0)
        return SQLITE_NOMEM;
    char *to = (char *)k->text.data + at;
    k->text.size += printable_copy(to, room, text, n) + 1;
    size_t width = characters(to);
    k->width[column] = width > k->width[column] ? width : k->width[column];
    return SQLITE_OK;
}

static int keep_row(struct output_table *k, sqlite3_stmt *s)
{
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < k->columns; i++) {
        size_t n;
        int type = sqlite3_column_type(s, i);
        const char *text = value_text(s, i, &n);
        k->is_number[i] = k->is_number[i] &&
                          (type == SQLITE_INTEGER || type == SQLITE_FLOAT || type == SQLITE_NULL);
        rc = keep_cell(k, i, text, n);
    }
    k->rows++;
    return rc;
}

static void print_kept(struct output_table *k, FILE *to)
{
    const char *cell = (const char *)k->text.data;
    for (size_t row = 0; row < k->rows; row++) {
        for (int i = 0; i < k->columns; i++, cell += strlen(cell) + 1) {
            size_t width = characters(cell);
            int pad = k->width[i] > width ? (int)(k->width[i] - width) : 0;
            bool last = i + 1 == k->columns;
            fprintf(to, "%s%*s%s%*s", i ? "  " : "", k->is_number[i] ? pad : 0, "", cell,
                    k->is_number[i] || last ? 0 : pad, "");
        }
        putc('\n', to);
    }
    k->text.size = 0;
    k->rows = 0;
}

static int print_rows(struct output_table *k, sqlite3_stmt *s, FILE *to)
{
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < k->columns; i++) {
        const char *name = sqlite3_column_name(s, i);
        k->is_number[i] = true;
        rc = keep_cell(k, i, name, strlen(name));
    }
    k->rows = 1;
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        rc = keep_row(k, s);
        if (rc == SQLITE_OK && (k->rows >= WIDTH_ROWS || k->text.size >= WIDTH_BYTES))
            print_kept(k, to);
    }
    if (rc == SQLITE_DONE)
        print_kept(k, to);
    return rc;
}

static int print_table(sqlite3_stmt *s, FILE *to)
{
    struct output_table k = {.columns = sqlite3_column_count(s)};
    size_t columns = (size_t)k.columns + 1;
    k.width = calloc(columns, sizeof *k.width);
    k.is_number = calloc(columns, sizeof *k.is_number);
    int rc = k.width && k.is_number ? print_rows(&k, s, to) : SQLITE_NOMEM;
    buf_release(&k.text);
    free(k.width);
    free(k.is_number);
    return rc;
}

int sql_output(sqlite3_stmt *statement, const struct sql_settings *settings)
{
    FILE *to = settings->to;
    switch (settings->form) {
    case SQL_JSON:
        return print_json(statement, to);
    case SQL_CSV:
        return print_csv(statement, settings->csv_safe, to);
    case SQL_TABLE:
        break;
    }
    return print_table(statement, to);
}
