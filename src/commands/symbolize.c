#include "analysis/symbols/symbolize.h"

#include "analysis/symbols/symbols.h"
#include "cli/command.h"
#include "report/text/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct symbolize_options {
    const char *output;
    const char *debug_dirs;
    bool force;
};

#define AT(member) offsetof(struct symbolize_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE", NULL,
     "write a copy with the names instead of changing the file", AT(output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace the file of -o if it exists", AT(force)},
    {0, "debug-dir", OPTION_STRING, "DIR[:DIR...]", NULL,
     "search DIR first for executables and debug files", AT(debug_dirs)},
    {0},
};

static int run_symbolize(const void *fields, char **argv)
{
    const struct symbolize_options *o = fields;
    struct symbolize_result r;
    struct err e = {0};
    if (strcmp(argv[0], "-") == 0 || (o->output && strcmp(o->output, "-") == 0))
        return usage_error(&cmd_symbolize, "'-' is not supported: name files");
    symbols_debug_dirs(o->debug_dirs);
    const struct symbolize_settings how = {argv[0], o->output, o->force, watch_begin("symbolize")};
    int rc = symbolize(&how, &r, &e);
    symbols_debug_dirs(NULL);
    die_on_error(rc, EXIT_FAILED, &e);
    note("%s: named %" PRIu64 " of %" PRIu64 " addresses", o->output ? o->output : argv[0], r.named,
         r.addresses);
    if (r.missing[0])
        note("%s (and possibly other files) is missing or differs from the recorded file (try "
             "--debug-dir)",
             r.missing);
    symbols_note_refused(note_text);
    return EXIT_DONE;
}

const struct command cmd_symbolize = {
    .name = "symbolize",
    .operands = "TRACE|WORKLOAD",
    .summary = "Store function names in a trace or workload",
    .examples =
        {
            {"Store the names before sending a recording to someone else",
             "heaptape symbolize program.ht"},
            {"Store the names in a copy", "heaptape symbolize -o named.ht program.ht"},
            {"Use debug files of the machine that made the recording",
             "heaptape symbolize --debug-dir /srv/symbols program.htw"},
        },
    .options = options,
    .options_bytes = sizeof(struct symbolize_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_symbolize,
};
