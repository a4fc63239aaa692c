// Writes the workload that several files make: ops, call sites and the summary.
#include "workload/merged.h"
#include "workload/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct merged_writing {
    const struct merged_files *files;
    struct merged *merged;
    struct workload_output to;
    struct err *e;
};

static uint64_t bytes_read(const struct merged_files *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->in[i].in.offset;
    return n;
}

// 0 when one of them is a pipe.
static uint64_t bytes_to_read(const struct merged_files *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->in[i].in.size_bytes)
            return 0;
        n += m->in[i].in.size_bytes;
    }
    return n;
}

static int copy_ops(struct merged_writing *w)
{
    const struct workload_op *op;
    uint32_t thread;
    int rc;
    for (uint64_t number = 0; (rc = merged_next(w->merged, &thread, &op, w->e)) > 0; number++) {
        if (w->files->progress && number % 65536 == 0)
            progress_update(w->files->progress, bytes_read(w->files));
        rc = workload_output_op(&w->to, thread, op, w->e);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? err_set(w->e, rc, "%s: cannot merge: %s", w->to.out->name, strerror(-rc)) : 0;
}

static int finish(struct merged_writing *w, struct workload_summary *s)
{
    struct workload_sites sites;
    *s = workload_output_summary(&w->to);
    for (size_t i = 0; i < w->files->n; i++) {
        const struct workload_summary *of = workload_reader_summary(w->files->in[i].reader);
        s->order_repaired += of->order_repaired;
        s->order_ambiguous += of->order_ambiguous;
        s->lost_records += of->lost_records;
        s->dependencies_needed += of->dependencies_needed;
    }
    int rc = merged_sites(w->merged, &sites);
    if (rc < 0)
        err_set(w->e, rc, "%s: out of memory", w->to.out->name);
    workload_write_sites(w->to.writer, &sites);
    if (rc == 0)
        rc = workload_write_end(w->to.writer, s, w->e);
    workload_sites_release(&sites);
    return rc;
}

static int write_all(struct merged_writing *w, struct output *out, struct workload_summary *s)
{
    struct progress *progress = w->files->progress;
    if (progress)
        progress->total = bytes_to_read(w->files);
    int rc = workload_output_begin(&w->to, out, w->files->level, merged_header(w->merged), w->e);
    rc = rc < 0 ? rc : copy_ops(w);
    if (progress)
        progress_clear(progress);
    rc = rc < 0 ? rc : finish(w, s);
    workload_output_release(&w->to);
    return rc;
}

int merged_files_write(const struct merged_files *m, struct output *out, struct workload_summary *s, struct err *e)
{
    struct merged_writing w = {.files = m, .e = e};
    struct merged_input *inputs = calloc(m->n, sizeof *inputs);
    for (size_t i = 0; inputs && i < m->n; i++)
        inputs[i] = (struct merged_input){m->in[i].reader, m->offsets_ns[i]};
    w.merged = inputs ? merged_new(inputs, m->n) : NULL;
    int rc = w.merged ? write_all(&w, out, s) : err_set(e, -ENOMEM, "%s: out of memory", out->name);
    merged_free(w.merged);
    free(inputs);
    return rc;
}
