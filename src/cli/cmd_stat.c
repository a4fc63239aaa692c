#include "cli/command.h"
#include "cli/open_file.h"
#include "cli/stat.h"

#include <stdio.h>

extern const struct command cmd_stat;

struct stat_options {
    bool json, brief;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct stat_options, json)},
    {0, "brief", OPTION_FLAG, NULL, NULL,
     "only what a workload says of itself at its end, without reading the rest; of a trace, the same of each process",
     offsetof(struct stat_options, brief)},
    {0},
};

static int run(const void *fields, int argc, char **argv)
{
    const struct stat_options *o = fields;
    struct file_stat s;
    struct err e = {0};
    (void)argc;
    if (file_stat(&s, argv[0], o->brief, &e) < 0)
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
        "Tells how a program uses its heap: calls, sizes, lifetimes, what is live and when it is most, realloc, "
        "alignment, what "
        "is never freed, and which threads free whose blocks. 'heaptape report' shows the same as a page, and "
        "docs/report.md says "
        "what each number means.\n\n"
        "A trace is put in order for that as 'convert' does, every process on its own. Counts of several processes add "
        "up; live "
        "bytes too, and so do their peaks, which may have been at different times. What cannot be added up, such as "
        "the timeline, is that of the process with most events.",
    .options = options,
    .options_bytes = sizeof(struct stat_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
