#include "tables/sql/sql.h"

#include "cli/command.h"
#include "report/text/watch.h"
#include "tables/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

struct sql_options {
    bool json, csv, csv_safe, tables;
    uint64_t max_memory_bytes, timeout_ns;
};

#define AT(member) offsetof(struct sql_options, member)

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", AT(json)},
    {0, "csv", OPTION_FLAG, NULL, NULL, "print CSV with the names of the columns in the first line",
     AT(csv)},
    {0, "csv-safe", OPTION_FLAG, NULL, NULL,
     "with --csv, mark cells that a spreadsheet would evaluate", AT(csv_safe)},
    {0, "max-memory", OPTION_SIZE, "SIZE", NULL,
     "stop a query for which SQLite allocates more than SIZE (default: no limit)",
     AT(max_memory_bytes), .min = 1 << 20, .max = INT64_MAX},
    {0, "timeout", OPTION_SECONDS, "SECONDS", NULL, "stop after SECONDS (default: no limit)",
     AT(timeout_ns), .min = 1, .max = OPTION_MAX_NS},
    {0, "tables", OPTION_FLAG, NULL, NULL,
     "print the tables, their columns, types, units and meanings, and exit", AT(tables)},
    {0},
};

static const struct command_mode modes[] = {
    {.option = "json"},
    {.option = "csv", .accepts = "csv-safe"},
    {0},
};

static int print_tables(void)
{
    for (unsigned i = 0; i < TABLES_N; i++) {
        const struct tables_definition *t = &tables_definitions[i];
        printf("%s%s: %s\n", i ? "\n" : "", t->name, t->meaning);
        for (unsigned c = 0; c < t->n_columns; c++) {
            const struct tables_column *column = &t->columns[c];
            printf("  %-15s %-8s %-6s %s\n", column->name, tables_type_name(column->type),
                   column->unit, column->meaning);
        }
    }
    return EXIT_DONE;
}

static char timeout_text[96];

static void on_timeout(int sig)
{
    (void)sig;
    ssize_t ignored = write(STDERR_FILENO, timeout_text, strlen(timeout_text));
    (void)ignored;
    _exit(EXIT_FAILED);
}

// Limits the run time with SIGALRM, so that the limit includes scans and symbol lookup as well as
// the query. Exiting in the handler is safe: only standard output is open for writing, and SQLite's
// temporary files have no names.
static void end_after(uint64_t ns)
{
    snprintf(timeout_text, sizeof timeout_text,
             "heaptape: the query did not end within %.9g s (--timeout)\n", (double)ns / 1e9);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, on_timeout);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    const struct timeval left = {(time_t)(ns / CLOCK_NS_PER_S),
                                 (suseconds_t)(ns % CLOCK_NS_PER_S / 1000 + 1)};
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = left}, NULL);
}

static int run_sql(const void *fields, char **argv)
{
    const struct sql_options *o = fields;
    struct err e = {0};
    if (o->tables)
        return print_tables();
    if (cli_common.n_operands < 2)
        return usage_error(&cmd_sql,
                           cli_common.n_operands ? "the query is missing" : "FILE is missing");
    for (int i = 0; i + 1 < cli_common.n_operands; i++) {
        if (strcmp(argv[i], "-") == 0)
            return usage_error(
                &cmd_sql,
                "standard input is not supported, because a query may read a file several times");
    }
    const char *last = argv[cli_common.n_operands - 1];
    if (access(argv[0], F_OK) < 0 && access(last, F_OK) == 0)
        return usage_error(&cmd_sql, "'%s' is a file, but the query must be the last operand",
                           last);
    const struct sql_settings how = {
        .files = (const char *const *)argv,
        .n_files = (size_t)cli_common.n_operands - 1,
        .query = last,
        .csv_safe = o->csv_safe,
        .max_memory_bytes = o->max_memory_bytes,
        .form = o->json  ? SQL_JSON
                : o->csv ? SQL_CSV
                         : SQL_TABLE,
        .to = stdout,
        .watch = watch_notes(),
    };
    if (o->timeout_ns)
        end_after(o->timeout_ns);
    int rc = sql_run(&how, &e);
    if (rc == -EINVAL)
        die(EXIT_USAGE, "query: %s", e.text);
    die_on_error(rc, EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command cmd_sql = {
    .name = "sql",
    .operands = "TRACE|WORKLOAD... QUERY",
    .summary = "Run an SQL query on the events and blocks of recordings",
    .examples =
        {
            {"List the tables and their columns", "heaptape sql --tables"},
            {"Count the events of each kind",
             "heaptape sql a.ht 'SELECT kind, count(*) FROM events GROUP BY kind'"},
            {"Write the biggest blocks as CSV",
             "heaptape sql --csv a.ht 'SELECT * FROM blocks ORDER BY size DESC LIMIT 9'"},
        },
    .options = options,
    .options_bytes = sizeof(struct sql_options),
    .modes = {modes},
    .min_operands = 0,
    .max_operands = 1000,
    .run = run_sql,
};
