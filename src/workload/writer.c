#include "workload/writer.h"

#include "base/bytes.h"
#include "base/ring.h"
#include "base/thread.h"
#include "workload/encode.h"
#include "workload/format.h"
#include "workload/samples.h"

#include <errno.h>
#include <stdlib.h>

// Number of full frames that may wait to be written.
enum { FRAMES_BEHIND = 2 };

struct workload_writer {
    struct frame_writer frames;
    struct output *out;
    struct encode encode; // current frame
    struct format_index index;
    struct buf payload;
    struct encode_payload ops_payload;
    struct samples samples;
    bool has_stamps;
    const struct workload_sites *sites;        // borrowed, or NULL
    const struct samples_residency *residency; // borrowed, or NULL
    // Full frames. If a CPU is available, a thread writes them while the next frame is being
    // filled.
    struct encode_frame full[FRAMES_BEHIND];
    struct ring ring;
    pthread_t thread;
    bool threaded, alone; // `threaded`: the thread is running; `alone`: no thread is used
    int rc;               // result of the thread, set before the ring is stopped
    struct err e;
};

struct workload_writer *workload_writer_new(struct output *out, int level)
{
    struct workload_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    frame_writer_init(&w->frames, out, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION, FRAME_CODEC_ZSTD,
                      level);
    encode_init(&w->encode);
    return w;
}

static void thread_end(struct workload_writer *w)
{
    if (!w->threaded)
        return;
    ring_over(&w->ring);
    pthread_join(w->thread, NULL);
    ring_release(&w->ring);
    w->threaded = false;
    w->alone = true;
}

void workload_writer_free(struct workload_writer *w)
{
    if (!w)
        return;
    thread_end(w);
    for (size_t i = 0; i < FRAMES_BEHIND; i++)
        encode_frame_release(&w->full[i]);
    frame_writer_release(&w->frames);
    encode_release(&w->encode);
    samples_release(&w->samples);
    buf_release(&w->payload);
    buf_release(&w->ops_payload.bytes);
    free(w->index.entries);
    free(w);
}

// Writes the payload as a frame and clears it. `rc` is the result of encoding the payload.
static int write_payload(struct workload_writer *w, enum format_frame type, int rc, struct err *e)
{
    rc = rc < 0 ? err_no_memory(e, w->out->name)
                : frame_write(&w->frames, type, w->payload.data, w->payload.size, e);
    w->payload.size = 0;
    return rc;
}

int workload_write_header(struct workload_writer *w, const struct workload_header *h, struct err *e)
{
    w->has_stamps = h->has_stamps;
    w->encode.has_stamps = h->has_stamps;
    return write_payload(w, FORMAT_HEADER, format_put_header(&w->payload, h), e);
}

static int write_frame(struct workload_writer *w, const struct encode_frame *f, struct err *e)
{
    struct format_index *index = &w->index;
    if (HT_GROW(&index->entries, &index->capacity, index->n + 1) < 0 ||
        encode_pack(f, &w->ops_payload) < 0)
        return err_no_memory(e, w->out->name);
    struct format_index_entry *entry = &index->entries[index->n++];
    *entry = (struct format_index_entry){.offset = w->out->offset, .n_ops = f->n_ops};
    encode_stamps(f, &entry->first_stamp, &entry->last_stamp);
    return frame_write_parts(&w->frames, FORMAT_OPS, w->ops_payload.parts, w->ops_payload.n_parts,
                             e);
}

static void *write_full_frames(void *of)
{
    struct workload_writer *w = of;
    int place;
    while ((place = ring_wait_full(&w->ring)) >= 0) {
        w->rc = write_frame(w, &w->full[place], &w->e);
        if (w->rc < 0) {
            ring_stop(&w->ring);
            break;
        }
        ring_empty(&w->ring);
    }
    return NULL;
}

static void thread_begin(struct workload_writer *w)
{
    w->alone = ring_cpus() < 2;
    if (w->alone)
        return;
    ring_init(&w->ring, FRAMES_BEHIND);
    w->threaded = thread_start(&w->thread, 0, write_full_frames, w) == 0;
    w->alone = !w->threaded;
    if (w->alone)
        ring_release(&w->ring);
}

// Returns the error of the writer thread.
static int report_thread_error(struct workload_writer *w, struct err *e)
{
    thread_end(w);
    return err_set(e, w->rc, "%s", w->e.text);
}

// Passes the current frame to the thread or, without a thread, writes the frame.
static int flush_frame(struct workload_writer *w, struct err *e)
{
    if (!w->encode.frame.n_ops)
        return 0;
    if (!w->threaded && !w->alone)
        thread_begin(w);
    if (!w->threaded) {
        encode_end_frame(&w->encode, &w->full[0]);
        return w->rc < 0 ? w->rc : write_frame(w, &w->full[0], e);
    }
    int place = ring_wait_empty(&w->ring);
    if (place < 0)
        return report_thread_error(w, e);
    encode_end_frame(&w->encode, &w->full[place]);
    ring_fill(&w->ring);
    return 0;
}

// Waits until all full frames have been written.
static int drain_frames(struct workload_writer *w, struct err *e)
{
    if (!w->threaded)
        return w->rc;
    ring_drain(&w->ring);
    thread_end(w);
    return w->rc < 0 ? report_thread_error(w, e) : 0;
}

// Returns the number of ops, both written and pending.
static uint64_t count_ops(const struct workload_writer *w)
{
    return w->encode.ops + w->encode.frame.n_ops;
}

static int refuse_op(struct workload_writer *w, uint32_t thread, const struct workload_op *op,
                     int rc, struct err *e)
{
    if (rc == -ENOMEM)
        return err_no_memory(e, w->out->name);
    return err_set(e, rc, "%s: op %llu (%s of thread %u) violates the rules of the workload format",
                   w->out->name, (unsigned long long)count_ops(w),
                   event_infos[op->kind].name ? event_infos[op->kind].name : "no kind", thread);
}

int workload_write_op(struct workload_writer *w, uint32_t thread, const struct workload_op *op,
                      struct err *e)
{
    struct encode *x = &w->encode;
    int rc = 0;
    if (__builtin_expect(encode_is_full(&x->frame), 0))
        rc = flush_frame(w, e);
    if (rc < 0)
        return rc;
    rc = encode_op(x, thread, op);
    if (__builtin_expect(rc == -EAGAIN, 0)) {
        rc = flush_frame(w, e);
        if (rc < 0)
            return rc;
        rc = encode_op(x, thread, op);
    }
    return __builtin_expect(rc < 0, 0) ? refuse_op(w, thread, op, rc, e) : 0;
}

int workload_write_ops(struct workload_writer *w, const struct workload_thread_op *ops, size_t n,
                       struct err *e)
{
    for (size_t i = 0; i < n; i++)
        encode_prefetch(&w->encode, ops[i].op.slot);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = workload_write_op(w, ops[i].thread, &ops[i].op, e);
    return rc;
}

int workload_write_samples(struct workload_writer *w, const struct workload_sample *s, size_t n,
                           struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (samples_add(&w->samples, &s[i]) < 0)
            return err_no_memory(e, w->out->name);
    }
    return 0;
}

void workload_write_sites(struct workload_writer *w, const struct workload_sites *s)
{
    w->sites = s;
}

void workload_write_residency(struct workload_writer *w, const struct samples_residency *l)
{
    w->residency = l;
}

// Writes the residency, or the residency steps. Sets *at to the offset of the frame, or to 0 if
// there is nothing to write.
static int put_residency(struct workload_writer *w, enum format_frame type, uint64_t *at,
                         struct err *e)
{
    const struct samples_residency *l = w->residency;
    bool is_steps = type == FORMAT_STEPS;
    *at = l && (is_steps ? l->n_steps : l->n) ? w->out->offset : 0;
    if (!*at)
        return 0;
    return write_payload(w, type,
                         is_steps ? format_put_steps(&w->payload, l->steps, l->n_steps)
                                  : format_put_residency(&w->payload, l->items, l->n),
                         e);
}

static int put_sites(struct workload_writer *w, uint64_t *at, struct err *e)
{
    size_t module = 0, site = 0;
    int rc = 0;
    *at = w->sites && w->sites->n_sites ? w->out->offset : 0;
    while (rc == 0 && w->sites && (module < w->sites->n_modules || site < w->sites->n_sites))
        rc = write_payload(w, FORMAT_SITES,
                           workload_sites_put(&w->payload, w->sites, &module, &site), e);
    return rc;
}

// Writes the names right after the call sites, where readers expect them.
static int put_names(struct workload_writer *w, struct err *e)
{
    struct names used = {0};
    int rc = w->sites && w->sites->n_sites ? workload_sites_used_names(w->sites, &used) : 0;
    rc = rc < 0 ? err_no_memory(e, w->out->name) : 0;
    for (size_t entry = 0; rc == 0 && entry < used.n_entries;)
        rc = write_payload(w, FORMAT_NAMES, names_put(&w->payload, &used, 0, &entry), e);
    names_release(&used);
    return rc;
}

// Writes the samples. Sets *at to their offset, or to 0 if there are no samples.
static int put_samples(struct workload_writer *w, uint64_t *at, struct err *e)
{
    samples_finish(&w->samples);
    *at = w->samples.n ? w->out->offset : 0;
    if (!w->samples.n)
        return 0;
    return write_payload(w, FORMAT_SAMPLES,
                         format_put_samples(&w->payload, w->samples.items, w->samples.n), e);
}

static int write_index(struct workload_writer *w, struct err *e)
{
    uint8_t trailer[FORMAT_TRAILER_BYTES];
    put_u64(trailer, w->out->offset);
    put_u64(trailer + 8, FORMAT_TRAILER_MAGIC);
    return write_payload(w, FORMAT_INDEX, format_put_index(&w->payload, &w->index), e)
               ?: output_write(w->out, trailer, sizeof trailer, e);
}

int workload_write_end(struct workload_writer *w, const struct workload_summary *s, struct err *e)
{
    struct workload_summary summary = *s;
    w->alone |= count_ops(w) < ENCODE_FRAME_OPS; // a single frame needs no thread
    int rc = flush_frame(w, e)
                 ?: drain_frames(w, e)
                 ?: put_sites(w, &summary.sites_at, e)
                 ?: put_names(w, e)
                 ?: put_samples(w, &summary.samples_at, e)
                 ?: put_residency(w, FORMAT_RESIDENCY, &summary.residency_at, e)
                 ?: put_residency(w, FORMAT_STEPS, &summary.residency_steps_at, e);
    if (rc < 0)
        return rc;
    w->index.summary_offset = w->out->offset;
    w->index.ops = count_ops(w);
    return write_payload(w, FORMAT_SUMMARY, format_put_summary(&w->payload, &summary), e)
               ?: write_index(w, e);
}

int workload_output_begin(struct workload_output *w, struct output *out, int level,
                          const struct workload_header *h, struct err *e)
{
    w->out = out;
    summary_init(&w->counter);
    w->writer = workload_writer_new(out, level);
    if (!w->writer)
        return err_no_memory(e, out->name);
    return workload_write_header(w->writer, h, e);
}

void workload_output_release(struct workload_output *w)
{
    if (!w->out)
        return;
    summary_release(&w->counter);
    workload_writer_free(w->writer);
    *w = (struct workload_output){0};
}

int workload_output_op(struct workload_output *w, uint32_t thread, const struct workload_op *op,
                       struct err *e)
{
    if (summary_op(&w->counter, thread, op) < 0)
        return err_no_memory(e, w->out->name);
    return workload_write_op(w->writer, thread, op, e);
}

int workload_output_ops(struct workload_output *w, const struct workload_thread_op *ops, size_t n,
                        struct err *e)
{
    if (summary_ops(&w->counter, ops, n) < 0)
        return err_no_memory(e, w->out->name);
    return workload_write_ops(w->writer, ops, n, e);
}

int workload_output_simple(struct workload_output *w, uint32_t thread,
                           const struct workload_simple *ops, size_t n, struct err *e)
{
    enum { NEAR_SLOTS = 1 << 14 }; // number of slots whose data fits in the L2 cache
    for (size_t i = 0; i < n && w->counter.summary.slots > NEAR_SLOTS; i++) {
        encode_prefetch(&w->writer->encode, ops[i].slot);
        summary_prefetch(&w->counter, ops[i].slot);
    }
    if (summary_simple(&w->counter, thread, ops, n) < 0)
        return err_no_memory(e, w->out->name);
    for (size_t i = 0; i < n; i++) {
        i += encode_simple(&w->writer->encode, thread, ops + i, n - i);
        if (i == n)
            break;
        const struct workload_op op = workload_simple_op(&ops[i]);
        int rc = workload_write_op(w->writer, thread, &op, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

struct workload_summary workload_output_summary(const struct workload_output *w)
{
    return summary_result(&w->counter);
}
