#include "analysis/size_classes.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/span.h"
#include "convert/open.h"
#include "report/text/watch.h"
#include "workload/format.h"
#include "workload/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct anonymize_options {
    const char *output, *times;
    uint64_t level;
    bool force, round_sizes, keep_stacks;
};

#define AT(member) offsetof(struct anonymize_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", "-",
     "write the workload to FILE or to standard output", AT(output)},
    OPTION_FORCE(struct anonymize_options),
    {0, "times", OPTION_STRING, "TIME", NULL,
     "round timestamps down to multiples of TIME (1ms, 100us)", AT(times)},
    {0, "round-sizes", OPTION_FLAG, NULL, NULL, "round sizes up to size classes", AT(round_sizes)},
    {0, "keep-stacks", OPTION_FLAG, NULL, NULL,
     "keep call sites, with numbers instead of names and addresses", AT(keep_stacks)},
    OPTION_LEVEL(struct anonymize_options),
    {0},
};

enum { PID = 1, PARENT_PID = 2, START_STAMP = 1 }; // numbers in the copy, because 0 means unknown

struct anonymizing {
    const struct anonymize_options *options;
    struct workload_file in;
    struct workload_output to;
    struct workload_sites sites; // call sites of the copy
    uint64_t start_stamp;        // stamp at the start of the source
    uint64_t unit;               // rounding of timestamps
    uint64_t last_stamp;         // last stamp of the copy
    uint64_t marks, names, with_site;
    uint32_t *slots; // maps a slot of the source to the slot of the copy + 1; 0 if not seen yet
    size_t n_slots, slots_capacity;
    uint32_t slots_met;
    struct err *e;
};

static uint64_t stamp_of(const struct anonymizing *a, uint64_t stamp)
{
    uint64_t since = stamp > a->start_stamp ? stamp - a->start_stamp : 0;
    return START_STAMP + since - since % a->unit;
}

static void round_op(struct workload_op *op)
{
    if (op->flags & WORKLOAD_FAILED)
        return;
    if (event_infos[op->kind].fields & HT_F_COUNT) {
        op->size = event_requested(op->kind, op->size, op->count);
        op->count = 1;
    }
    if (op->size)
        op->size = size_classes_four_max(op->size);
}

// Numbers slots in the order of their first ops, as the writer requires. If ops of several threads
// have equal timestamps, they may be read in a different order than they were written.
static int renumber_slot(struct anonymizing *a, uint32_t *slot)
{
    if (*slot == WORKLOAD_NO_SLOT)
        return 0;
    if (HT_EXTEND(&a->slots, &a->n_slots, &a->slots_capacity, (size_t)*slot + 1) < 0)
        return err_no_memory(a->e, a->in.in.name);
    if (!a->slots[*slot])
        a->slots[*slot] = ++a->slots_met;
    *slot = a->slots[*slot] - 1;
    return 0;
}

static int put_op(struct anonymizing *a, uint32_t thread, const struct workload_op *from)
{
    struct workload_op op = *from;
    char mark[32];
    // Rounding must not move an op before its dependencies.
    op.stamp = stamp_of(a, op.stamp);
    if (op.stamp < a->last_stamp + (op.n_dependencies > 0))
        op.stamp = a->last_stamp + (op.n_dependencies > 0);
    a->last_stamp = op.stamp;
    if (a->options->round_sizes && event_infos[op.kind].fields & HT_F_SIZE)
        round_op(&op);
    a->with_site += format_op_site(&op) != 0;
    if (!a->options->keep_stacks && op.kind == HT_PREEXISTING)
        op.value &= 0xff;
    else if (!a->options->keep_stacks && format_has_site(op.kind))
        op.value = 0;
    a->names += op.kind != HT_MARK && op.text_bytes;
    op.text_bytes = 0;
    if (op.kind == HT_MARK) {
        op.text = mark;
        op.text_bytes = (uint32_t)snprintf(mark, sizeof mark, "mark %" PRIu64, ++a->marks);
    }
    int rc = renumber_slot(a, &op.slot);
    return rc < 0 ? rc : workload_output_op(&a->to, thread, &op, a->e);
}

static int put_ops(struct anonymizing *a)
{
    enum { OPS_PER_UPDATE = 65536 };
    const struct workload_op *op;
    uint32_t thread;
    struct progress progress;
    progress_init(&progress, "anonymize", "B", a->in.in.size_bytes, cli_common.quiet);
    int rc = 1;
    for (uint64_t n = 0; rc > 0; n++) {
        if (n % OPS_PER_UPDATE == 0)
            progress_update(&progress, a->in.in.offset);
        rc = workload_next_op(a->in.reader, &thread, &op, a->e);
        if (rc > 0 && put_op(a, thread, op) < 0)
            rc = -EIO; // a->e contains the error
    }
    progress_clear(&progress);
    return rc;
}

// Returns the number of a frame in the source. If the frame is new, adds its name.
static uint64_t number_frame(struct anonymizing *a, struct map *numbers,
                             const struct workload_frame *f)
{
    uint64_t key = workload_sites_key(f), number = map_get(numbers, key);
    char name[32];
    if (number)
        return number;
    number = numbers->n + 1;
    snprintf(name, sizeof name, "function %" PRIu64, number);
    bool ok = map_put(numbers, key, number) == 0 &&
              names_begin(&a->sites.names, 1, number, 1) == 0 &&
              names_function(&a->sites.names, name, sizeof name, "", 1, 0) == 0;
    return ok ? number : 0;
}

// Replaces each frame with an address in a single module. The address is the frame's number. The
// call tree does not change.
static int number_sites(struct anonymizing *a)
{
    const struct workload_sites *from = workload_reader_sites(a->in.reader);
    const struct workload_module all = {.bytes = 1ull << 46};
    struct map numbers = {0};
    struct workload_frame *frames = NULL;
    size_t capacity = 0;
    int rc = from->n_sites ? workload_sites_module(&a->sites, &all, " program", 8) : 0;
    for (size_t i = 0; rc == 0 && i < from->n_sites; i++) {
        const struct workload_site *site = &from->sites[i];
        rc = HT_GROW(&frames, &capacity, site->n);
        for (uint32_t k = 0; rc == 0 && k < site->n; k++) {
            // Plus 1, because a return address follows its call.
            frames[k] = (struct workload_frame){
                number_frame(a, &numbers, &from->frames[site->first + k]) + 1, 1};
            rc = frames[k].address > 1 ? 0 : -ENOMEM;
        }
        if (rc == 0 && site->n)
            rc = workload_sites_set(&a->sites, (uint32_t)i + 1, frames, site->n);
    }
    map_release(&numbers);
    free(frames);
    return rc < 0 ? err_no_memory(a->e, a->in.in.name) : 0;
}

static int put_end(struct anonymizing *a)
{
    const struct workload_summary *from = workload_reader_summary(a->in.reader);
    struct workload_summary s = workload_output_summary(&a->to);
    const struct workload_sample *samples;
    size_t n = 0;
    int rc = a->options->keep_stacks ? number_sites(a) : 0;
    samples = workload_reader_samples(a->in.reader, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct workload_sample one = samples[i];
        one.stamp = stamp_of(a, one.stamp);
        rc = workload_write_samples(a->to.writer, &one, 1, a->e);
    }
    if (rc < 0)
        return rc;
    workload_write_sites(a->to.writer, &a->sites);
    workload_write_residency(a->to.writer, workload_reader_residency(a->in.reader));
    s.order_repaired = from->order_repaired;
    s.order_ambiguous = from->order_ambiguous;
    s.dependencies_needed = from->dependencies_needed;
    s.lost_records = from->lost_records;
    s.cpu_ns = from->cpu_ns;
    s.recording_ns = from->recording_ns;
    s.calls_min_ns = from->calls_min_ns;
    s.calls_max_ns = from->calls_max_ns;
    s.recording_rss_bytes = from->recording_rss_bytes;
    s.libraries = from->libraries;
    s.cxx_bytes = from->cxx_bytes;
    s.peak_rss_bytes = from->peak_rss_bytes;
    summary_add_early(&s, from);
    if (from->recorded_to) {
        s.recorded_from = stamp_of(a, from->recorded_from);
        s.recorded_to = stamp_of(a, from->recorded_to) + 1;
    }
    return workload_write_end(a->to.writer, &s, a->e);
}

static int begin_copy(struct anonymizing *a, struct output *out)
{
    const struct workload_header *from = workload_reader_header(a->in.reader);
    char program[] = "program", *allocator = from->allocator ? strdup(from->allocator) : NULL;
    uint64_t ns = 0;
    a->start_stamp = from->has_stamps ? from->start_stamp : 0;
    a->unit = 1;
    if (a->options->times && from->has_stamps && span_parse(a->options->times, &ns) == 0)
        a->unit =
            (uint64_t)((unsigned __int128)ns * from->clock_hz / 1000000000u >> from->stamp_shift);
    a->unit += !a->unit;
    const struct workload_header h = {
        .clock_hz = from->clock_hz,
        .stamp_shift = from->stamp_shift,
        .has_stamps = from->has_stamps,
        .start_stamp = from->has_stamps ? START_STAMP : 0,
        .pid = PID,
        .forked_from = from->forked_from ? PARENT_PID : 0,
        .exe = program,
        .allocator = allocator ? basename(allocator) : NULL,
        .allocator_build_id = from->allocator_build_id,
        .argv = program,
        .argv_bytes = sizeof program,
        .stack_sample_bytes = a->options->keep_stacks ? from->stack_sample_bytes : 0,
    };
    int rc = workload_output_begin(&a->to, out, (int)a->options->level, &h, a->e);
    free(allocator);
    return rc;
}

static void report_removed(const struct anonymizing *a, const char *name)
{
    char times[64] = "times";
    if (a->options->times)
        snprintf(times, sizeof times, "times to %s", a->options->times);
    note("%s: removed the command line, paths, process numbers, %" PRIu64
         " thread names and the texts of %" PRIu64 " marks%s",
         name, a->names, a->marks,
         !a->with_site             ? ""
         : a->options->keep_stacks ? "; numbered the call sites"
                                   : ", and the call sites");
    note("%s: keeps %s, alignments, %s, threads, samples of memory, and the name and build ID of "
         "the allocator",
         name, a->options->round_sizes ? "size classes" : "sizes", times);
}

static int anonymize_file(const char *path, const struct anonymize_options *o, struct err *e)
{
    struct anonymizing a = {.options = o, .e = e};
    struct output out = {.fd = -1};
    int rc =
        convert_open(&a.in, path, &(struct convert_open_options){.watch = watch_conversion()}, e);
    if (rc == 0)
        rc = output_open(&out, o->output, OUTPUT_ASIDE | (o->force ? OUTPUT_FORCE : 0), e);
    if (rc == 0) {
        rc = begin_copy(&a, &out) ?: put_ops(&a) ?: put_end(&a);
        workload_output_release(&a.to);
        rc = output_finish(&out, rc, e);
    }
    if (rc == 0)
        report_removed(&a, out.name);
    workload_sites_release(&a.sites);
    free(a.slots);
    workload_file_close(&a.in);
    return rc;
}

static int run_anonymize(const void *fields, char **argv)
{
    const struct anonymize_options *o = fields;
    struct err e = {0};
    uint64_t ns;
    if (o->times && span_parse(o->times, &ns) < 0)
        return usage_error(&cmd_anonymize, "--times: '%s' is not a time such as 1ms", o->times);
    die_on_error(anonymize_file(argv[0], o, &e), EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command cmd_anonymize = {
    .name = "anonymize",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Remove names from a workload",
    .examples =
        {
            {"Write a copy to share", "heaptape anonymize -o public.htw program.htw"},
            {"Make times and sizes coarser too",
             "heaptape anonymize --times 1ms --round-sizes -o public.htw program.htw"},
            {"Keep call sites but not their names",
             "heaptape anonymize --keep-stacks -o public.htw program.htw"},
        },
    .options = options,
    .options_bytes = sizeof(struct anonymize_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_anonymize,
};
