#include "commands/open_workload.h"
#include "commands/convert_trace.h"

#include <errno.h>

// The trace in w->in becomes the workload that is made of it.
static int convert_input(struct open_workload *w, uint32_t pid, struct err *e)
{
    struct trace_file t;
    struct output out = {.fd = -1};
    struct workload_summary summary;
    const struct convert_trace_options how = {.pid = pid, .level = 1}; // read once and thrown away
    const char *name = w->in.name;
    int rc = trace_file_take(&t, &w->in, true, e);
    if (rc == 0)
        rc = output_open_unnamed(&out, e);
    if (rc == 0)
        rc = convert_trace(&t, &out, &how, &summary, e);
    if (rc == 0)
        rc = input_from_output(&w->in, &out, name, e);
    else if (out.fd >= 0)
        output_close(&out, false, NULL);
    trace_file_close(&t);
    return rc;
}

static int make_workload(struct open_workload *w, uint32_t pid, struct err *e)
{
    const uint8_t *bytes;
    ssize_t n = input_peek(&w->in, FRAME_HEADER_BYTES, &bytes, e);
    if (n < 0)
        return (int)n;
    if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_WORKLOAD))
        return 0;
    if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_TRACE))
        return convert_input(w, pid, e);
    return err_set(e, -EPROTO, "%s: not a heaptape trace or workload, at byte 0", w->in.name);
}

static int open_as_asked(struct open_workload *w, const char *path, uint32_t pid, bool to_rewind, struct err *e)
{
    *w = (struct open_workload){.in = {.fd = -1}};
    int rc = input_open(&w->in, path, e);
    if (rc == 0 && to_rewind)
        rc = input_make_seekable(&w->in, e);
    if (rc == 0)
        rc = make_workload(w, pid, e);
    if (rc == 0)
        rc = workload_reader_open(&w->reader, &w->in, e);
    return rc;
}

int open_workload(struct open_workload *w, const char *path, struct err *e)
{
    return open_as_asked(w, path, 0, false, e);
}

int open_workload_of(struct open_workload *w, const char *path, uint32_t pid, struct err *e)
{
    return open_as_asked(w, path, pid, false, e);
}

int open_workload_to_rewind(struct open_workload *w, const char *path, struct err *e)
{
    return open_as_asked(w, path, 0, true, e);
}

int workload_take(struct open_workload *w, struct input *in, struct err *e)
{
    *w = (struct open_workload){.in = *in};
    *in = (struct input){.fd = -1};
    return workload_reader_open(&w->reader, &w->in, e);
}

int rewind_workload(struct open_workload *w, struct err *e)
{
    workload_reader_close(w->reader);
    w->reader = NULL;
    int rc = input_seek(&w->in, 0, e);
    return rc < 0 ? rc : workload_reader_open(&w->reader, &w->in, e);
}

void close_workload(struct open_workload *w)
{
    if (w->reader)
        workload_reader_close(w->reader);
    input_close(&w->in);
    *w = (struct open_workload){.in = {.fd = -1}};
}
