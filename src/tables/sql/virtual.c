#include "tables/sql/virtual.h"

#include "tables/stream.h"

#include <stdlib.h>
#include <string.h>

// Estimated cost and number of rows of a scan. Both exceed all other tables' estimates, so that a
// scan becomes the outer loop of a join and runs only once.
#define SCAN_COST 1e9
#define SCAN_ROWS 10000000
// Each condition multiplies the cost of a scan by this factor. The factor is close to 1, so that
// SQLite does not choose a plan that has more conditions but scans the file again.
#define CONDITION_SAVES 0.9

enum { MAX_CONDITIONS = 16 };

struct virtual_table {
    sqlite3_vtab base;
    const struct sql_virtual *of;
    // Number of columns before the columns of the table: 1 with a column `file`, otherwise 0.
    int shift;
};

struct virtual_cursor {
    sqlite3_vtab_cursor base;
    struct tables_condition conditions[MAX_CONDITIONS];
    struct tables_wanted wanted;
    const char *only_file; // owned; NULL selects all files
    size_t file;           // index of the current file
    struct tables_stream *stream;
    const struct tables_row *row; // NULL at the end
    int64_t number;
};

const struct convert_watch *sql_virtual_watch(const struct sql_settings *s, bool *noted,
                                              size_t file)
{
    const struct convert_watch *watch = noted[file] ? NULL : s->watch;
    noted[file] = true;
    return watch;
}

char *sql_virtual_columns(const struct sql_settings *s, enum tables_id table)
{
    const struct tables_definition *t = &tables_definitions[table];
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, s->n_files > 1 ? "file TEXT" : "");
    for (unsigned i = 0; i < t->n_columns; i++) {
        bool is_text = t->columns[i].type >= TABLES_NAME;
        sqlite3_str_appendf(text, "%s%s %s", sqlite3_str_length(text) ? ", " : "",
                            t->columns[i].name, is_text ? "TEXT" : "INTEGER");
    }
    return sqlite3_str_finish(text);
}

static int connect_table(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **to, char **why)
{
    const struct sql_virtual *v = context;
    (void)argc;
    (void)argv;
    (void)why;
    char *columns = sql_virtual_columns(v->settings, v->table);
    char *sql = columns ? sqlite3_mprintf("CREATE TABLE x(%s)", columns) : NULL;
    int rc = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
    struct virtual_table *t = rc == SQLITE_OK ? sqlite3_malloc(sizeof *t) : NULL;
    sqlite3_free(columns);
    sqlite3_free(sql);
    if (!t)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *t = (struct virtual_table){.of = v, .shift = v->settings->n_files > 1};
    *to = &t->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *t)
{
    sqlite3_free(t);
    return SQLITE_OK;
}

// Returns the enum tables_comparison of a constraint, or -1.
static int convert_comparison(unsigned char op)
{
    return op == SQLITE_INDEX_CONSTRAINT_EQ   ? (int)TABLES_EQUAL
           : op == SQLITE_INDEX_CONSTRAINT_LT ? (int)TABLES_LESS
           : op == SQLITE_INDEX_CONSTRAINT_LE ? (int)TABLES_LESS_EQUAL
           : op == SQLITE_INDEX_CONSTRAINT_GT ? (int)TABLES_GREATER
           : op == SQLITE_INDEX_CONSTRAINT_GE ? (int)TABLES_GREATER_EQUAL
                                              : -1;
}

// Writes the plan for filter_rows: the name of the table (for EXPLAIN QUERY PLAN), the columns to
// read, and the column and comparison of each argument. SQLite checks the conditions again, so
// filter_rows can ignore arguments of other types.
static int best_index(sqlite3_vtab *vt, sqlite3_index_info *info)
{
    const struct virtual_table *t = (const struct virtual_table *)vt;
    const struct tables_definition *d = &tables_definitions[t->of->table];
    sqlite3_str *plan = sqlite3_str_new(NULL);
    int n = 0;
    info->estimatedCost = SCAN_COST;
    info->estimatedRows = SCAN_ROWS;
    sqlite3_str_appendf(plan, "%s %llx", d->name, (unsigned long long)info->colUsed);
    for (int i = 0; i < info->nConstraint && n < MAX_CONDITIONS; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        int column = c->iColumn - t->shift, comparison = convert_comparison(c->op);
        bool is_file = t->shift && c->iColumn == 0 && comparison == TABLES_EQUAL;
        bool is_number =
            c->iColumn >= t->shift && d->columns[column].type <= TABLES_BOOLEAN && comparison >= 0;
        // IN would cause one scan for each value.
        if (!c->usable || !(is_file || is_number) ||
            (comparison == TABLES_EQUAL && sqlite3_vtab_in(info, i, -1)))
            continue;
        info->aConstraintUsage[i].argvIndex = ++n;
        info->estimatedCost *= CONDITION_SAVES;
        info->estimatedRows = info->estimatedRows / 2 + 1;
        sqlite3_str_appendf(plan, " %d %d", column, comparison);
    }
    info->idxStr = sqlite3_str_finish(plan);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *t, sqlite3_vtab_cursor **to)
{
    struct virtual_cursor *c = sqlite3_malloc(sizeof *c);
    (void)t;
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    *to = &c->base;
    return SQLITE_OK;
}

static void stop_scan(struct virtual_cursor *c)
{
    tables_stream_stop(c->stream);
    c->stream = NULL;
    c->row = NULL;
}

// Starts a scan. When out of memory, sets c->stream to NULL.
static void start_scan(struct virtual_cursor *c, const struct sql_virtual *v)
{
    struct tables_scan how = {.watch = sql_virtual_watch(v->settings, v->noted, c->file)};
    how.of[v->table] = c->wanted;
    c->stream = tables_stream_start(v->settings->files[c->file], NULL, &how);
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    struct virtual_cursor *c = (struct virtual_cursor *)cursor;
    stop_scan(c);
    free((char *)c->only_file);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int set_error(struct virtual_cursor *c, const char *text)
{
    struct virtual_table *t = (struct virtual_table *)c->base.pVtab;
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = sqlite3_mprintf("%s", text);
    return SQLITE_ERROR;
}

// Advances to the next row. At the end of a file, continues with the next file.
static int next_row(sqlite3_vtab_cursor *cursor)
{
    struct virtual_cursor *c = (struct virtual_cursor *)cursor;
    const struct sql_virtual *v = ((const struct virtual_table *)cursor->pVtab)->of;
    const struct sql_settings *s = v->settings;
    c->number++;
    while (c->file < s->n_files) {
        if (!c->only_file || strcmp(c->only_file, s->files[c->file]) == 0) {
            if (!c->stream)
                start_scan(c, v);
            if (!c->stream)
                return SQLITE_NOMEM;
            int rc = tables_stream_next(c->stream, NULL, &c->row, v->e);
            if (rc < 0)
                return set_error(c, v->e->text);
            if (rc > 0)
                return SQLITE_OK;
        }
        stop_scan(c);
        c->file++;
    }
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *cursor, int number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    struct virtual_cursor *c = (struct virtual_cursor *)cursor;
    const struct virtual_table *t = (const struct virtual_table *)cursor->pVtab;
    char *at;
    (void)number;
    stop_scan(c);
    free((char *)c->only_file);
    c->only_file = NULL;
    c->file = 0;
    c->wanted = (struct tables_wanted){.rows = true, .conditions = c->conditions};
    unsigned n_columns = tables_definitions[t->of->table].n_columns;
    c->wanted.columns =
        (uint32_t)(strtoull(strchr(plan, ' '), &at, 16) >> t->shift) & ((1u << n_columns) - 1);
    for (int i = 0; i < argc; i++) {
        long column = strtol(at, &at, 10), comparison = strtol(at, &at, 10);
        int type = sqlite3_value_type(argv[i]);
        if (column < 0 && type == SQLITE_TEXT &&
            !(c->only_file = strdup((const char *)sqlite3_value_text(argv[i]))))
            return SQLITE_NOMEM;
        if (column >= 0 && type == SQLITE_INTEGER)
            c->conditions[c->wanted.n_conditions++] =
                (struct tables_condition){.column = (uint8_t)column,
                                          .comparison = (uint8_t)comparison,
                                          .value = sqlite3_value_int64(argv[i])};
    }
    return next_row(cursor);
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    return ((struct virtual_cursor *)cursor)->row == NULL;
}

static int row_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *to)
{
    *to = ((struct virtual_cursor *)cursor)->number;
    return SQLITE_OK;
}

static int column_value(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int number)
{
    const struct virtual_cursor *c = (const struct virtual_cursor *)cursor;
    const struct virtual_table *t = (const struct virtual_table *)cursor->pVtab;
    int i = number - t->shift;
    if (i < 0) {
        sqlite3_result_text(to, t->of->settings->files[c->file], -1, SQLITE_STATIC);
        return SQLITE_OK;
    }
    if (!(c->row->present >> i & 1))
        return SQLITE_OK; // the value stays NULL
    switch (tables_definitions[t->of->table].columns[i].type) {
    case TABLES_INTEGER:
    case TABLES_BOOLEAN:
        sqlite3_result_int64(to, c->row->values[i].integer);
        break;
    case TABLES_NAME:
        sqlite3_result_text(to, c->row->values[i].text, -1, SQLITE_STATIC);
        break;
    case TABLES_TEXT:
        sqlite3_result_text(to, c->row->values[i].text, -1, SQLITE_TRANSIENT);
        break;
    }
    return SQLITE_OK;
}

int sql_virtual_add(sqlite3 *db, struct sql_virtual *v)
{
    // Because xCreate is NULL, queries can use the module as a table without CREATE VIRTUAL TABLE.
    static const sqlite3_module module = {
        .xConnect = connect_table,
        .xBestIndex = best_index,
        .xDisconnect = disconnect_table,
        .xOpen = open_cursor,
        .xClose = close_cursor,
        .xFilter = filter_rows,
        .xNext = next_row,
        .xEof = at_end,
        .xColumn = column_value,
        .xRowid = row_number,
    };
    return sqlite3_create_module_v2(db, tables_definitions[v->table].name, &module, v, NULL);
}
