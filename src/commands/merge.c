#include "base/progress.h"
#include "cli/command.h"
#include "cli/span.h"
#include "commands/watch.h"
#include "convert/open.h"
#include "workload/merged.h"
#include "workload/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_merge;

struct merge_cli_options {
    const char *output;
    struct option_list offsets;
    uint64_t level;
    bool force;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-", "write the workload to FILE or to standard output",
     offsetof(struct merge_cli_options, output)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "overwrite FILE if it exists", offsetof(struct merge_cli_options, force)},
    {0, "offset", OPTION_LIST, "TIME", NULL,
     "start the second workload TIME after the first, for example 1.5s or 20ms; repeat for the third and later ones",
     offsetof(struct merge_cli_options, offsets)},
    {'l', "level", OPTION_NUMBER, "N", "3", "zstd compression level", offsetof(struct merge_cli_options, level),
     .min = 1, .max = 19},
    {0},
};

enum { MAX_INPUTS = 256 };

struct merging {
    const struct merge_cli_options *options;
    struct workload_file in[MAX_INPUTS];
    struct merged_input inputs[MAX_INPUTS];
    size_t n;
    struct output out;
    struct workload_output to;
    struct merged *merged;
    struct progress progress;
    struct err *e;
};

static uint64_t bytes_read(const struct merging *j)
{
    uint64_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        n += j->in[i].in.offset;
    return n;
}

// 0 when one of them is a pipe.
static uint64_t bytes_to_read(const struct merging *j)
{
    uint64_t n = 0;
    for (size_t i = 0; i < j->n; i++) {
        if (!j->in[i].in.size_bytes)
            return 0;
        n += j->in[i].in.size_bytes;
    }
    return n;
}

static int copy_ops(struct merging *j)
{
    const struct workload_op *op;
    uint32_t thread;
    int rc;
    for (uint64_t number = 0; (rc = merged_next(j->merged, &thread, &op, j->e)) > 0; number++) {
        if (number % 65536 == 0)
            progress_update(&j->progress, bytes_read(j));
        rc = workload_output_op(&j->to, thread, op, j->e);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        err_set(j->e, rc, "%s: cannot merge: %s", j->out.name, strerror(-rc));
    return rc;
}

static int finish(struct merging *j)
{
    struct workload_summary s = workload_output_summary(&j->to);
    for (size_t i = 0; i < j->n; i++) {
        const struct workload_summary *of = workload_reader_summary(j->in[i].reader);
        s.order_repaired += of->order_repaired;
        s.order_ambiguous += of->order_ambiguous;
        s.lost_records += of->lost_records;
        s.dependencies_needed += of->dependencies_needed;
    }
    struct workload_sites sites;
    int rc = merged_sites(j->merged, &sites);
    if (rc < 0)
        err_set(j->e, rc, "%s: out of memory", j->out.name);
    workload_write_sites(j->to.writer, &sites);
    if (rc == 0)
        rc = workload_write_end(j->to.writer, &s, j->e);
    workload_sites_release(&sites);
    if (rc == 0)
        note("%s: %llu events, %llu threads", j->out.name, (unsigned long long)s.events, (unsigned long long)s.threads);
    return rc;
}

static int write_merged(struct merging *j)
{
    j->merged = merged_new(j->inputs, j->n);
    if (!j->merged)
        return err_set(j->e, -ENOMEM, "%s: out of memory", j->options->output);
    int rc = output_open(&j->out, j->options->output, OUTPUT_ASIDE | (j->options->force ? OUTPUT_FORCE : 0), j->e);
    if (rc < 0)
        return rc;
    progress_init(&j->progress, "merge", "B", bytes_to_read(j), cli_common.quiet);
    rc = workload_output_begin(&j->to, &j->out, (int)j->options->level, merged_header(j->merged), j->e);
    rc = rc < 0 ? rc : copy_ops(j);
    progress_clear(&j->progress);
    rc = rc < 0 ? rc : finish(j);
    int closed = output_close(&j->out, rc == 0, j->e);
    return rc < 0 ? rc : closed;
}

static int merge(struct merging *j, char **paths, size_t n)
{
    int rc = 0;
    for (; rc == 0 && j->n < n; j->n += rc == 0) {
        rc = convert_open(&j->in[j->n], paths[j->n], &(struct convert_open_options){.watch = watch_conversion()}, j->e);
        j->inputs[j->n].reader = j->in[j->n].reader;
        if (rc < 0)
            workload_file_close(&j->in[j->n]);
    }
    if (rc == 0)
        rc = write_merged(j);
    workload_output_release(&j->to);
    merged_free(j->merged);
    for (size_t i = 0; i < j->n; i++)
        workload_file_close(&j->in[i]);
    return rc;
}

// Two commands cannot read one standard input.
static bool reads_stdin_twice(char **paths, int n)
{
    int times = 0;
    for (int i = 0; i < n; i++)
        times += strcmp(paths[i], "-") == 0;
    return times > 1;
}

static int run(const void *fields, int argc, char **argv)
{
    const struct merge_cli_options *o = fields;
    struct err e = {0};
    static struct merging j;
    j = (struct merging){.options = o, .out.fd = -1, .e = &e};
    if (reads_stdin_twice(argv, argc))
        return usage_error(&cmd_merge, "standard input (-) can be given only once");
    if (o->offsets.n >= (size_t)argc)
        return usage_error(&cmd_merge, "--offset: given %zu times for %d workloads", o->offsets.n, argc);
    for (size_t i = 0; i < o->offsets.n; i++) {
        if (span_parse(o->offsets.items[i], &j.inputs[i + 1].offset_ns) < 0)
            return usage_error(&cmd_merge, "--offset: '%s' is not a time such as 1.5s or 20ms", o->offsets.items[i]);
    }
    if (merge(&j, argv, (size_t)argc) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_merge = {
    .name = "merge",
    .operands = "WORKLOAD|TRACE|-...",
    .summary = "Merge several workloads into one",
    .description =
        "Writes a workload in which the threads of all inputs run side by side on one heap. The first events of the inputs coincide unless --offset delays one. Blocks and threads of different inputs stay separate, and dependencies are kept. The result uses the clock of the first input. If an input has no timestamps, the result has none, and the inputs alternate event by event.\n\n"
        "Samples of memory use are dropped because they belong to several processes. Memory use depends on the number of live blocks.",
    .options = options,
    .options_bytes = sizeof(struct merge_cli_options),
    .min_operands = 1,
    .max_operands = MAX_INPUTS,
    .run = run,
};
