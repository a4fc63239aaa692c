#include "commands/convert_all.h"

#include "base/buf.h"
#include "base/progress.h"
#include "cli/command.h"
#include "commands/convert_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct all {
    struct trace_file *trace;
    const char *pattern;
    unsigned flags;
    const struct convert_trace_options *options;
    void (*done)(const char *path, uint64_t bytes, const struct workload_summary *s);
    struct target **targets;
    size_t n_targets, capacity;
    struct progress progress;
    struct err *e;
};

// A process image, and its file from the first op on.
struct target {
    struct all *all;
    uint32_t number; // of the process in the trace
    uint32_t pid;
    char *path; // NULL: no op has come
    struct output out;
    struct convert_process of;
};

// How many images of the pid have a file, this one included.
static unsigned images(const struct all *a, uint32_t pid)
{
    unsigned n = 1;
    for (size_t i = 0; i < a->n_targets; i++)
        n += a->targets[i]->path && a->targets[i]->pid == pid;
    return n;
}

// The file's name; the caller frees it. NULL when out of memory.
static char *make_path(const struct all *a, uint32_t pid)
{
    char number[32], *path;
    const char *at = strstr(a->pattern, "%p"), *rest = at ? at + 2 : NULL;
    unsigned image = images(a, pid);
    if (image == 1)
        snprintf(number, sizeof number, "%u", pid);
    else
        snprintf(number, sizeof number, "%u-%u", pid, image);
    if (at)
        return asprintf(&path, "%.*s%s%s", (int)(at - a->pattern), a->pattern, number, rest) < 0 ? NULL : path;
    size_t n = strlen(a->pattern);
    bool named = n > 4 && strcmp(a->pattern + n - 4, ".htw") == 0;
    n -= named ? 4 : 0;
    return asprintf(&path, "%.*s.%s%s", (int)n, a->pattern, number, named ? ".htw" : "") < 0 ? NULL : path;
}

static int open_file(struct target *t)
{
    struct all *a = t->all;
    char *path = make_path(a, t->pid);
    if (!path)
        return err_set(a->e, -ENOMEM, "%s: out of memory", a->pattern);
    t->path = path;
    int rc = output_open(&t->out, path, a->flags, a->e);
    const struct trace_reader *r = &a->trace->reader;
    return rc < 0 ? rc : convert_process_begin(&t->of, &t->out, &r->session, r->processes[t->number]);
}

static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct target *t = context;
    int rc = t->path ? 0 : open_file(t);
    return rc < 0 ? rc : convert_process_ops(&t->of, ops, n);
}

// Nobody asks what the memory was of before the first call.
static int put_samples(void *context, const struct trace_sample *samples, size_t n)
{
    struct target *t = context;
    return t->path ? convert_process_samples(&t->of, samples, n) : 0;
}

static int finish(void *context, const struct order_counts *counts, const struct workload_sites *sites)
{
    struct target *t = context;
    if (!t->path)
        return 0;
    int rc = convert_process_done(&t->of, counts, sites);
    uint64_t bytes = t->out.offset;
    int closed = output_close(&t->out, rc == 0, t->all->e);
    convert_process_release(&t->of);
    rc = rc < 0 ? rc : closed;
    if (rc == 0)
        t->all->done(t->path, bytes, &t->of.summary);
    return rc;
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct all *a = context;
    if (HT_GROW(&a->targets, &a->capacity, a->n_targets + 1) < 0)
        return -ENOMEM;
    struct target *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct target){.all = a,
                         .number = p->number,
                         .pid = p->pid,
                         .out.fd = -1,
                         .of = {.options = a->options, .trace = a->trace->in.name, .e = a->e}};
    a->targets[a->n_targets++] = t;
    *sink = (struct convert_sink){.ops = {.context = t, .ops = put_ops}, .samples = put_samples, .done = finish};
    return 1;
}

static void show_progress(void *context, uint64_t offset)
{
    struct all *a = context;
    progress_update(&a->progress, offset);
}

// Closes what an error has left open. The number of files.
static size_t release(struct all *a)
{
    size_t files = 0;
    for (size_t i = 0; i < a->n_targets; i++) {
        struct target *t = a->targets[i];
        files += t->path != NULL;
        if (t->out.fd >= 0)
            output_close(&t->out, false, NULL);
        convert_process_release(&t->of);
        free(t->path);
        free(t);
    }
    free(a->targets);
    return files;
}

int convert_all(struct trace_file *t, const char *pattern, unsigned flags, const struct convert_trace_options *options,
                void (*done)(const char *path, uint64_t bytes, const struct workload_summary *s), struct err *e)
{
    struct all a = {.trace = t, .pattern = pattern, .flags = flags, .options = options, .done = done, .e = e};
    struct convert_options how = {
        .window_ns = options->window_ns, .choose = choose, .progress = show_progress, .context = &a};
    struct convert_result result;
    progress_init(&a.progress, "convert", "B", t->in.size_bytes, cli_common.quiet);
    int rc = convert_run(&t->reader, &how, &result, e);
    progress_clear(&a.progress);
    if (rc == 0 && result.cut_off)
        note("%s; converted the events up to that point", result.cut.text);
    size_t files = release(&a);
    return rc == 0 && !files ? err_set(e, -ENOENT, "%s: the trace contains no events", t->in.name) : rc;
}
