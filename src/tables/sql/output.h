// Prints the rows that a statement returns.
#pragma once

#include "tables/sql/sql.h"

#include <sqlite3.h>

// Runs the statement to completion. Returns the last result of sqlite3_step, or SQLITE_NOMEM.
int sql_output(sqlite3_stmt *statement, const struct sql_settings *settings);
