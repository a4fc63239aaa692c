#include "cli/command.h"
#include "cli/open_file.h"
#include "cli/stat.h"

#include <stdio.h>

extern const struct command cmd_stat;

struct stat_options {
    bool json;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct stat_options, json)},
    {0},
};

static int run(const void *fields, int argc, char **argv)
{
    const struct stat_options *o = fields;
    struct file_stat s;
    struct err e = {0};
    (void)argc;
    if (file_stat(&s, argv[0], &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (s.cut.text[0])
        note("%s", s.cut.text);
    (o->json ? print_stat_json : print_stat_text)(&s);
    file_stat_release(&s);
    fflush(stdout);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
    return EXIT_DONE;
}

const struct command cmd_stat = {
    .name = "stat",
    .operands = "FILE|-",
    .summary = "Print numbers of a trace or workload",
    .description =
        "Counts events by kind, threads, processes, requested and live bytes. A trace is put in order for that as "
        "'convert' "
        "does, every process on its own; live bytes of several processes add up, and so do their peaks, which may have "
        "been at different times.",
    .options = options,
    .options_bytes = sizeof(struct stat_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
