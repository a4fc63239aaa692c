#include "cli/command.h"
#include "commands/open_file.h"
#include "commands/stat_gather.h"
#include "commands/stat_sites.h"

#include <stdio.h>
#include <string.h>

extern const struct command cmd_stat;

struct stat_options {
    bool json, brief;
    const char *by, *format, *weight;
    uint64_t top;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct stat_options, json)},
    {0, "brief", OPTION_FLAG, NULL, NULL,
     "only what a workload says of itself at its end, without reading the rest; of a trace, the same of each process",
     offsetof(struct stat_options, brief)},
    {0, "by", OPTION_CHOICE, "caller", NULL, "what each call site takes and holds, where 'record --callers' noted them",
     offsetof(struct stat_options, by)},
    {0, "format", OPTION_CHOICE, "text|json|folded|pprof", "text",
     "of --by: folded for flame graphs, pprof for its profile.proto", offsetof(struct stat_options, format)},
    {0, "weight", OPTION_CHOICE, "peak|end|bytes|calls", "peak",
     "of --by: what comes first, and how much a folded line weighs: bytes live at the peak, at the end, bytes taken, "
     "calls",
     offsetof(struct stat_options, weight)},
    {0, "top", OPTION_NUMBER, "N", "20", "of --by: show this many sites as text, 0 for all",
     offsetof(struct stat_options, top)},
    {0},
};

static int run_by_caller(const struct stat_options *o, const char *path)
{
    struct err e = {0};
    struct by_caller_options how = {.top = o->top};
    how.format = o->json || strcmp(o->format, "json") == 0 ? BY_CALLER_JSON
                 : strcmp(o->format, "folded") == 0        ? BY_CALLER_FOLDED
                 : strcmp(o->format, "pprof") == 0         ? BY_CALLER_PPROF
                                                           : BY_CALLER_TEXT;
    how.weight = strcmp(o->weight, "calls") == 0   ? PROFILE_CALLS
                 : strcmp(o->weight, "bytes") == 0 ? PROFILE_BYTES
                 : strcmp(o->weight, "end") == 0   ? PROFILE_LIVE
                                                   : PROFILE_PEAK;
    if (by_caller(path, &how, &e) < 0)
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
    if (o->by)
        return run_by_caller(o, argv[0]);
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
        "docs/reference/figures.md says "
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
