#include "analysis/symbolize.h"

#include "analysis/symbols.h"
#include "cli/command.h"
#include "print/watch.h"

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
    {'o', "output", OPTION_STRING, "FILE", NULL, "write a copy with the names instead of changing the file",
     offsetof(struct symbolize_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace the file of -o if it exists",
     offsetof(struct symbolize_options, force)},
    {0, "debug-dir", OPTION_STRING, "DIR[:DIR...]", NULL,
     "look for the recorded executables and libraries, and for their debug files, in DIR first: by build ID as "
     "DIR/.build-id/xx/yyy and yyy.debug, by their recorded path below DIR, and by their name in DIR",
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
    note("%s: named %" PRIu64 " of %" PRIu64 " addresses", o->output ? o->output : argv[0], r.named, r.addresses);
    if (r.missing[0])
        note("%s, and perhaps others, is missing or is not the file that was recorded (try --debug-dir)", r.missing);
    symbols_note_refused(note_text);
    return EXIT_DONE;
}

const struct command cmd_symbolize = {
    .name = "symbolize",
    .operands = "TRACE|WORKLOAD",
    .summary = "Write the names of functions into a trace or workload",
    .description =
        "Looks up the function, the inlined functions, the source file and the line of each address in the stacks of a "
        "recording made with --stacks, and writes them into the file. From then on, 'heaptape stat' and 'heaptape "
        "report' need neither the executables nor their debug files: the file can be read on any machine.\n\n"
        "A file is used if it has the build ID that was recorded. After the folders of --debug-dir come the recorded "
        "path, /usr/lib/debug, and, if the environment variable DEBUGINFOD_URLS is set, its servers. Names that the "
        "file has already, also those of JIT-compiled code, are kept.",
    .options = options,
    .options_bytes = sizeof(struct symbolize_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
