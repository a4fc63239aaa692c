#include "formats/import_file.h"

#include "formats/import.h"
#include "trace/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// An import that writes either a trace or the workload of a file's only process.
struct import_job {
    const struct input *in;
    struct output *out;
    const struct import_settings *settings;
    struct err *e;
    bool has_times;
    // For writing a trace.
    struct trace_writer writer;
    uint64_t end_stamp;
    // For writing a workload.
    struct convert_settings convert;
    struct trace_session session;
    struct trace_process of;
    struct convert_process process;
    struct order *order;
};

static void show_progress(const struct import_job *j)
{
    const struct convert_watch *watch = j->settings->convert.watch;
    if (watch)
        progress_update(watch->progress, j->in->offset);
}

static void note_skipped(const struct import *im)
{
    if (im->skipped && im->note)
        err_note(im->note, "skipped %llu invalid record%s, the first: %s",
                 (unsigned long long)im->skipped, im->skipped == 1 ? "" : "s",
                 im->first_skipped.text);
}

// Reports how many calls took each malloc path. A trace stores the paths, but a workload cannot.
static void note_paths(const struct import *im)
{
    char text[600];
    size_t n = 0;
    for (unsigned i = 0; i < HT_PATHS; i++) {
        if (im->paths[i])
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %llu",
                                  n ? ", " : "paths of malloc: ", event_path_names[i],
                                  (unsigned long long)im->paths[i]);
    }
    if (n && im->note)
        err_note(im->note, "%s (only a trace can store the path of each call, see --trace)", text);
}

// Runs the import, then calls `finish` to complete the output.
static int run_import(struct import_job *j, struct input *in, struct import_sink sink,
                      int (*finish)(struct import_job *j))
{
    const struct convert_watch *watch = j->settings->convert.watch;
    struct import im = {
        .format = j->settings->format,
        .keep_going = j->settings->keep_going,
        .note = watch ? watch->note : NULL,
        .sink = sink,
    };
    if (watch && watch->progress)
        watch->progress->total = in->size_bytes;
    int rc = import_run(&im, in, j->e);
    j->convert.no_early_frees = im.no_early_frees;
    if (rc == 0)
        rc = finish(j);
    if (watch)
        progress_clear(watch->progress);
    if (rc < 0)
        err_set(j->e, rc, "%s: cannot import: %s", in->name, strerror(-rc));
    if (rc == 0) {
        note_skipped(&im);
        if (j->order)
            note_paths(&im);
    }
    import_release(&im);
    return rc;
}

static int write_session(void *context, const struct trace_session *s, bool has_times)
{
    struct import_job *j = context;
    j->has_times = has_times;
    return trace_write_session(&j->writer, s, j->e);
}

static int write_process(void *context, const struct trace_process *p)
{
    struct import_job *j = context;
    return trace_write_process(&j->writer, p, j->e);
}

static int write_batch(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    struct import_job *j = context;
    j->end_stamp = watermark;
    show_progress(j);
    return trace_write_batch(&j->writer, watermark, segments, n, j->e);
}

static int write_names(void *context, const struct names *names)
{
    struct import_job *j = context;
    return trace_write_names(&j->writer, 0, names, j->e);
}

static int finish_trace(struct import_job *j)
{
    return trace_write_end(&j->writer, j->end_stamp, 0, j->e);
}

static int write_trace(struct import_job *j, struct input *in, enum frame_codec codec, int level)
{
    trace_writer_init(&j->writer, j->out, codec, level);
    int rc = run_import(
        j, in, (struct import_sink){j, write_session, write_process, write_batch, write_names},
        finish_trace);
    trace_writer_release(&j->writer);
    return rc;
}

int import_trace(struct input *in, struct output *out, const struct import_settings *s,
                 struct err *e)
{
    struct import_job j = {.in = in, .out = out, .settings = s, .e = e};
    return write_trace(&j, in, FRAME_CODEC_ZSTD, s->convert.level);
}

static int begin_session(void *context, const struct trace_session *s, bool has_times)
{
    struct import_job *j = context;
    j->session = *s;
    j->convert.no_stamps |= !has_times;
    return 0;
}

static int begin_process(void *context, const struct trace_process *p)
{
    struct import_job *j = context;
    // Stamps that merely number events, or that keep the file order, are never early.
    bool is_ordered = j->session.order_only || j->convert.window_ns <= 1;
    struct order_options how = {.window = j->convert.window_ns,
                                .skid = is_ordered ? 0 : CONVERT_SKID_NS,
                                .no_early_frees = j->settings->format->import.no_early_frees};
    struct order_sink to = {
        .context = &j->process, .ops = convert_process_ops, .simple = convert_process_simple};
    j->order = order_new(&how, &to);
    // The conversion uses j->of until it ends.
    j->of = *p;
    return j->order ? convert_process_begin(&j->process, j->out, &j->session, &j->of) : -ENOMEM;
}

// Adds the batch to j->order, then orders all events up to the watermark.
static int order_batch(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    struct import_job *j = context;
    int rc = 0;
    show_progress(j);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = order_feed(j->order, &segments[i]);
    return rc < 0 ? rc : order_advance(j->order, watermark);
}

static int order_all_names(void *context, const struct names *names)
{
    struct import_job *j = context;
    struct buf b = {0};
    int rc = 0;
    for (size_t entry = 0; rc == 0 && entry < names->n_entries;) {
        b.size = 0;
        rc = names_put(&b, names, 0, &entry) ?: order_names(j->order, b.data, b.size);
    }
    buf_release(&b);
    return rc;
}

static int finish_workload(struct import_job *j)
{
    int rc = order_finish(j->order);
    struct order_counts counts = order_counts(j->order);
    return rc < 0 ? rc : convert_process_done(&j->process, &counts, order_sites(j->order));
}

// If the file has one process, writes its workload directly. This takes 20 % less time than an
// import through a trace.
static int write_workload(struct import_job *j, struct input *in, struct workload_summary *summary)
{
    j->process = (struct convert_process){.settings = &j->convert, .source = in->name, .e = j->e};
    int rc = run_import(
        j, in, (struct import_sink){j, begin_session, begin_process, order_batch, order_all_names},
        finish_workload);
    *summary = j->process.summary;
    order_free(j->order);
    convert_process_release(&j->process);
    return rc;
}

// Imports into a trace in a temporary file. The processes are known only at the end of the input.
static int open_trace(struct import_job *j, struct input *in, struct trace_file *t)
{
    struct output between;
    struct input trace;
    int rc = output_open_unnamed(&between, j->e);
    if (rc < 0)
        return rc;
    j->out = &between;
    rc = write_trace(j, in, FRAME_CODEC_LZ4, 1);
    if (rc < 0) {
        output_close(&between, false, NULL);
        return rc;
    }
    j->convert.no_stamps |= !j->has_times;
    rc = input_from_output(&trace, &between, in->name, j->e);
    return rc < 0 ? rc : trace_file_adopt(t, &trace, true, j->e);
}

static struct import_job job_new(const struct input *in, const struct import_settings *s,
                                 struct err *e)
{
    struct import_job j = {.in = in, .settings = s, .convert = s->convert, .e = e};
    j.convert.window_ns = s->format->import.window;
    return j;
}

int import_one(struct input *in, struct output *out, const struct import_settings *s,
               struct workload_summary *summary, struct err *e)
{
    struct import_job j = job_new(in, s, e);
    struct trace_file t = {.in.fd = -1};
    j.out = out;
    if (!s->format->import.several_processes && !s->convert.pid)
        return write_workload(&j, in, summary);
    int rc = open_trace(&j, in, &t) ?: convert_one(&t, out, &j.convert, summary, e);
    trace_file_close(&t);
    return rc;
}

int import_each(struct input *in, const struct convert_files *files,
                const struct import_settings *s, struct err *e)
{
    struct import_job j = job_new(in, s, e);
    struct trace_file t = {.in.fd = -1};
    int rc = open_trace(&j, in, &t) ?: convert_each(&t, files, &j.convert, e);
    trace_file_close(&t);
    return rc;
}
