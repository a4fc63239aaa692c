#include "base/progress.h"
#include "cli/command.h"
#include "cli/span.h"
#include "convert/open.h"
#include "report/text/watch.h"
#include "workload/merged.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct merge_cli_options {
    const char *output;
    struct option_list offsets;
    uint64_t level;
    bool force;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-",
     "write the workload to FILE or to standard output",
     offsetof(struct merge_cli_options, output)},
    OPTION_FORCE(struct merge_cli_options),
    {0, "offset", OPTION_LIST, "TIME", NULL,
     "start the second workload TIME after the first; repeat for the third and later ones",
     offsetof(struct merge_cli_options, offsets)},
    OPTION_LEVEL(struct merge_cli_options),
    {0},
};

enum { MAX_INPUTS = 256 };

struct merging {
    const struct merge_cli_options *options;
    struct workload_file in[MAX_INPUTS];
    uint64_t offsets_ns[MAX_INPUTS];
    size_t n;
    struct err *e;
};

// Checks that stacks were sampled in the same way in all inputs. The output has a single sampling
// rate, from which the shares of call sites are estimated.
static int check_sampling(const struct merging *j)
{
    uint64_t first = workload_reader_header(j->in[0].reader)->stack_sample_bytes;
    for (size_t i = 1; i < j->n; i++) {
        uint64_t bytes = workload_reader_header(j->in[i].reader)->stack_sample_bytes;
        if (bytes != first)
            return err_set(j->e, -EINVAL,
                           "the inputs' stacks were sampled differently: one per %" PRIu64
                           " bytes and one per %" PRIu64
                           " (0: all or none); record them with the same --stacks",
                           first, bytes);
    }
    return 0;
}

static int write_merged(struct merging *j)
{
    struct progress progress;
    struct output out;
    struct workload_summary s;
    const struct merged_files files = {j->in, j->offsets_ns, j->n, (int)j->options->level,
                                       &progress};
    int rc = output_open(&out, j->options->output,
                         OUTPUT_ASIDE | (j->options->force ? OUTPUT_FORCE : 0), j->e);
    if (rc < 0)
        return rc;
    progress_init(&progress, "merge", "B", 0, cli_common.quiet);
    rc = check_sampling(j) ?: merged_files_write(&files, &out, &s, j->e);
    rc = output_finish(&out, rc, j->e);
    if (rc == 0)
        note("%s: %s, %s", out.name, human_items(s.events, "event", "events"),
             human_items(s.threads, "thread", "threads"));
    return rc;
}

static int merge_files(struct merging *j, char **paths, size_t n)
{
    int rc = 0;
    for (; rc == 0 && j->n < n; j->n++)
        rc = convert_open(&j->in[j->n], paths[j->n],
                          &(struct convert_open_options){.watch = watch_conversion()}, j->e);
    if (rc == 0)
        rc = write_merged(j);
    for (size_t i = 0; i < j->n; i++)
        workload_file_close(&j->in[i]);
    return rc;
}

static int run_merge(const void *fields, char **argv)
{
    const struct merge_cli_options *o = fields;
    struct err e = {0};
    static struct merging j;
    j = (struct merging){.options = o, .e = &e};
    int stdins = 0;
    for (int i = 0; i < cli_common.n_operands; i++)
        stdins += strcmp(argv[i], "-") == 0;
    if (stdins > 1)
        return usage_error(&cmd_merge, "standard input (-) can be given only once");
    if (o->offsets.n >= (size_t)cli_common.n_operands)
        return usage_error(&cmd_merge, "--offset: given %zu times for %d workloads", o->offsets.n,
                           cli_common.n_operands);
    for (size_t i = 0; i < o->offsets.n; i++) {
        if (span_parse(o->offsets.items[i], &j.offsets_ns[i + 1]) < 0)
            return usage_error(&cmd_merge, "--offset: '%s' is not a time such as 1.5s or 20ms",
                               o->offsets.items[i]);
    }
    die_on_error(merge_files(&j, argv, (size_t)cli_common.n_operands), EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command cmd_merge = {
    .name = "merge",
    .operands = "WORKLOAD|TRACE|-...",
    .summary = "Merge several workloads into one",
    .examples =
        {
            {"Run two programs side by side on one heap",
             "heaptape merge -o both.htw redis.htw python.htw"},
            {"Replay three copies, the second 10 ms and the third 20 ms after the first",
             "heaptape merge --offset 10ms --offset 20ms a.htw a.htw a.htw |\n"
             "    heaptape replay -a mimalloc -"},
        },
    .options = options,
    .options_bytes = sizeof(struct merge_cli_options),
    .min_operands = 1,
    .max_operands = MAX_INPUTS,
    .run = run_merge,
};
