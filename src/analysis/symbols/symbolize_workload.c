// Copies a workload and replaces its code names.
#include "analysis/symbols/symbolize.h"

#include "base/bytes.h"
#include "base/frame.h"
#include "workload/format.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { LEVEL = 3 };

struct copying {
    struct frame_reader from;
    struct frame_writer to;
    struct buf payload;
    const struct names *names;
    bool named;          // the names have been written
    uint64_t samples_at; // offset in the copy
    uint64_t summary_at;
    struct err *e;
};

static int put_names(struct copying *c)
{
    int rc = 0;
    for (size_t entry = 0; rc == 0 && entry < c->names->n_entries;) {
        c->payload.size = 0;
        rc = names_put(&c->payload, c->names, 0, &entry) < 0
                 ? err_no_memory(c->e, c->to.out->name)
                 : frame_write(&c->to, FORMAT_NAMES, c->payload.data, c->payload.size, c->e);
    }
    c->named = true;
    return rc;
}

static int invalid_frame(const struct copying *c, const struct frame *f, int rc, const char *what)
{
    if (rc == -ENOMEM)
        return err_no_memory(c->e, c->to.out->name);
    return err_set(c->e, rc, "%s: invalid frame: %s, at byte %llu", c->from.in->name, what,
                   (unsigned long long)f->offset);
}

// Updates the offset of the samples, which move because they follow the names.
static int copy_summary(struct copying *c, const struct frame *f)
{
    struct workload_summary s = {0};
    int rc = format_get_summary(f->data, f->size, &s);
    if (rc < 0)
        return invalid_frame(c, f, rc, "malformed summary");
    s.samples_at = s.samples_at ? c->samples_at : 0;
    c->summary_at = c->to.out->offset;
    c->payload.size = 0;
    if (format_put_summary(&c->payload, &s) < 0)
        return err_no_memory(c->e, c->to.out->name);
    return frame_write(&c->to, FORMAT_SUMMARY, c->payload.data, c->payload.size, c->e);
}

// Updates the offset of the summary, which moves. The offsets of ops stay valid.
static int copy_index(struct copying *c, const struct frame *f)
{
    uint8_t trailer[FORMAT_TRAILER_BYTES];
    struct format_index x = {0};
    int rc = format_get_index(f->data, f->size, &x);
    if (rc < 0) {
        free(x.entries);
        return invalid_frame(c, f, rc, "malformed index");
    }
    put_u64(trailer, c->to.out->offset);
    put_u64(trailer + 8, FORMAT_TRAILER_MAGIC);
    x.summary_offset = c->summary_at;
    c->payload.size = 0;
    rc = format_put_index(&c->payload, &x) < 0
             ? err_no_memory(c->e, c->to.out->name)
             : frame_write(&c->to, FORMAT_INDEX, c->payload.data, c->payload.size, c->e);
    free(x.entries);
    return rc < 0 ? rc : output_write(c->to.out, trailer, sizeof trailer, c->e);
}

static int copy_frame(struct copying *c, const struct frame *f)
{
    int rc = 0;
    if (f->type == FORMAT_NAMES)
        return 0;
    if (!c->named && (f->type == FORMAT_SAMPLES || f->type == FORMAT_SUMMARY))
        rc = put_names(c);
    if (rc == 0 && (f->type == FORMAT_SUMMARY || f->type == FORMAT_INDEX))
        return f->type == FORMAT_SUMMARY ? copy_summary(c, f) : copy_index(c, f);
    if (f->type == FORMAT_SAMPLES && !c->samples_at)
        c->samples_at = c->to.out->offset;
    return rc < 0 ? rc : frame_write_stored(&c->to, &c->from.stored, c->e);
}

static int copy_all(struct copying *c)
{
    struct frame f = {0};
    int rc;
    do {
        rc = frame_next(&c->from, &f, c->e);
        if (rc == 0)
            rc = err_set(c->e, -ENODATA, "%s: cut off before the index, at byte %llu",
                         c->from.in->name, (unsigned long long)c->from.in->offset);
        if (rc > 0)
            rc = copy_frame(c, &f);
    } while (rc == 0 && f.type != FORMAT_INDEX);
    return rc;
}

int symbolize_workload(struct input *in, struct output *out, const struct names *names,
                       struct err *e)
{
    struct copying c = {.names = names, .e = e};
    frame_reader_init(&c.from, in, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION);
    frame_writer_init(&c.to, out, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION, FRAME_CODEC_ZSTD, LEVEL);
    int rc = input_seek(in, 0, e) ?: copy_all(&c);
    frame_reader_release(&c.from);
    frame_writer_release(&c.to);
    buf_release(&c.payload);
    return rc;
}
