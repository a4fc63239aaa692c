#include "cli/command.h"
#include "cli/options.h"
#include "convert/process.h"
#include "record/entries/plan.h"
#include "report/text/watch.h"
#include "workload/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct convert_cli_options {
    const char *output, *heap;
    struct option_pid pid;
    uint64_t window_ns;
    uint64_t level;
    bool force, strict, timestamps;
};

#define AT(member) offsetof(struct convert_cli_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", NULL,
     "write the workload to FILE or to standard output (default: NAME.htw for NAME.ht)",
     AT(output)},
    OPTION_FORCE(struct convert_cli_options),
    {'p', "pid", OPTION_PARSED, "PID|all", NULL,
     "convert this process, or each into its own file (default: the one with the highest peak of "
     "live bytes)",
     AT(pid), .parse = options_parse_pid, .min = 1, .max = UINT32_MAX},
    {0, "strict", OPTION_FLAG, NULL, NULL,
     "fail if the order is ambiguous, a freed block has no recorded allocation, or records are "
     "lost",
     AT(strict)},
    {0, "window", OPTION_NUMBER, "NS", "1000000",
     "search this far ahead (ns) for an event that resolves contradictory timestamps",
     AT(window_ns)},
    {0, "heap", OPTION_STRING, "ALLOCATOR", NULL,
     "convert only the calls of one allocator in the table of 'heaptape stat -v' (default: all)",
     AT(heap)},
    OPTION_LEVEL(struct convert_cli_options),
    {0, "timestamps", OPTION_FLAG, NULL, "on", "store only the order of events, not their times",
     AT(timestamps)},
    {0},
};

// Returns NAME.htw for NAME.ht, and FILE.htw for other files, or NULL. The caller must free the
// name.
static char *default_output(const char *trace)
{
    size_t n = strlen(trace);
    char *path;
    if (n > 3 && strcmp(trace + n - 3, ".ht") == 0)
        n -= 3;
    return asprintf(&path, "%.*s.htw", (int)n, trace) < 0 ? NULL : path;
}

static void print_result(const char *to, uint64_t bytes, const struct workload_summary *s)
{
    note("%s: %s, %s, %.2f bytes/event", to, human_items(s->events, "event", "events"),
         human_items(s->threads, "thread", "threads"),
         s->events ? (double)bytes / (double)s->events : 0.0);
    if (s->dependencies_needed || s->order_repaired)
        note("%s: %s of %s across threads needed a dependency, the order of %s was repaired", to,
             human_number(s->dependencies), human_items(s->dependencies_needed, "use", "uses"),
             human_items(s->order_repaired, "event", "events"));
    if (s->preexisting_blocks)
        note("%s: begins with %s (%s) live before the first event: at the start of a dump of "
             "'record --flight', found by 'record --walk', or in the parent at the fork, which "
             "shares their pages until one of the two writes there",
             to, human_items(s->preexisting_blocks, "block", "blocks"),
             human_size(s->preexisting_bytes));
    if (s->order_ambiguous || s->unmatched_frees || s->lost_records)
        (s->lost_records ? cli_warn : note)(
            "%s: %s no recorded allocation, the order of %s is ambiguous, %s lost", to,
            human_items(s->unmatched_frees, "free has", "frees have"),
            human_items(s->order_ambiguous, "event", "events"),
            human_items(s->lost_records, "word is", "words are"));
}

// Like convert_each, but converts one process to the file f->pattern.
static int convert_process(struct trace_file *t, const struct convert_files *f,
                           const struct convert_settings *how, struct err *e)
{
    struct output out = {.fd = -1};
    struct workload_summary s;
    int rc = output_open(&out, f->pattern, f->flags, e);
    if (rc < 0)
        return rc;
    rc = convert_one(t, &out, how, &s, e);
    uint64_t bytes = out.offset;
    rc = output_finish(&out, rc, e);
    if (rc == 0)
        f->written(f->pattern, bytes, &s);
    return rc;
}

static int run_convert(const void *fields, char **argv)
{
    const struct convert_cli_options *o = fields;
    int heap = o->heap ? entries_allocator_by_name(o->heap) : -1;
    if (o->heap && heap < 0)
        return usage_error(&cmd_convert,
                           "--heap: unknown allocator '%s': 'heaptape stat -v' lists the "
                           "allocators of a recording",
                           o->heap);
    struct convert_settings how = {.pid = o->pid.pid,
                                   .window_ns = o->window_ns,
                                   .level = (int)o->level,
                                   .strict = o->strict,
                                   .no_stamps = !o->timestamps,
                                   .only_allocator = (unsigned)(heap + 1),
                                   .watch = watch_conversion()};
    struct file f;
    struct err e = {0};
    char *beside = o->output || strcmp(argv[0], "-") == 0 ? NULL : default_output(argv[0]);
    const char *to = o->output ? o->output : beside ? beside : "-";
    if (o->pid.all && strcmp(to, "-") == 0)
        return usage_error(
            &cmd_convert,
            "--pid all writes several files: name them with -o, for example -o out.%%p.htw");
    const struct convert_files files = {.pattern = to,
                                        .flags = OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0),
                                        .written = print_result};
    int rc = file_open(&f, argv[0], FILE_TRACE | FILE_TWICE, &e);
    if (rc == 0)
        rc = (o->pid.all ? convert_each : convert_process)(&f.trace, &files, &how, &e);
    file_close(&f);
    free(beside);
    die_on_error(rc, EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command cmd_convert = {
    .name = "convert",
    .operands = "TRACE|-",
    .summary = "Convert a trace into a replayable workload",
    .examples =
        {
            {"Convert the process with the highest peak of live bytes to gcc.htw",
             "heaptape convert gcc.ht"},
            {"Convert the process 4711", "heaptape convert -o cc1.htw --pid 4711 gcc.ht"},
            {"Convert each process to a separate file",
             "heaptape convert --pid all -o gcc-%p.htw gcc.ht"},
        },
    .options = options,
    .options_bytes = sizeof(struct convert_cli_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_convert,
};
