// SQLite virtual tables for events and blocks. Rows are not stored: each scan reads the file.
#pragma once

#include "tables/sql/sql.h"
#include "tables/tables.h"

#include <sqlite3.h>

// Context of a virtual table. Borrowed until the connection closes.
struct sql_virtual {
    const struct sql_settings *settings;
    struct err *e; // error of a failed scan
    bool *noted;   // indexed by file: true if the notes about the file were printed
    enum tables_id table;
};

// Adds the virtual table to the connection. Returns an SQLite result code.
int sql_virtual_add(sqlite3 *db, struct sql_virtual *v);

// Returns the columns of a table in SQL syntax ("a INTEGER, b TEXT"). If there are several files,
// `file` is the first column. Returns NULL when out of memory. Free the text with sqlite3_free.
char *sql_virtual_columns(const struct sql_settings *s, enum tables_id table);

// For the first scan of a file, returns the watch in the settings. For later scans, returns NULL.
const struct convert_watch *sql_virtual_watch(const struct sql_settings *s, bool *noted,
                                              size_t file);
