#include "workload/file.h"

#include "trace/join.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static unsigned kind_of(const uint8_t *bytes, size_t n)
{
    size_t i = 0;
    if (frame_magic_at(bytes, n, FRAME_MAGIC_TRACE))
        return FILE_TRACE;
    if (frame_magic_at(bytes, n, FRAME_MAGIC_WORKLOAD))
        return FILE_WORKLOAD;
    if (frame_magic_at(bytes, n, FRAME_MAGIC_AGGREGATE))
        return FILE_AGGREGATE;
    while (i < n && bytes[i] && strchr(" \t\r\n", bytes[i]))
        i++;
    return i < n && bytes[i] == '{' ? FILE_JSON : 0;
}

int file_sniff(struct input *in, unsigned accept, struct err *e)
{
    const uint8_t *bytes;
    ssize_t n = input_peek(in, FRAME_HEADER_BYTES, &bytes, e);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return err_set(e, -ENODATA, "%s: is empty", in->name);
    unsigned kind = kind_of(bytes, (size_t)n);
    if (kind & accept)
        return (int)kind;
    if (kind == FILE_AGGREGATE)
        return err_set(
            e, -EPROTO,
            "%s: is an aggregate, which has no events: 'stat', 'report' and 'top' read it",
            in->name);
    if (input_check_compressed(in, bytes, (size_t)n, e) < 0)
        return -EPROTO;
    if (accept & FILE_JSON)
        return err_set(e, -EPROTO,
                       "%s: is not a heaptape trace, workload or JSON document, at byte 0",
                       in->name);
    if (kind == FILE_WORKLOAD)
        return err_set(e, -EPROTO, "%s: is a workload, expected a trace", in->name);
    return err_set(e, -EPROTO, "%s: is not a heaptape trace%s, at byte 0", in->name,
                   accept & FILE_WORKLOAD ? " or workload" : "");
}

int workload_file_adopt(struct workload_file *w, struct input *in, struct err *e)
{
    *w = (struct workload_file){.in = *in};
    *in = (struct input){.fd = -1};
    return workload_reader_open(&w->reader, &w->in, e);
}

int workload_file_rewind(struct workload_file *w, struct err *e)
{
    workload_reader_close(w->reader);
    w->reader = NULL;
    return input_seek(&w->in, 0, e) ?: workload_reader_open(&w->reader, &w->in, e);
}

void workload_file_close(struct workload_file *w)
{
    workload_reader_close(w->reader);
    input_close(&w->in);
    *w = (struct workload_file){.in = {.fd = -1}};
}

int file_open_input(struct input *in, const char *path, struct err *e)
{
    struct stat st;
    bool folder = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return folder ? trace_join(in, path, e) : input_open(in, path, e);
}

int file_open(struct file *f, const char *path, unsigned accept, struct err *e)
{
    struct input in;
    *f = (struct file){.trace.in.fd = -1, .workload.in.fd = -1, .json.fd = -1};
    int rc = accept & FILE_REGULAR ? input_open_regular(&in, path, e)
             : accept & FILE_TRACE ? file_open_input(&in, path, e)
                                   : input_open(&in, path, e);
    return rc < 0 ? rc : file_adopt(f, &in, accept, e);
}

int file_adopt(struct file *f, struct input *in, unsigned accept, struct err *e)
{
    *f = (struct file){.trace.in.fd = -1, .workload.in.fd = -1, .json.fd = -1};
    int rc = file_sniff(in, accept, e);
    f->kind = rc < 0 ? 0 : (unsigned)rc;
    if (f->kind == FILE_TRACE)
        return trace_file_adopt(&f->trace, in, accept & (FILE_TWICE | FILE_TRACE_TWICE), e);
    if (rc > 0 && accept & FILE_TWICE)
        rc = input_make_seekable(in, e);
    if (rc >= 0 && f->kind == FILE_WORKLOAD)
        return workload_file_adopt(&f->workload, in, e);
    if (rc < 0)
        input_close(in);
    else
        f->json = *in;
    return rc < 0 ? rc : 0;
}

const struct input *file_input(const struct file *f)
{
    return f->kind == FILE_TRACE      ? &f->trace.in
           : f->kind == FILE_WORKLOAD ? &f->workload.in
                                      : &f->json;
}

void file_close(struct file *f)
{
    trace_file_close(&f->trace);
    workload_file_close(&f->workload);
    input_close(&f->json);
}
