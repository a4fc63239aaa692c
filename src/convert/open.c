#include "convert/open.h"

// Converts the trace and closes it.
static int convert_file(struct workload_file *w, struct trace_file *t,
                        const struct convert_open_options *o, struct err *e)
{
    struct output out = {.fd = -1};
    struct input in = {.fd = -1};
    struct workload_summary summary;
    const struct convert_settings how = {
        .pid = o->pid, .level = 1, .watch = o->watch}; // temporary file: favor speed over size
    const char *name = t->in.name;
    int rc = output_open_unnamed(&out, e);
    if (rc == 0)
        rc = convert_one(t, &out, &how, &summary, e);
    trace_file_close(t);
    if (rc == 0)
        rc = input_from_output(&in, &out, name, e);
    else if (out.fd >= 0)
        output_close(&out, false, NULL);
    return rc < 0 ? rc : workload_file_adopt(w, &in, e);
}

int convert_open(struct workload_file *w, const char *path, const struct convert_open_options *o,
                 struct err *e)
{
    struct input in;
    struct trace_file t;
    *w = (struct workload_file){.in.fd = -1};
    int rc = file_open_input(&in, path, e);
    if (rc < 0)
        return rc;
    int kind = file_sniff(&in, FILE_TRACE | FILE_WORKLOAD, e);
    if (kind == FILE_TRACE) {
        rc = trace_file_adopt(&t, &in, true, e);
        if (rc == 0)
            return convert_file(w, &t, o, e);
        trace_file_close(&t);
        return rc;
    }
    rc = kind < 0 ? kind : o->twice ? input_make_seekable(&in, e) : 0;
    if (rc == 0)
        return workload_file_adopt(w, &in, e);
    input_close(&in);
    return rc;
}
