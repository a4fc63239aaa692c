// The large tables, events and blocks, as virtual tables of SQLite: nothing is stored, each scan reads the file.
#ifndef HEAPTAPE_SQL_VIRTUAL_H
#define HEAPTAPE_SQL_VIRTUAL_H

#include "tables/sql/sql.h"
#include "tables/tables.h"

#include <sqlite3.h>

// What the virtual tables share; all of it is borrowed until the connection is closed.
struct sql_virtual {
    const struct sql_settings *settings;
    struct err *e; // of a scan that failed
    bool *noted;   // by file: its notes have been printed
    enum tables_id table;
};

// Adds the table of that context to the connection. A result of SQLite.
int sql_virtual_add(sqlite3 *db, struct sql_virtual *v);

// The columns of a table as SQL has them, "a INTEGER, b TEXT", with `file` first if there are several files; for
// sqlite3_free. NULL when out of memory.
char *sql_virtual_columns(const struct sql_settings *s, enum tables_id table);

// Notes for a scan of the file: those of the settings, the first time.
const struct convert_watch *sql_virtual_watch(const struct sql_settings *s, bool *noted,
                                              size_t file);

#endif
