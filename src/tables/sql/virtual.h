// Events and blocks as virtual tables of SQLite. They are not stored: each scan reads the file.
#ifndef HEAPTAPE_SQL_VIRTUAL_H
#define HEAPTAPE_SQL_VIRTUAL_H

#include "tables/sql/sql.h"
#include "tables/tables.h"

#include <sqlite3.h>

// Context of a virtual table. Borrowed until the connection closes.
struct sql_virtual {
    const struct sql_settings *settings;
    struct err *e; // error of a failed scan
    bool *noted;   // by file: notes were printed
    enum tables_id table;
};

// Adds the virtual table to the connection. Returns a result code of SQLite.
int sql_virtual_add(sqlite3 *db, struct sql_virtual *v);

// Returns the columns of a table in SQL, "a INTEGER, b TEXT", preceded by `file` if there are
// several files. Free with sqlite3_free. Returns NULL when out of memory.
char *sql_virtual_columns(const struct sql_settings *s, enum tables_id table);

// Returns the watch of the settings for the first scan of a file, and NULL for further scans.
const struct convert_watch *sql_virtual_watch(const struct sql_settings *s, bool *noted,
                                              size_t file);

#endif
