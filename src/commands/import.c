#include "cli/command.h"
#include "cli/options.h"
#include "formats/import_file.h"
#include "report/text/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct import_cli_options {
    const struct format *format;
    const char *output;
    struct option_pid pid;
    uint64_t level;
    bool force, trace, keep_going, strict, timestamps, list;
};

#define AT(member) offsetof(struct import_cli_options, member)

static const struct option options[] = {
    {'F', "format", OPTION_PARSED, FORMATS_IMPORT_CHOICES, NULL,
     "read FILE in this format (see below)", AT(format), .shown = "FORMAT",
     .parse = formats_parse_import},
    {'o', "output", OPTION_STRING, "FILE|-", NULL,
     "write to FILE, or to standard output for - (default: FILE.htw, or FILE.ht with --trace)",
     AT(output)},
    OPTION_FORCE(struct import_cli_options),
    {'p', "pid", OPTION_PARSED, "PID|all", NULL,
     "import only this process, or each into its own workload (default: the one with the highest "
     "peak of live bytes)",
     AT(pid), .parse = options_parse_pid, .min = 1, .max = UINT32_MAX},
    {0, "trace", OPTION_FLAG, NULL, NULL,
     "write a raw trace of all processes instead of a workload", AT(trace)},
    {'k', "keep-going", OPTION_FLAG, NULL, NULL,
     "skip invalid records and report how many there were", AT(keep_going)},
    {0, "strict", OPTION_FLAG, NULL, NULL,
     "fail if the order of events is ambiguous or a freed block was never allocated", AT(strict)},
    OPTION_LEVEL(struct import_cli_options),
    {0, "timestamps", OPTION_FLAG, NULL, "on", "omit the timestamps of events", AT(timestamps)},
    {0, "list", OPTION_FLAG, NULL, NULL, "print the names of the formats and exit", AT(list)},
    {0},
};

// A trace contains all processes and the timestamps of events. Their order is checked by 'convert'.
static const struct command_mode modes[] = {
    {.option = "trace"},
    {.accepts = "pid|strict|timestamps"},
};

static void print_result(const char *path, uint64_t bytes, const struct workload_summary *s)
{
    note("%s: %s, %s, %.2f bytes/event", path, human_items(s->events, "event", "events"),
         human_items(s->threads, "thread", "threads"),
         s->events ? (double)bytes / (double)s->events : 0.0);
    if (s->order_ambiguous || s->unmatched_frees)
        note("%s: %s no recorded allocation, the order of %s is ambiguous", path,
             human_items(s->unmatched_frees, "free has", "frees have"),
             human_items(s->order_ambiguous, "event", "events"));
}

// Writes a trace, or a workload of one process.
static int import_to(struct input *in, const struct convert_files *to, bool trace,
                     const struct import_settings *how, struct err *e)
{
    struct output out;
    struct workload_summary s;
    int rc = output_open(&out, to->pattern, to->flags, e);
    if (rc < 0)
        return rc;
    rc = trace ? import_trace(in, &out, how, e) : import_one(in, &out, how, &s, e);
    const char *name = out.name;
    uint64_t bytes = out.offset;
    rc = output_finish(&out, rc, e);
    if (rc == 0 && !trace)
        print_result(name, bytes, &s);
    return rc;
}

static int import_file(const char *from, const char *to, const struct import_cli_options *o,
                       const struct import_settings *how)
{
    struct input in;
    struct err e = {0};
    const struct convert_files files = {to, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0),
                                        print_result};
    int rc = input_open(&in, from, &e);
    if (rc == 0)
        rc = o->pid.all ? import_each(&in, &files, how, &e)
                        : import_to(&in, &files, o->trace, how, &e);
    input_close(&in);
    die_on_error(rc, EXIT_FAILED, &e);
    return EXIT_DONE;
}

static int list_formats(void)
{
    for (const struct format *const *f = formats; *f; f++) {
        if (formats_is_read(*f))
            puts((*f)->name);
    }
    return EXIT_DONE;
}

static int run_import(const void *fields, char **argv)
{
    const struct import_cli_options *o = fields;
    if (o->list)
        return list_formats();
    if (!argv[0])
        return usage_error(&cmd_import, "FILE is missing");
    if (!o->format)
        return usage_error(&cmd_import, "--format is missing: %s", FORMATS_IMPORT_CHOICES);
    const struct import_settings how = {
        .format = o->format,
        .keep_going = o->keep_going,
        .convert = {.pid = o->pid.pid,
                    .level = (int)o->level,
                    .strict = o->strict,
                    .no_stamps = !o->timestamps,
                    .watch = watch_begin("import")},
    };
    char *beside = NULL;
    if (!o->output && strcmp(argv[0], "-") != 0 &&
        asprintf(&beside, "%s.%s", argv[0], o->trace ? "ht" : "htw") < 0)
        die(EXIT_FAILED, "out of memory");
    const char *to = o->output ? o->output : beside ? beside : "-";
    if (o->pid.all && strcmp(to, "-") == 0)
        return usage_error(
            &cmd_import,
            "--pid all writes several files: name them with -o, for example out.%%p.htw");
    int code = import_file(argv[0], to, o, &how);
    free(beside);
    return code;
}

static const struct command_word words[] = {FORMATS_IMPORT_WORDS{0}};

const struct command cmd_import = {
    .name = "import",
    .operands = "FILE|-",
    .summary = "Convert another tool's recording to a workload",
    .words_title = "Formats",
    .words = words,
    .examples =
        {
            {"Import a recording of heaptrack",
             "heaptape import --format heaptrack -o program.htw heaptrack.program.4711.zst"},
            {"Import a zipped trace of Android",
             "unzip -p surfaceflinger.zip | heaptape import --format android -o sf.htw -"},
            {"Import all processes of a log, as a trace",
             "zcat log.gz | heaptape import --trace --format logalloc -o log.ht -"},
        },
    .options = options,
    .options_bytes = sizeof(struct import_cli_options),
    .modes = {modes},
    .min_operands = 0,
    .max_operands = 1,
    .run = run_import,
};
