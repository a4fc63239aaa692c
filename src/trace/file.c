#include "trace/file.h"

static int open_reader(struct trace_file *t, struct err *e)
{
    int rc = trace_reader_open(&t->reader, &t->in, e);
    t->open = rc == 0;
    if (rc == 0 && t->tail.clock_hz)
        t->reader.session.clock_hz = t->tail.clock_hz;
    return rc;
}

int trace_file_adopt(struct trace_file *t, struct input *in, bool twice, struct err *e)
{
    *t = (struct trace_file){.in = *in};
    *in = (struct input){.fd = -1};
    int rc = twice ? input_make_seekable(&t->in, e) : 0;
    return rc < 0 ? rc : open_reader(t, e);
}

void trace_file_close(struct trace_file *t)
{
    if (t->open)
        trace_reader_close(&t->reader);
    trace_tail_release(&t->tail);
    input_close(&t->in);
    t->open = false;
}

int trace_file_rewind(struct trace_file *t, struct err *e)
{
    if (t->open)
        trace_reader_close(&t->reader);
    t->open = false;
    int rc = input_seek(&t->in, 0, e);
    return rc < 0 ? rc : open_reader(t, e);
}

int trace_file_read_tail(struct trace_file *t, struct err *e)
{
    if (t->tail_read || !t->in.size_bytes)
        return 0;
    int rc = trace_read_tail(&t->in, &t->tail, e);
    t->tail_read = rc >= 0;
    return rc < 0 ? rc : trace_file_rewind(t, e);
}
