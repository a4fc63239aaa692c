#include "cli/command.h"
#include "commands/stat_gather.h"
#include "commands/stat_sites.h"

#include <stdio.h>

extern const struct command cmd_stat;

enum stat_by { STAT_BY_NOTHING = -1, STAT_BY_SITE };

struct stat_options {
    bool json, brief;
    enum stat_by by;
    enum stat_sites_format format;
    enum profile_weight weight;
    uint64_t top;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct stat_options, json)},
    {0, "brief", OPTION_FLAG, NULL, NULL,
     "print only the totals, which a workload stores in its summary; the rest of the workload is not read",
     offsetof(struct stat_options, brief)},
    {0, "by", OPTION_CHOICE, "site", NULL,
     "print what each call site allocated and what of it is live; needs a recording made with --stacks",
     offsetof(struct stat_options, by)},
    {0, "format", OPTION_CHOICE, "text|json|folded|pprof", "text",
     "with --by: output format; folded is for flame graphs, pprof is its profile.proto",
     offsetof(struct stat_options, format)},
    {0, "weight", OPTION_CHOICE, "peak|end|bytes|allocs", "peak",
     "with --by: sort by this and use it as the weight of folded lines: bytes live at the peak, bytes live at the end, "
     "allocated bytes, or number of allocations",
     offsetof(struct stat_options, weight)},
    {0, "top", OPTION_NUMBER, "N", "20", "with --by: print this many call sites as text, 0 for all",
     offsetof(struct stat_options, top)},
    {0},
};

static int run_by_site(const struct stat_options *o, const char *path)
{
    struct err e = {0};
    struct stat_sites_options how = {
        .format = o->json ? STAT_SITES_JSON : o->format, .weight = o->weight, .top = o->top};
    if (stat_sites(path, &how, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    fflush(stdout);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
    return EXIT_DONE;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct stat_options *o = fields;
    struct file_stat s;
    struct err e = {0};
    (void)argc;
    if (o->by == STAT_BY_SITE)
        return run_by_site(o, argv[0]);
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
    .summary = "Print heap usage statistics of a trace or workload",
    .description =
        "Prints how a program uses its heap: calls, sizes, lifetimes, live bytes and their peak, realloc, alignment, "
        "blocks that are never freed, and frees by other threads. 'heaptape report' shows the same figures as an HTML "
        "report; docs/reference/figures.md defines each figure.\n\n"
        "The events of a trace are first put in order as 'convert' does, each process on its own. Counts and live "
        "bytes of several processes are added up. So are their peaks, although they may not have been reached at the "
        "same time. Figures that cannot be added up, such as the timeline, are those of the process with the most "
        "events.",
    .options = options,
    .options_bytes = sizeof(struct stat_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
