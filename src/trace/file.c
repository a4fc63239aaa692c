#include "trace/file.h"

#include <errno.h>

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

int trace_file_each_map(struct trace_file *t,
                        int (*take)(void *context, struct trace_pages *p, uint32_t number),
                        void *context, struct err *e)
{
    struct frame_reader frames;
    struct frame f;
    struct err ignored;
    int rc = input_seek(&t->in, 0, e);
    if (rc < 0)
        return rc;
    frame_reader_init(&frames, &t->in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    for (uint32_t i = 0; (rc = frame_next_of(&frames, TRACE_PAGES, &f, &ignored)) > 0; i++) {
        struct trace_pages p = {0};
        rc = trace_pages_get(f.data, f.size, &p) ?: take(context, &p, i);
        trace_pages_release(&p);
        if (rc == -ENOMEM || rc > 0)
            break;
    }
    frame_reader_release(&frames);
    return rc == -ENOMEM ? err_no_memory(e, t->in.name) : trace_file_rewind(t, e);
}

int trace_file_read_tail(struct trace_file *t, struct err *e)
{
    if (t->tail_read || !t->in.size_bytes)
        return 0;
    int rc = trace_read_tail(&t->in, &t->tail, e);
    t->tail_read = rc >= 0;
    return rc < 0 ? rc : trace_file_rewind(t, e);
}
