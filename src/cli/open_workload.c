#include "cli/open_workload.h"

#include <errno.h>

static int check_kind(struct open_workload *w, struct err *e)
{
    const uint8_t *bytes;
    ssize_t n = input_peek(&w->in, FRAME_HEADER_BYTES, &bytes, e);
    if (n < 0)
        return (int)n;
    if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_WORKLOAD))
        return 0;
    if (frame_magic_at(bytes, (size_t)n, FRAME_MAGIC_TRACE))
        return err_set(e, -EPROTO, "%s: is a trace; 'heaptape convert' makes a workload of it", w->in.name);
    return err_set(e, -EPROTO, "%s: is no workload, at byte 0", w->in.name);
}

int open_workload(struct open_workload *w, const char *path, struct err *e)
{
    *w = (struct open_workload){.in = {.fd = -1}};
    int rc = input_open(&w->in, path, e);
    if (rc == 0)
        rc = check_kind(w, e);
    if (rc == 0)
        rc = workload_reader_open(&w->reader, &w->in, e);
    return rc;
}

void close_workload(struct open_workload *w)
{
    if (w->reader)
        workload_reader_close(w->reader);
    input_close(&w->in);
    *w = (struct open_workload){.in = {.fd = -1}};
}
