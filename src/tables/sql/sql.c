#include "tables/sql/sql.h"

#include "analysis/size_classes.h"
#include "tables/sql/output.h"
#include "tables/sql/virtual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 64 << 20 };

// A query. Events and blocks are virtual tables, unless the query would scan them repeatedly. The
// other tables are small. Tables that are not virtual are copied to a temporary database before the
// query runs. If this database becomes too large, SQLite writes it to disk.
struct sql {
    const struct sql_settings *settings;
    sqlite3 *db;
    struct sql_virtual events, blocks;
    bool *noted;
    struct err *e;
    uint32_t columns[TABLES_N]; // columns of the stored tables that the query reads
    bool reads[TABLES_N];
    bool is_stored[TABLES_N]; // not a virtual table
    bool checks;              // from now on, only permitted statements may run
    // Used while a file is being stored.
    const char *file;
    sqlite3_stmt *insert[TABLES_N];
};

static int set_error(struct sql *q, int code)
{
    if (sqlite3_errcode(q->db) == SQLITE_NOMEM && q->settings->max_memory_bytes)
        return err_set(q->e, -ENOMEM, "the query needs more memory than --max-memory");
    return err_set(q->e, code, "%s", sqlite3_errmsg(q->db));
}

static int execute_statement(struct sql *q, char *statement)
{
    int rc = statement ? sqlite3_exec(q->db, statement, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(statement);
    return rc == SQLITE_OK ? 0 : set_error(q, -EIO);
}

// Implements the SQL function size_class(SIZE), which returns the largest size in the same class.
// There are four classes per power of two.
static void size_class(sqlite3_context *to, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_int64 size = sqlite3_value_int64(values[0]);
    if (sqlite3_value_type(values[0]) != SQLITE_INTEGER || size < 0)
        return;
    uint64_t max = size_classes_four_max((uint64_t)size);
    sqlite3_result_int64(to, max > INT64_MAX ? INT64_MAX : (sqlite3_int64)max);
}

// Returns true for functions of SQLite and its shell that access files, programs or code.
static bool is_denied_function(const char *name)
{
    static const char *const denied[] = {"load_extension", "fts3_tokenizer", "readfile",
                                         "writefile", "edit"};
    for (size_t i = 0; name && i < sizeof denied / sizeof *denied; i++) {
        if (sqlite3_stricmp(name, denied[i]) == 0)
            return true;
    }
    return false;
}

// Allows a query to read the tables but nothing else, and records which columns it reads.
static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    struct sql *q = context;
    (void)c;
    (void)d;
    if (!q->checks || action == SQLITE_SELECT || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        return is_denied_function(b) ? SQLITE_DENY : SQLITE_OK;
    if (action != SQLITE_READ)
        return SQLITE_DENY;
    int table = a ? tables_find(a) : -1;
    // The name belongs to a common table expression or to one of SQLite's virtual tables. A virtual
    // table of SQLite is refused when it declares its columns.
    if (table < 0)
        return SQLITE_OK;
    q->reads[table] = true;
    for (unsigned i = 0; b && i < tables_definitions[table].n_columns; i++)
        q->columns[table] |= (uint32_t)(strcmp(b, tables_definitions[table].columns[i].name) == 0)
                             << i;
    return SQLITE_OK;
}

static int create_table(struct sql *q, unsigned table)
{
    char *columns = sql_virtual_columns(q->settings, (enum tables_id)table);
    int rc = columns
                 ? execute_statement(q, sqlite3_mprintf("CREATE TABLE %s(%s)",
                                                        tables_definitions[table].name, columns))
                 : -ENOMEM;
    sqlite3_free(columns);
    q->is_stored[table] = true;
    return rc;
}

static int create_tables(struct sql *q)
{
    int rc = 0;
    bool many = q->settings->n_files > 1;
    for (unsigned i = 0; rc == 0 && i < TABLES_N; i++) {
        if (i != TABLES_TABLE_EVENTS && i != TABLES_TABLE_BLOCKS)
            rc = create_table(q, i);
    }
    // The index speeds up joins.
    rc =
        rc < 0
            ? rc
            : execute_statement(q, sqlite3_mprintf("CREATE INDEX by_site ON sites(site, process%s)",
                                                   many ? ", file" : ""));
    return rc < 0 ? rc
                  : execute_statement(
                        q, sqlite3_mprintf("CREATE INDEX by_process ON processes(process%s)",
                                           many ? ", file" : ""));
}

// Sets the limits that the authorizer cannot enforce: the memory limit and the maximum length of
// values. Also disables extensions.
static void set_limits(const struct sql *q)
{
    uint64_t most = q->settings->max_memory_bytes;
    sqlite3_limit(q->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (most)
        sqlite3_hard_heap_limit64((sqlite3_int64)most);
}

static int open_database(struct sql *q)
{
    // A database without a name is a temporary file. SQLite writes to the file only if the data
    // does not fit in the cache.
    int rc = sqlite3_open("", &q->db);
    if (rc != SQLITE_OK)
        return q->db ? set_error(q, -EIO) : err_no_memory(q->e, NULL);
    set_limits(q);
    sqlite3_set_authorizer(q->db, authorize, q);
    q->events = (struct sql_virtual){q->settings, q->e, q->noted, TABLES_TABLE_EVENTS};
    q->blocks = (struct sql_virtual){q->settings, q->e, q->noted, TABLES_TABLE_BLOCKS};
    if (sql_virtual_add(q->db, &q->events) != SQLITE_OK ||
        sql_virtual_add(q->db, &q->blocks) != SQLITE_OK ||
        sqlite3_create_function(q->db, "size_class", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                size_class, NULL, NULL) != SQLITE_OK)
        return set_error(q, -EIO);
    // Use the virtual tables before the query. The first use of a virtual table declares it, and
    // the authorizer refuses declarations in a query.
    sqlite3_stmt *first = NULL;
    if (sqlite3_prepare_v2(q->db, "SELECT 1 FROM events, blocks", -1, &first, NULL) != SQLITE_OK)
        return set_error(q, -EIO);
    sqlite3_finalize(first);
    return create_tables(q);
}

static int store_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct sql *q = context;
    sqlite3_stmt *s = q->insert[table];
    const struct tables_definition *d = &tables_definitions[table];
    int shift = q->settings->n_files > 1;
    if (shift)
        sqlite3_bind_text(s, 1, q->file, -1, SQLITE_STATIC);
    for (unsigned i = 0; i < d->n_columns; i++) {
        int at = (int)i + 1 + shift;
        if (!(row->present >> i & 1))
            sqlite3_bind_null(s, at);
        else if (d->columns[i].type >= TABLES_NAME)
            sqlite3_bind_text(s, at, row->values[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(s, at, row->values[i].integer);
    }
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? 0 : set_error(q, -EIO);
}

static int prepare_insert(struct sql *q, unsigned table)
{
    sqlite3_str *text = sqlite3_str_new(q->db);
    sqlite3_str_appendf(text, "INSERT INTO %s VALUES(?%s", tables_definitions[table].name,
                        q->settings->n_files > 1 ? ", ?" : "");
    for (unsigned i = 1; i < tables_definitions[table].n_columns; i++)
        sqlite3_str_appendall(text, ", ?");
    sqlite3_str_appendall(text, ")");
    char *statement = sqlite3_str_finish(text);
    int rc = statement ? sqlite3_prepare_v2(q->db, statement, -1, &q->insert[table], NULL)
                       : SQLITE_NOMEM;
    sqlite3_free(statement);
    return rc == SQLITE_OK ? 0 : set_error(q, -EIO);
}

// Stores the small tables that the query reads, scanning each file once.
static int store_tables(struct sql *q)
{
    struct tables_scan scan = {.row = store_row, .context = q};
    bool any = false;
    int rc = 0;
    q->checks = false;
    for (unsigned i = 0; rc == 0 && i < TABLES_N; i++) {
        if (!q->reads[i] || !q->is_stored[i])
            continue;
        any = true;
        scan.of[i] = (struct tables_wanted){.rows = true, .columns = q->columns[i]};
        rc = prepare_insert(q, i);
    }
    if (rc == 0 && any)
        rc = execute_statement(q, sqlite3_mprintf("BEGIN"));
    for (size_t f = 0; rc == 0 && any && f < q->settings->n_files; f++) {
        q->file = q->settings->files[f];
        scan.watch = sql_virtual_watch(q->settings, q->noted, f);
        rc = tables_scan(q->file, &scan, q->e);
    }
    if (rc == 0 && any)
        rc = execute_statement(q, sqlite3_mprintf("COMMIT"));
    for (unsigned i = 0; i < TABLES_N; i++)
        sqlite3_finalize(q->insert[i]);
    q->checks = true; // SQLite also prepares statements while the query runs.
    return rc;
}

static int prepare_query(struct sql *q, sqlite3_stmt **to)
{
    const char *rest = NULL;
    q->checks = true;
    int rc = sqlite3_prepare_v2(q->db, q->settings->query, -1, to, &rest);
    if (rc == SQLITE_AUTH)
        return err_set(q->e, -EINVAL, "only SELECT statements can be run");
    if (rc != SQLITE_OK)
        return set_error(q, -EINVAL);
    if (!*to)
        return err_set(q->e, -EINVAL, "the query is empty");
    if (!sqlite3_stmt_readonly(*to)) // SQLite does not call the authorizer for VACUUM
        return err_set(q->e, -EINVAL, "only SELECT statements can be run");
    rest += strspn(rest, " \t\r\n;");
    if (*rest)
        return err_set(q->e, -EINVAL, "expected one statement, found a second: \"%.60s\"", rest);
    return 0;
}

// The rows of a query plan whose children or successors run more than once.
struct inner_loops {
    int parents[256];  // rows that have a loop
    int repeated[256]; // correlated subqueries and their descendants
    unsigned n_parents, n_repeated;
};

static bool has_number(const int *list, unsigned n, int number)
{
    while (n > 0 && list[n - 1] != number)
        n--;
    return n > 0;
}

// Reads a row of the query plan. Returns the virtual table that the row scans more than once, or
// -1.
static int find_repeated_scan(struct inner_loops *l, int id, int parent, const char *detail)
{
    enum { MAX = sizeof l->parents / sizeof *l->parents };
    const char *virtual = strstr(detail, " VIRTUAL TABLE INDEX "), *name = virtual;
    bool is_loop = strncmp(detail, "SCAN ", 5) == 0 || strncmp(detail, "SEARCH ", 7) == 0;
    bool repeats = has_number(l->repeated, l->n_repeated, parent),
         is_inner = repeats || has_number(l->parents, l->n_parents, parent);
    if ((repeats || strncmp(detail, "CORRELATED ", 11) == 0) && l->n_repeated < MAX)
        l->repeated[l->n_repeated++] = id;
    if (is_loop && l->n_parents < MAX)
        l->parents[l->n_parents++] = parent;
    if (!is_loop || !is_inner || !virtual || !(name = strchr(virtual, ':')))
        return -1;
    for (int i = 0; i < TABLES_N; i++) {
        size_t n = strlen(tables_definitions[i].name);
        if (strncmp(name + 1, tables_definitions[i].name, n) == 0 && name[1 + n] == ' ')
            return i;
    }
    return -1;
}

// Stores a virtual table, with an index on each column of event numbers that the query reads.
// For other columns, SQLite creates indexes itself, except in correlated subqueries.
static int store_virtual_table(struct sql *q, unsigned table)
{
    static const char *const keys[] = {"event", "block", "free_event"};
    const struct tables_definition *t = &tables_definitions[table];
    int rc = create_table(q, table);
    for (unsigned i = 0; i < t->n_columns; i++) {
        for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (rc == 0 && q->columns[table] >> i & 1 && strcmp(t->columns[i].name, keys[k]) == 0)
                rc = execute_statement(q, sqlite3_mprintf("CREATE INDEX %s_by_%s ON %s(%s)",
                                                          t->name, keys[k], t->name, keys[k]));
        }
    }
    return rc;
}

// Stores the virtual tables that the query would scan more than once. Returns 1 if a table was
// changed, 0, or a negative errno.
static int store_inner_tables(struct sql *q)
{
    struct inner_loops loops = {.n_parents = 0};
    sqlite3_stmt *plan = NULL;
    bool inner[TABLES_N] = {false};
    char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", q->settings->query);
    int rc = text ? sqlite3_prepare_v2(q->db, text, -1, &plan, NULL) : SQLITE_NOMEM, changed = 0;
    while (rc == SQLITE_OK && sqlite3_step(plan) == SQLITE_ROW) {
        int table =
            find_repeated_scan(&loops, sqlite3_column_int(plan, 0), sqlite3_column_int(plan, 1),
                               (const char *)sqlite3_column_text(plan, 3));
        if (table >= 0)
            inner[table] = true;
    }
    sqlite3_finalize(plan);
    sqlite3_free(text);
    if (rc != SQLITE_OK)
        return set_error(q, -EIO);
    q->checks = false;
    for (unsigned i = 0; rc == 0 && i < TABLES_N; i++) {
        changed |= inner[i];
        rc = inner[i] ? store_virtual_table(q, i) : 0;
    }
    q->checks = true;
    return rc < 0 ? rc : changed;
}

int sql_run(const struct sql_settings *s, struct err *e)
{
    struct sql q = {.settings = s, .e = e, .noted = calloc(s->n_files + 1, sizeof(bool))};
    sqlite3_stmt *statement = NULL;
    int rc = q.noted ? open_database(&q) : err_no_memory(e, NULL);
    for (size_t i = 0; rc == 0 && i < s->n_files; i++)
        rc = tables_check(s->files[i], e);
    rc = rc < 0 ? rc : prepare_query(&q, &statement);
    while (rc == 0 && !sqlite3_stmt_isexplain(statement) && (rc = store_inner_tables(&q)) > 0) {
        sqlite3_finalize(statement);
        rc = prepare_query(&q, &statement);
    }
    rc = rc < 0 ? rc : store_tables(&q);
    if (rc == 0 && sql_output(statement, s) != SQLITE_DONE)
        rc = e->text[0] ? -EIO : set_error(&q, -EIO);
    sqlite3_finalize(statement);
    sqlite3_close(q.db);
    free(q.noted);
    return rc;
}
