#include "commands/open_file.h"

#include <errno.h>

int open_file_to_read(struct open_file *f, const char *path, bool twice, struct err *e)
{
    struct input in;
    const uint8_t *bytes;
    *f = (struct open_file){.trace.in.fd = -1, .workload.in.fd = -1};
    int rc = input_open(&in, path, e);
    if (rc < 0)
        return rc;
    ssize_t n = input_peek(&in, FRAME_HEADER_BYTES, &bytes, e);
    if (n < 0)
        rc = (int)n;
    else if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_WORKLOAD))
        return workload_take(&f->workload, &in, e);
    else if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_TRACE)) {
        f->is_trace = true;
        return trace_file_take(&f->trace, &in, twice, e);
    } else if (n == 0)
        rc = err_set(e, -ENODATA, "%s: is empty", in.name);
    else
        rc = err_set(e, -EPROTO, "%s: not a heaptape trace or workload, at byte 0", in.name);
    input_close(&in);
    return rc;
}

int open_file(struct open_file *f, const char *path, struct err *e)
{
    return open_file_to_read(f, path, false, e);
}

void close_file(struct open_file *f)
{
    if (f->is_trace)
        trace_file_close(&f->trace);
    else
        close_workload(&f->workload);
}
