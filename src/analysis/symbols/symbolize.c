#include "analysis/symbols/symbolize.h"

#include "analysis/symbols/symbols.h"
#include "base/buf.h"
#include "base/frame.h"
#include "base/printable.h"
#include "convert/convert.h"
#include "trace/writer.h"
#include "workload/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL = 3 };

struct symbolizing {
    struct symbolize_result *result;
    const struct convert_watch *watch;
    struct names *names; // indexed by process number; a workload has a single entry
    size_t n, capacity;
    struct symbolized_process *processes; // processes of a trace, most recent first
    uint64_t sites;
    struct err *e;
};

// A process of the trace that is being read.
struct symbolized_process {
    struct symbolizing *job;
    struct symbolized_process *next;
    size_t number;
    char *exe;
};

static int add_name(struct names *to, const struct workload_frame *f, const struct symbol *found,
                    size_t n)
{
    int rc = names_begin(to, f->module, f->address - 1, 1);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = names_function(to, found[i].function, NAMES_TEXT_BYTES, found[i].file,
                            NAMES_TEXT_BYTES, (uint32_t)(found[i].line > 0 ? found[i].line : 0));
    return rc;
}

static int name_frame(struct symbolizing *j, struct symbols *symbols,
                      const struct workload_frame *f, struct names *to)
{
    const struct symbol *found;
    size_t n = symbols_of(symbols, f, &found);
    if (n == 0)
        return -ENOMEM;
    j->result->addresses++;
    if (!found[0].known || !f->address)
        return 0;
    j->result->named++;
    return add_name(to, f, found, n);
}

static int name_all(struct symbolizing *j, const struct workload_sites *sites, const char *exe,
                    struct names *to)
{
    struct map seen = {0};
    const char *missing = NULL;
    struct symbols *symbols = symbols_new(sites, exe);
    int rc = symbols ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sites->n_frames; i++) {
        const struct workload_frame *f = &sites->frames[i];
        uint64_t key = workload_sites_key(f);
        if (map_get(&seen, key))
            continue;
        rc = map_put(&seen, key, 1) ?: name_frame(j, symbols, f, to);
    }
    if (rc == 0)
        symbols_missing(symbols, &missing);
    if (missing && !j->result->missing[0])
        printable_copy(j->result->missing, sizeof j->result->missing, missing, strlen(missing));
    j->sites += sites->n_sites;
    symbols_free(symbols);
    map_release(&seen);
    return rc;
}

static int ignore_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    (void)context;
    (void)ops;
    (void)n;
    return 0;
}

static int name_process(void *context, const struct order_counts *counts,
                        const struct workload_sites *sites)
{
    struct symbolized_process *p = context;
    (void)counts;
    return name_all(p->job, sites, p->exe, &p->job->names[p->number]);
}

static int choose_process(void *context, const struct trace_process *from,
                          struct convert_sink *sink)
{
    struct symbolizing *j = context;
    struct symbolized_process *p = calloc(1, sizeof *p);
    if (!p || HT_EXTEND(&j->names, &j->n, &j->capacity, (size_t)from->number + 1) < 0) {
        free(p);
        return -ENOMEM;
    }
    *p = (struct symbolized_process){j, j->processes, from->number,
                                     from->exe ? strdup(from->exe) : NULL};
    j->processes = p;
    *sink = (struct convert_sink){.ops = {.context = p, .ops = ignore_ops}, .done = name_process};
    return 1;
}

static void show_progress(void *context, uint64_t offset)
{
    const struct symbolizing *j = context;
    if (j->watch)
        progress_update(j->watch->progress, offset);
}

static int read_trace(struct symbolizing *j, struct trace_file *t)
{
    const struct convert_options how = {
        .choose = choose_process, .progress = show_progress, .context = j};
    struct convert_result result;
    int rc = convert_run(&t->reader, &how, &result, j->e);
    if (rc == 0 && result.cut_off && j->watch && j->watch->warn)
        j->watch->warn(result.cut.text);
    return rc;
}

static int read_workload(struct symbolizing *j, struct workload_file *w)
{
    struct workload_sites sites;
    int rc = workload_read_sites(w->reader, &sites, j->e);
    if (rc == 0 && (HT_EXTEND(&j->names, &j->n, &j->capacity, 1) < 0 ||
                    name_all(j, &sites, workload_reader_header(w->reader)->exe, &j->names[0]) < 0))
        rc = err_no_memory(j->e, w->in.name);
    workload_sites_release(&sites);
    return rc;
}

// Copies all frames except names. The names are written after the frame of their process.
static int copy_trace(struct symbolizing *j, struct input *in, struct output *out)
{
    struct frame_reader from;
    struct trace_writer to;
    struct frame f;
    uint32_t process = 0;
    int rc = input_seek(in, 0, j->e);
    frame_reader_init(&from, in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    trace_writer_init(&to, out, FRAME_CODEC_ZSTD, LEVEL);
    while (rc == 0 && (rc = frame_next(&from, &f, j->e)) > 0) {
        rc = f.type == TRACE_NAMES ? 0 : frame_write_stored(&to.frames, &from.stored, j->e);
        if (rc == 0 && f.type == TRACE_PROCESS && process < j->n)
            rc = trace_write_names(&to, process, &j->names[process], j->e);
        process += f.type == TRACE_PROCESS;
    }
    frame_reader_release(&from);
    trace_writer_release(&to);
    return rc == -ENODATA ? 0 : rc; // a truncated file was already reported
}

static int write_copy(struct symbolizing *j, struct file *f, const char *path, bool force)
{
    struct output out;
    struct input *in = f->kind == FILE_TRACE ? &f->trace.in : &f->workload.in;
    int rc = output_open(&out, path, (force ? OUTPUT_FORCE : 0) | OUTPUT_ASIDE, j->e);
    if (rc < 0)
        return rc;
    rc = f->kind == FILE_TRACE ? copy_trace(j, in, &out)
                               : symbolize_workload(in, &out, &j->names[0], j->e);
    return output_finish(&out, rc, j->e);
}

int symbolize(const struct symbolize_settings *how, struct symbolize_result *result, struct err *e)
{
    const char *path = how->path;
    const struct convert_watch *watch = how->watch;
    struct symbolizing j = {.result = result, .watch = watch, .e = e};
    struct file f;
    *result = (struct symbolize_result){0};
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0 && !file_input(&f)->size_bytes)
        rc = err_set(e, -ESPIPE, "%s: cannot be read twice; use a file", path);
    if (rc == 0 && watch && watch->progress)
        watch->progress->total = file_input(&f)->size_bytes;
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? read_trace(&j, &f.trace) : read_workload(&j, &f.workload);
    if (watch)
        progress_clear(watch->progress);
    if (rc == 0 && !j.sites)
        rc = err_set(e, -ENODATA,
                     "%s: no call sites were recorded (use 'heaptape record --stacks')", path);
    if (rc == 0)
        rc = write_copy(&j, &f, how->to ? how->to : path, how->force || !how->to);
    for (size_t i = 0; i < j.n; i++)
        names_release(&j.names[i]);
    free(j.names);
    while (j.processes) {
        struct symbolized_process *p = j.processes;
        j.processes = p->next;
        free(p->exe);
        free(p);
    }
    file_close(&f);
    return rc;
}
