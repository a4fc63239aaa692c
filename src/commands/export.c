#include "tables/export.h"
#include "cli/command.h"
#include "cli/options.h"
#include "formats/export_file.h"
#include "report/text/watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHOICES (&(FORMATS_TABLE(FORMATS_EXPORT_CHOICE) "|csv|parquet")[1])

// The formats of 'stat --by site' that other tools read.
#define PROFILES "folded|pprof|speedscope|firefox|jeprof"

// A format that contains calls, a table or a profile. Only the member for this content is not NULL.
struct export_cli_format {
    const struct format *calls;
    const struct tables_format *table;
    const char *profile; // not written by this command
};

struct export_cli_options {
    struct export_cli_format format;
    int table; // enum tables_id
    const char *output;
    uint64_t pid;
    bool force, timestamps, list, partition, csv_safe;
};

static int parse_format(const char *name, void *field)
{
    struct export_cli_format *f = field;
    f->table = strcmp(name, tables_csv.name) == 0       ? &tables_csv
               : strcmp(name, tables_parquet.name) == 0 ? &tables_parquet
                                                        : NULL;
    f->profile = options_parse_choice(PROFILES, name) >= 0 ? name : NULL;
    return f->table || f->profile ? 0 : formats_parse_export(name, &f->calls);
}

#define AT(member) offsetof(struct export_cli_options, member)

static const struct option options[] = {
    {'F', "format", OPTION_PARSED, CHOICES, NULL,
     "write this format (see below); for " PROFILES ", use 'heaptape stat --by site'", AT(format),
     .shown = "FORMAT", .parse = parse_format},
    {'t', "table", OPTION_CHOICE, "events|blocks|sites|processes|samples", NULL,
     "write this table, with --format csv or parquet", AT(table)},
    {0, "partition", OPTION_FLAG, NULL, NULL,
     "with --table, write one file for each process below the directory FILE", AT(partition)},
    {0, "csv-safe", OPTION_FLAG, NULL, NULL,
     "with --format csv, mark cells that a spreadsheet would evaluate", AT(csv_safe)},
    {'o', "output", OPTION_STRING, "FILE|-", NULL, "write to FILE (default: standard output)",
     AT(output)},
    OPTION_FORCE(struct export_cli_options),
    {'p', "pid", OPTION_NUMBER, "PID", NULL, "export only this process of a trace", AT(pid),
     .min = 1, .max = UINT32_MAX},
    {0, "timestamps", OPTION_FLAG, NULL, "on", "omit timestamps", AT(timestamps)},
    {0, "list", OPTION_FLAG, NULL, NULL, "print the names of the formats and exit", AT(list)},
    {0},
};

static bool is_csv(const void *fields, int operands)
{
    (void)operands;
    return ((const struct export_cli_options *)fields)->format.table == &tables_csv;
}

static bool is_parquet(const void *fields, int operands)
{
    (void)operands;
    return ((const struct export_cli_options *)fields)->format.table == &tables_parquet;
}

// A table contains all processes and columns. Therefore --pid and --timestamps are only for other
// formats.
static const struct command_mode modes[] = {
    {.selects = is_csv, .name = "--format csv", .accepts = "table|partition|csv-safe"},
    {.selects = is_parquet, .name = "--format parquet", .accepts = "table|partition"},
    {.accepts = "pid|timestamps"},
};

static int list_formats(void)
{
    for (const struct format *const *f = formats; *f; f++) {
        if (formats_is_written(*f))
            puts((*f)->name);
    }
    puts("csv\nparquet");
    return EXIT_DONE;
}

static int export_table(const struct export_cli_options *o, const char *from,
                        const struct convert_watch *watch)
{
    struct err e = {0};
    const struct tables_export_settings how = {
        .format = o->format.table,
        .table = (enum tables_id)o->table,
        .output = o->output ? o->output : "-",
        .force = o->force,
        .csv_safe = o->csv_safe,
        .watch = watch,
    };
    die_on_error((o->partition ? tables_partition : tables_export)(from, &how, &e), EXIT_FAILED,
                 &e);
    return EXIT_DONE;
}

static int run_export(const void *fields, char **argv)
{
    const struct export_cli_options *o = fields;
    struct err e = {0};
    if (o->list)
        return list_formats();
    if (!argv[0])
        return usage_error(&cmd_export, "FILE is missing");
    if (o->format.profile)
        return usage_error(&cmd_export,
                           "%s is a profile: use 'heaptape stat --by site --format %s'",
                           o->format.profile, o->format.profile);
    if (!o->format.calls && !o->format.table)
        return usage_error(&cmd_export, "--format is missing: %s", CHOICES);
    if (o->format.table && o->table < 0)
        return usage_error(&cmd_export, "--format %s writes a table: name it with --table",
                           o->format.table->name);
    if (o->format.table && !o->partition && o->output && strstr(o->output, "%p"))
        return usage_error(&cmd_export,
                           "-o %s: a table contains all processes; use --partition "
                           "for one file per process",
                           o->output);
    if (o->partition && (!o->output || strcmp(o->output, "-") == 0))
        return usage_error(&cmd_export, "--partition needs a directory: name it with -o");
    bool on_terminal = (!o->output || strcmp(o->output, "-") == 0) && isatty(STDOUT_FILENO);
    const struct convert_watch *watch = on_terminal ? watch_notes() : watch_begin("export");
    if (o->format.table)
        return export_table(o, argv[0], watch);
    const struct export_settings how = {
        .format = o->format.calls,
        .output = o->output ? o->output : "-",
        .force = o->force,
        .stamps = o->timestamps,
        // Progress would overwrite the export on a terminal.
        .watch = watch,
        .pid = (uint32_t)o->pid,
    };
    die_on_error(export_file(argv[0], &how, &e), EXIT_FAILED, &e);
    return EXIT_DONE;
}

static const struct command_word words[] = {
    FORMATS_EXPORT_WORDS{"csv", "a table of --table, for databases and spreadsheets"},
    {"parquet", "a table of --table, for DuckDB, Spark or pandas"},
    {0},
};

const struct command cmd_export = {
    .name = "export",
    .operands = "FILE|-",
    .summary = "Convert a trace or workload to another tool's format",
    .words_title = "Formats",
    .words = words,
    .examples =
        {
            {"Write a directory for babeltrace2 and Trace Compass",
             "heaptape export --format ctf -o cc.ctf cc.ht\nbabeltrace2 cc.ctf"},
            {"Play a recording with Firefox's logalloc-replay",
             "heaptape export --format logalloc-munged cc.ht | ./logalloc-replay"},
            {"Write all blocks as a table for DuckDB or pandas",
             "heaptape export --format parquet --table blocks -o blocks.parquet cc.ht"},
        },
    .options = options,
    .options_bytes = sizeof(struct export_cli_options),
    .modes = {modes},
    .min_operands = 0,
    .max_operands = 1,
    .run = run_export,
};
