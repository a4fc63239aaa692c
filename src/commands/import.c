#include "cli/command.h"
#include "cli/options.h"
#include "commands/import_trace.h"
#include "commands/import_workload.h"
#include "commands/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_import;

struct import_cli_options {
    const struct format *format;
    const char *output;
    struct option_pid pid;
    uint64_t level;
    bool force, trace, keep_going, strict, timestamps, list;
};

static const struct option options[] = {
    {'F', "format", OPTION_PARSED, FORMATS_IMPORT_CHOICES, NULL, "read FILE in this format (see above)",
     offsetof(struct import_cli_options, format), .parse = formats_parse_import},
    {'o', "output", OPTION_STRING, "FILE|-", NULL,
     "write to FILE, or to standard output for - (default: the name of the input with .htw appended, or .ht with --trace)",
     offsetof(struct import_cli_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct import_cli_options, force)},
    {'p', "pid", OPTION_PARSED, "PID|all", NULL,
     "import only process PID, or each process into a workload of its own (default: the process with the most events)",
     offsetof(struct import_cli_options, pid), .parse = options_parse_pid, .min = 1, .max = UINT32_MAX},
    {0, "trace", OPTION_FLAG, NULL, NULL, "write a raw trace of all processes instead of a workload",
     offsetof(struct import_cli_options, trace)},
    {'k', "keep-going", OPTION_FLAG, NULL, NULL, "skip invalid records and report how many there were",
     offsetof(struct import_cli_options, keep_going)},
    {0, "strict", OPTION_FLAG, NULL, NULL,
     "fail if the order of events is ambiguous or a freed block was never allocated",
     offsetof(struct import_cli_options, strict)},
    {'l', "level", OPTION_NUMBER, "N", "3", "compress with this zstd level", offsetof(struct import_cli_options, level),
     .min = 1, .max = 19},
    {0, "timestamps", OPTION_FLAG, NULL, "on", "leave out the timestamps of events",
     offsetof(struct import_cli_options, timestamps)},
    {0, "list", OPTION_FLAG, NULL, NULL, "print the names of the formats and exit",
     offsetof(struct import_cli_options, list)},
    {0},
};

struct job {
    const struct import_cli_options *options;
    const struct format *format;
    struct convert_settings how;
    struct input in;
    struct output out;
    struct err *e;
};

static int to_trace(struct job *j)
{
    bool has_times;
    struct import_trace_options how = {j->format, j->options->keep_going, FRAME_CODEC_ZSTD, j->how.level};
    return import_trace(&j->in, &j->out, &how, &has_times, j->e);
}

static void tell_workload(const char *path, uint64_t bytes, const struct workload_summary *s)
{
    note("%s: %llu events, %llu threads, %.2f bytes an event", path, (unsigned long long)s->events,
         (unsigned long long)s->threads, s->events ? (double)bytes / (double)s->events : 0.0);
    if (s->order_ambiguous || s->unmatched_frees)
        note("%llu frees of unknown blocks, %llu events of ambiguous order", (unsigned long long)s->unmatched_frees,
             (unsigned long long)s->order_ambiguous);
}

// A trace of all of it in a temporary file: which processes there are is known when all has been seen.
static int open_between(struct job *j, struct trace_file *t)
{
    bool has_times;
    struct output between;
    struct input trace;
    struct import_trace_options how = {j->format, j->options->keep_going, FRAME_CODEC_LZ4, 1};
    int rc = output_open_unnamed(&between, j->e);
    if (rc < 0)
        return rc;
    rc = import_trace(&j->in, &between, &how, &has_times, j->e);
    if (rc < 0) {
        output_close(&between, false, NULL);
        return rc;
    }
    j->how.no_stamps |= !has_times;
    rc = input_from_output(&trace, &between, j->in.name, j->e);
    return rc < 0 ? rc : trace_file_adopt(t, &trace, true, j->e);
}

// The process with most events.
static int most_events(struct job *j, struct workload_summary *s)
{
    struct trace_file t = {.in.fd = -1};
    int rc = open_between(j, &t);
    if (rc == 0)
        rc = convert_one(&t, &j->out, &j->how, s, j->e);
    trace_file_close(&t);
    return rc;
}

static int to_workload(struct job *j)
{
    struct workload_summary s;
    int rc;
    if (j->format->several_processes && !j->how.pid) {
        rc = most_events(j, &s);
    } else {
        struct import_workload_options how = {j->format, j->options->keep_going, j->how};
        rc = import_workload(&j->in, &j->out, &how, &s, j->e);
    }
    if (rc == 0)
        tell_workload(j->out.name, j->out.offset, &s);
    return rc;
}

static unsigned output_flags(const struct job *j)
{
    return OUTPUT_ASIDE | (j->options->force ? OUTPUT_FORCE : 0);
}

static int import_one(struct job *j, const char *to)
{
    int rc = output_open(&j->out, to, output_flags(j), j->e);
    if (rc < 0)
        return rc;
    rc = j->options->trace ? to_trace(j) : to_workload(j);
    int closed = output_close(&j->out, rc == 0, j->e);
    return rc == 0 ? closed : rc;
}

static int import_each(struct job *j, const char *pattern)
{
    struct trace_file t = {.in.fd = -1};
    int rc = open_between(j, &t);
    if (rc == 0)
        rc = convert_each(&t, &(struct convert_files){pattern, output_flags(j), tell_workload}, &j->how, j->e);
    trace_file_close(&t);
    return rc;
}

static int import(struct job *j, const char *from, const char *to, bool each)
{
    int rc = input_open(&j->in, from, j->e);
    if (rc == 0)
        rc = each ? import_each(j, to) : import_one(j, to);
    input_close(&j->in);
    return rc;
}

static int list(void)
{
    for (const struct format *const *f = formats; *f; f++) {
        if ((*f)->import)
            puts((*f)->name);
    }
    return EXIT_DONE;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct import_cli_options *o = fields;
    struct err e = {0};
    struct job j = {.options = o, .in = {.fd = -1}, .out = {.fd = -1}, .e = &e};
    if (o->list)
        return list();
    if (argc == 0)
        return usage_error(&cmd_import, "FILE is missing");
    if (!o->format)
        return usage_error(&cmd_import, "--format is missing: %s", FORMATS_IMPORT_CHOICES);
    if ((o->pid.pid || o->pid.all) && o->trace)
        return usage_error(&cmd_import, "--pid selects a process for a workload; --trace writes all processes");
    j.format = o->format;
    j.how = (struct convert_settings){.pid = o->pid.pid,
                                      .level = (int)o->level,
                                      .strict = o->strict,
                                      .no_stamps = !o->timestamps,
                                      .watch = watch_conversion()};
    j.how.window_ns = j.format->window;
    char *beside = NULL;
    if (!o->output && strcmp(argv[0], "-") != 0 && asprintf(&beside, "%s.%s", argv[0], o->trace ? "ht" : "htw") < 0)
        die(EXIT_FAILED, "out of memory");
    const char *to = o->output ? o->output : beside ? beside : "-";
    if (o->pid.all && strcmp(to, "-") == 0)
        return usage_error(&cmd_import, "--pid all writes several files: name them with -o, for example out.%%p.htw");
    int rc = import(&j, argv[0], to, o->pid.all);
    free(beside);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_import = {
    .name = "import",
    .operands = "FILE|-",
    .summary = "Convert another tool's recording to a workload",
    .description =
        "Reads a recording made by another tool and writes a workload that can be replayed. As in heaptape convert, frees of unknown blocks, allocations at addresses that are still live and events in the wrong order are repaired and counted. With --trace, writes a raw trace instead.\n\n"
        "If the format has no timestamps, events keep the order of the file and the workload has no timestamps either.\n\n"
        "An invalid record ends the import with an error that names its position and what was expected there; no file is written. With --keep-going, invalid records are skipped and counted.\n\n"
        "Formats:" FORMATS_IMPORT_HELP,
    .options = options,
    .options_bytes = sizeof(struct import_cli_options),
    .min_operands = 0,
    .max_operands = 1,
    .run = run,
};
