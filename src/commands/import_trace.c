#include "commands/import_trace.h"

#include "base/progress.h"
#include "cli/command.h"
#include "formats/import.h"
#include "trace/writer.h"

#include <errno.h>

struct job {
    struct input *in;
    struct trace_writer writer;
    struct progress progress;
    struct err *e;
    uint64_t end_stamp;
    bool has_times;
};

static int put_session(void *context, const struct trace_session *s, bool has_times)
{
    struct job *j = context;
    j->has_times = has_times;
    return trace_write_session(&j->writer, s, j->e);
}

static int put_process(void *context, const struct trace_process *p)
{
    struct job *j = context;
    return trace_write_process(&j->writer, p, j->e);
}

static int put_round(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    struct job *j = context;
    j->end_stamp = watermark;
    progress_update(&j->progress, j->in->offset);
    return trace_write_round(&j->writer, watermark, segments, n, j->e);
}

void import_name_skipped(const char *text)
{
    note("skipped: %s", text);
}

void import_tell_skipped(const struct import *im)
{
    if (im->skipped)
        note("skipped %llu invalid record%s, the first: %s", (unsigned long long)im->skipped,
             im->skipped == 1 ? "" : "s", im->first_skipped.text);
}

int import_trace(struct input *in, struct output *out, const struct import_trace_options *o, bool *has_times,
                 struct err *e)
{
    struct job j = {.in = in, .e = e};
    struct import im = {
        .format = o->format,
        .keep_going = o->keep_going,
        .name_skipped = import_name_skipped,
        .sink = {&j, put_session, put_process, put_round},
    };
    trace_writer_init(&j.writer, out, o->codec, o->level);
    progress_init(&j.progress, "import", "B", in->size_bytes, cli_common.quiet);
    int rc = import_run(&im, in, e);
    if (rc == 0)
        rc = trace_write_end(&j.writer, j.end_stamp, 0, e);
    progress_clear(&j.progress);
    if (rc == 0)
        import_tell_skipped(&im);
    *has_times = j.has_times;
    import_release(&im);
    trace_writer_release(&j.writer);
    return rc;
}
