// Runs SQL queries on the tables of traces and workloads (tables/tables.h), using SQLite.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct convert_watch;

enum sql_form { SQL_TABLE, SQL_JSON, SQL_CSV };

struct sql_settings {
    const char *const *files; // each file must be readable several times
    size_t n_files;           // if there are several files, each table has a column `file`
    const char *query;
    enum sql_form form;
    bool csv_safe;             // as in struct tables_export_settings
    uint64_t max_memory_bytes; // limit on the memory of SQLite; 0 means no limit
    FILE *to;
    const struct convert_watch *watch; // may be NULL
};

// Runs the query and prints its rows. Returns 0, or a negative errno with the message set: -EINVAL
// if the query is invalid, -ENOTSUP if heaptape was built without SQLite.
int sql_run(const struct sql_settings *s, struct err *e);
