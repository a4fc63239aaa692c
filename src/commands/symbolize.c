#include "analysis/symbols/symbolize.h"

#include "analysis/symbols/symbols.h"
#include "cli/command.h"
#include "report/text/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const struct command cmd_symbolize;

struct symbolize_options {
    const char *output;
    const char *debug_dirs;
    bool force;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE", NULL,
     "write a copy with the names instead of changing the file",
     offsetof(struct symbolize_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace the file of -o if it exists",
     offsetof(struct symbolize_options, force)},
    {0, "debug-dir", OPTION_STRING, "DIR[:DIR...]", NULL,
     "look for executables and debug files in DIR first",
     offsetof(struct symbolize_options, debug_dirs)},
    {0},
};

static int run(const void *fields, int argc, char **argv)
{
    const struct symbolize_options *o = fields;
    struct symbolize_result r;
    struct err e = {0};
    (void)argc;
    if (strcmp(argv[0], "-") == 0 || (o->output && strcmp(o->output, "-") == 0))
        return usage_error(&cmd_symbolize, "works on files, not on standard input or output");
    symbols_debug_dirs(o->debug_dirs);
    int rc = symbolize(argv[0], o->output, o->force, watch_begin("symbolize"), &r, &e);
    symbols_debug_dirs(NULL);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    note("%s: named %" PRIu64 " of %" PRIu64 " addresses", o->output ? o->output : argv[0], r.named,
         r.addresses);
    if (r.missing[0])
        note(
            "%s, and perhaps others, is missing or is not the file that was recorded (try --debug-dir)",
            r.missing);
    symbols_note_refused(note_text);
    return EXIT_DONE;
}

const struct command cmd_symbolize = {
    .name = "symbolize",
    .operands = "TRACE|WORKLOAD",
    .summary = "Write the names of functions into a trace or workload",
    .examples =
        {
            {"Write the names into a recording before it is sent to somebody",
             "heaptape symbolize program.ht"},
            {"Write them into a copy", "heaptape symbolize -o named.ht program.ht"},
            {"Look them up in debug files that were fetched for the machine that recorded",
             "heaptape symbolize --debug-dir /srv/symbols program.htw"},
        },
    .options = options,
    .options_bytes = sizeof(struct symbolize_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
