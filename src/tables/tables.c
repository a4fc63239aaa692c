#include "tables/tables.h"

#include <string.h>

#define COLUMN(SYMBOL, name, type, unit, meaning) {name, TABLES_##type, unit, meaning},
static const struct tables_column events[] = {TABLES_EVENTS(COLUMN)};
static const struct tables_column blocks[] = {TABLES_BLOCKS(COLUMN)};
static const struct tables_column sites[] = {TABLES_SITES(COLUMN)};
static const struct tables_column processes[] = {TABLES_PROCESSES(COLUMN)};
static const struct tables_column samples[] = {TABLES_SAMPLES(COLUMN)};

#define COUNT(columns) (sizeof(columns) / sizeof(columns)[0])
_Static_assert(COUNT(events) <= TABLES_MAX_COLUMNS && COUNT(blocks) <= TABLES_MAX_COLUMNS &&
                   COUNT(sites) <= TABLES_MAX_COLUMNS && COUNT(processes) <= TABLES_MAX_COLUMNS &&
                   COUNT(samples) <= TABLES_MAX_COLUMNS,
               "a row has room for every column");

#define ROW(SYMBOL, name, meaning) {name, meaning, COLUMNS_OF_##SYMBOL, COUNT(COLUMNS_OF_##SYMBOL)},
#define COLUMNS_OF_EVENTS          events
#define COLUMNS_OF_BLOCKS          blocks
#define COLUMNS_OF_SITES           sites
#define COLUMNS_OF_PROCESSES       processes
#define COLUMNS_OF_SAMPLES         samples
const struct tables_definition tables_definitions[TABLES_N] = {TABLES(ROW)};

const char *tables_type_name(enum tables_type type)
{
    return type == TABLES_INTEGER ? "integer" : type == TABLES_BOOLEAN ? "boolean" : "text";
}

int tables_find(const char *name)
{
    for (int i = 0; i < TABLES_N; i++) {
        if (strcmp(tables_definitions[i].name, name) == 0)
            return i;
    }
    return -1;
}
