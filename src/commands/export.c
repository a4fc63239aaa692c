#include "cli/command.h"
#include "commands/export_file.h"

#include <stdio.h>

extern const struct command cmd_export;

struct export_cli_options {
    const char *format;
    const char *output;
    uint64_t pid;
    bool force, stamps, list;
};

static const struct option options[] = {
    {'F', "format", OPTION_CHOICE, IO_EXPORT_CHOICES, NULL, "what to write; see above",
     offsetof(struct export_cli_options, format)},
    {'o', "output", OPTION_STRING, "FILE|-", NULL, "write to FILE, or to standard output as without this option",
     offsetof(struct export_cli_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct export_cli_options, force)},
    {'p', "pid", OPTION_NUMBER, "PID", "0", "of a trace, this process only", offsetof(struct export_cli_options, pid)},
    {0, "stamps", OPTION_FLAG, NULL, "true", "write when each call was, where FILE says it and the format holds it",
     offsetof(struct export_cli_options, stamps)},
    {0, "list", OPTION_FLAG, NULL, NULL, "print the names of the formats and exit",
     offsetof(struct export_cli_options, list)},
    {0},
};

static int list(void)
{
    for (const struct format *const *f = formats; *f; f++) {
        if ((*f)->put)
            puts((*f)->name);
    }
    return EXIT_DONE;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct export_cli_options *o = fields;
    struct err e = {0};
    if (o->list)
        return list();
    if (argc == 0)
        return usage_error(&cmd_export, "FILE is missing");
    if (!o->format)
        return usage_error(&cmd_export, "--format is missing: %s", IO_EXPORT_CHOICES);
    if (o->pid > UINT32_MAX)
        return usage_error(&cmd_export, "there is no process %llu", (unsigned long long)o->pid);
    const struct export_file_options how = {
        .format = format_find(o->format),
        .output = o->output ? o->output : "-",
        .force = o->force,
        .stamps = o->stamps,
        .pid = (uint32_t)o->pid,
    };
    if (export_file(argv[0], &how, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_export = {
    .name = "export",
    .operands = "FILE|-",
    .summary = "Write a trace or workload in another tool's format",
    .description =
        "Writes the calls of FILE so that the other tool reads them. A format that holds addresses is written from a "
        "raw "
        "trace as that was recorded, all processes of it if the format has several; for the others, the trace is "
        "converted first. What the format cannot hold is dropped or written as the nearest thing, and said on "
        "stderr." IO_EXPORT_HELP,
    .options = options,
    .options_bytes = sizeof(struct export_cli_options),
    .min_operands = 0,
    .max_operands = 1,
    .run = run,
};
