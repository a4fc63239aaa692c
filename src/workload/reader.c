#include "workload/reader.h"

#include "base/bytes.h"
#include "workload/decode.h"
#include "workload/format.h"
#include "workload/proof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// Contents of the frames that are not OPS frames.
struct reader_extras {
    struct workload_sample *samples;
    size_t n_samples, samples_capacity;
    struct samples_residency residency;
    struct workload_sites sites;
};

struct workload_reader {
    struct input *in;
    struct frame_reader frames;
    struct workload_header header;
    struct workload_summary summary;
    bool has_summary, at_end;
    struct reader_extras extras;           // read from the stream
    struct workload_sample *found_samples; // read through the index
    struct decode decode;
    struct format_index seen;            // expected contents of the index
    uint64_t first_at[FORMAT_STEPS + 1]; // by type: offset of the first frame, or 0
    // The runs with ops that workload_next_op has not returned yet form a binary heap, ordered by
    // the stamp of the next op, then by thread.
    struct reader_run {
        const struct workload_op *at, *end;
        uint32_t thread;
        uint64_t number; // number of the op *at in its thread
    } * heap;
    size_t n_heap, heap_capacity;
    struct workload_run next; // ops of the first run that are checked but not returned yet
    bool in_order;            // ops are returned in total order, so they can be checked
    struct proof proof;
};

static int bad_frame(struct workload_reader *r, const struct frame *f, const char *what,
                     struct err *e)
{
    return err_set(e, -EBADMSG, "%s: invalid frame: %s, at byte %llu", r->in->name, what,
                   (unsigned long long)f->offset);
}

// Converts a decoder's result to an error about the frame.
static int report_error(struct workload_reader *r, const struct frame *f, int rc, const char *what,
                        struct err *e)
{
    if (rc == -ENOMEM)
        return err_no_memory(e, r->in->name);
    return rc < 0 ? bad_frame(r, f, what, e) : 0;
}

static int unknown_kind(struct workload_reader *r, const struct frame *f, unsigned kind,
                        struct err *e)
{
    char what[64];
    snprintf(what, sizeof what, "event kind %u is not known", kind);
    return frame_newer(r->in->name, f->offset, r->header.heaptape, what, e);
}

static int get_summary(struct workload_reader *r, const struct frame *f, struct workload_summary *s,
                       struct err *e)
{
    int rc = report_error(r, f, format_get_summary(f->data, f->size, s), "malformed summary", e);
    unsigned kind = rc == 0 ? format_unknown_kind(s) : 0;
    return kind ? unknown_kind(r, f, kind, e) : rc;
}

static int read_header(struct workload_reader *r, struct err *e)
{
    struct frame f;
    int rc = frame_next(&r->frames, &f, e);
    if (rc == 0)
        return err_set(e, -ENODATA, "%s: is empty", r->in->name);
    if (rc < 0)
        return rc;
    if (f.type != FORMAT_HEADER)
        return bad_frame(r, &f, "expected the header", e);
    rc = report_error(r, &f, format_get_header(f.data, f.size, &r->header), "malformed header", e);
    r->decode.has_stamps = r->header.has_stamps;
    return rc;
}

int workload_reader_open(struct workload_reader **out, struct input *in, struct err *e)
{
    struct workload_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return err_no_memory(e, in->name);
    r->in = in;
    frame_reader_init(&r->frames, in, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION);
    proof_init(&r->proof);
    int rc = read_header(r, e);
    if (rc < 0)
        workload_reader_close(r);
    else
        *out = r;
    return rc;
}

void workload_reader_close(struct workload_reader *r)
{
    if (!r)
        return;
    frame_reader_release(&r->frames);
    workload_header_release(&r->header);
    decode_release(&r->decode);
    free(r->extras.samples);
    samples_residency_release(&r->extras.residency);
    workload_sites_release(&r->extras.sites);
    free(r->found_samples);
    free(r->heap);
    free(r->seen.entries);
    proof_release(&r->proof);
    free(r);
}

void workload_reader_prove_order(struct workload_reader *r)
{
    proof_want_order(&r->proof);
}

bool workload_reader_proved_order(const struct workload_reader *r)
{
    return r->proof.order;
}

const struct workload_header *workload_reader_header(const struct workload_reader *r)
{
    return &r->header;
}

int workload_reader_find_pid(const struct workload_reader *r, uint32_t pid, struct err *e)
{
    uint32_t own = workload_reader_header(r)->pid;
    return !pid || pid == own ? 0
                              : err_set(e, -ENOENT, "%s: is a workload of process %u, not %u",
                                        r->in->name, own, pid);
}

const struct workload_summary *workload_reader_summary(const struct workload_reader *r)
{
    return r->has_summary ? &r->summary : NULL;
}

struct workload_summary workload_reader_counted(const struct workload_reader *r)
{
    return summary_result(&r->proof.counter);
}

const struct workload_sample *workload_reader_samples(const struct workload_reader *r, size_t *n)
{
    *n = r->extras.n_samples;
    return r->extras.samples;
}

const struct workload_sites *workload_reader_sites(const struct workload_reader *r)
{
    return &r->extras.sites;
}

// A second frame reader, which reads through the index.
struct beside {
    struct workload_reader *r;
    struct frame_reader frames;
    uint64_t position; // position of the stream before begin_beside
};

// Reads the frame at `offset`, which must be of type `type`.
static int read_frame_at(struct beside *b, uint64_t offset, struct frame *f, unsigned type,
                         struct err *e)
{
    struct workload_reader *r = b->r;
    uint64_t skipped = 0;
    int rc = input_seek(r->in, offset, e) ?: frame_resync(&b->frames, &skipped, e);
    if (rc == 0 || (rc > 0 && skipped))
        return err_set(e, -EBADMSG, "%s: the index points to byte %llu, where no frame begins",
                       r->in->name, (unsigned long long)offset);
    if (rc > 0)
        rc = frame_next(&b->frames, f, e);
    if (rc > 0 && f->type != type)
        return bad_frame(r, f, "the index points to a frame of another type", e);
    return rc < 0 ? rc : 0;
}

static int read_trailer(struct workload_reader *r, uint64_t *index_offset, struct err *e)
{
    uint8_t trailer[FORMAT_TRAILER_BYTES];
    uint64_t at = r->in->size_bytes - FORMAT_TRAILER_BYTES;
    if (r->in->size_bytes < FORMAT_TRAILER_BYTES)
        return err_set(e, -ENODATA, "%s: cut off before the summary", r->in->name);
    int rc = input_seek(r->in, at, e);
    ssize_t n = rc < 0 ? rc : input_read(r->in, trailer, sizeof trailer, e);
    if (n < 0)
        return (int)n;
    *index_offset = get_u64(trailer);
    if (n < FORMAT_TRAILER_BYTES || get_u64(trailer + 8) != FORMAT_TRAILER_MAGIC ||
        *index_offset > at)
        return err_set(e, -ENODATA, "%s: cut off before the summary, at byte %llu", r->in->name,
                       (unsigned long long)r->in->size_bytes);
    return 0;
}

// Reads the summary and the index. *f is the summary's frame. The caller must free *index, even
// after an error.
static int read_summary_and_index(struct beside *b, struct workload_summary *s,
                                  struct format_index *index, struct frame *f, struct err *e)
{
    struct workload_reader *r = b->r;
    uint64_t offset = 0;
    *index = (struct format_index){0};
    int rc = read_trailer(r, &offset, e)
                 ?: read_frame_at(b, offset, f, FORMAT_INDEX, e)
                 ?: report_error(r, f, format_get_index(f->data, f->size, index),
                                 "malformed index", e)
                 ?: read_frame_at(b, index->summary_offset, f, FORMAT_SUMMARY, e);
    *s = (struct workload_summary){0};
    if (rc == 0)
        rc = get_summary(r, f, s, e);
    return rc;
}

// Prepares *b. After success, call end_beside. Returns 0, or -ESPIPE for a pipe, with the message
// set.
static int begin_beside(struct beside *b, struct workload_reader *r, struct err *e)
{
    b->r = r;
    b->position = r->in->offset;
    if (!r->in->size_bytes)
        return err_set(
            e, -ESPIPE,
            "%s: the summary is at the end of the file, so it cannot be read from a pipe",
            r->in->name);
    frame_reader_init(&b->frames, r->in, FRAME_MAGIC_WORKLOAD, WORKLOAD_VERSION);
    return 0;
}

// Restores the position that the stream had before begin_beside. Returns rc if it is negative, else
// 0 or a negative errno.
static int end_beside(struct beside *b, int rc, struct err *e)
{
    frame_reader_release(&b->frames);
    int back = input_seek(b->r->in, b->position, e);
    return rc < 0 ? rc : back;
}

// Appends the contents of a frame that is not an OPS frame to *x.
static int get_extras(struct workload_reader *r, const struct frame *f, struct reader_extras *x,
                      struct err *e)
{
    struct samples_residency *l = &x->residency;
    const char *what = "malformed names";
    uint32_t process;
    int rc;
    if (f->type == FORMAT_SAMPLES) {
        rc = format_get_samples(f->data, f->size, &x->samples, &x->n_samples, &x->samples_capacity);
        what = "malformed samples";
    } else if (f->type == FORMAT_RESIDENCY) {
        rc = format_get_residency(f->data, f->size, &l->items, &l->n, &l->capacity);
        what = "malformed residency of blocks";
    } else if (f->type == FORMAT_STEPS) {
        rc = format_get_steps(f->data, f->size, l);
        what = "malformed steps of residency";
    } else if (f->type == FORMAT_SITES) {
        rc = workload_sites_get(f->data, f->size, &x->sites);
        what = "malformed call sites";
    } else {
        rc = names_get(f->data, f->size, &x->sites.names, &process);
    }
    return report_error(r, f, rc, what, e);
}

// Reads the frame of type `type` at `offset`, unless `offset` is 0. For SITES, also reads the SITES
// and NAMES frames that follow.
static int find_extras(struct beside *b, uint64_t offset, enum format_frame type,
                       struct reader_extras *x, struct err *e)
{
    struct frame f;
    int rc = offset ? read_frame_at(b, offset, &f, type, e) : 0, more = offset != 0;
    while (rc == 0 && more > 0 &&
           (f.type == type || (type == FORMAT_SITES && f.type == FORMAT_NAMES))) {
        rc = get_extras(b->r, &f, x, e);
        more = rc == 0 && type == FORMAT_SITES ? frame_next(&b->frames, &f, e) : 0;
    }
    return more < 0 ? more : rc;
}

// Reads the summary and the frames of type `type` through the index.
static int read_extras(struct workload_reader *r, enum format_frame type,
                       struct workload_summary *s, struct reader_extras *x, struct err *e)
{
    struct format_index index;
    struct beside b;
    struct frame f;
    int rc = begin_beside(&b, r, e);
    if (rc < 0)
        return rc;
    rc = read_summary_and_index(&b, s, &index, &f, e);
    free(index.entries);
    if (rc == 0 && type == FORMAT_SAMPLES)
        rc = find_extras(&b, s->samples_at, type, x, e);
    if (rc == 0 && type == FORMAT_SITES)
        rc = find_extras(&b, s->sites_at, type, x, e);
    if (rc == 0 && type == FORMAT_RESIDENCY)
        rc = find_extras(&b, s->residency_at, type, x, e);
    if (rc == 0 && type == FORMAT_RESIDENCY)
        rc = find_extras(&b, s->residency_steps_at, FORMAT_STEPS, x, e);
    return end_beside(&b, rc, e);
}

int workload_read_summary(struct workload_reader *r, struct workload_summary *s, struct err *e)
{
    return read_extras(r, FORMAT_SUMMARY, s, NULL, e);
}

int workload_read_samples(struct workload_reader *r, const struct workload_sample **s, size_t *n,
                          struct err *e)
{
    struct workload_summary summary;
    struct reader_extras x = {0};
    int rc = read_extras(r, FORMAT_SAMPLES, &summary, &x, e);
    free(r->found_samples);
    *s = r->found_samples = x.samples;
    *n = x.n_samples;
    return rc;
}

int workload_read_residency(struct workload_reader *r, struct samples_residency *l, struct err *e)
{
    struct workload_summary summary;
    struct reader_extras x = {0};
    int rc = read_extras(r, FORMAT_RESIDENCY, &summary, &x, e);
    *l = x.residency;
    return rc;
}

int workload_read_sites(struct workload_reader *r, struct workload_sites *s, struct err *e)
{
    struct workload_summary summary;
    struct reader_extras x = {0};
    int rc = read_extras(r, FORMAT_SITES, &summary, &x, e);
    *s = x.sites;
    return rc;
}

const struct samples_residency *workload_reader_residency(const struct workload_reader *r)
{
    return &r->extras.residency;
}

// Checks the entries of the index against the frames that were read. `at` is the offset of the
// index frame.
static int check_entries(struct workload_reader *r, uint64_t at, const struct format_index *index,
                         struct err *e)
{
    for (size_t i = 0; i < r->seen.n; i++) {
        struct format_index_entry entry = index->entries[i], seen = r->seen.entries[i];
        if (!r->header.has_stamps)
            seen.first_stamp = entry.first_stamp, seen.last_stamp = entry.last_stamp;
        if (memcmp(&entry, &seen, sizeof entry) != 0)
            return err_set(e, -EBADMSG,
                           "%s: invalid frame: the index does not agree with the ops at byte %llu, "
                           "at byte %llu",
                           r->in->name, (unsigned long long)r->seen.entries[i].offset,
                           (unsigned long long)at);
    }
    return 0;
}

static int check_index(struct workload_reader *r, const struct frame *f,
                       const struct format_index *index, struct err *e)
{
    if (!r->has_summary)
        return bad_frame(r, f, "the index comes before the summary", e);
    if (index->ops != r->decode.ops_before)
        return bad_frame(r, f, "the number of ops in the index is wrong", e);
    if (index->n != r->seen.n || index->summary_offset != r->seen.summary_offset)
        return bad_frame(r, f, "the index does not match the frames in the file", e);
    return check_entries(r, f->offset, index, e);
}

// Checks that the ops so far refer to no call site above `n`, the number of sites in the file. `at`
// is the offset for the error message.
static int check_site(struct workload_reader *r, uint64_t n, uint64_t at, struct err *e)
{
    if (r->decode.max_site <= n)
        return 0;
    return err_set(e, -EBADMSG,
                   "%s: invalid frame: an op has call site %llu of %llu call sites, at byte %llu",
                   r->in->name, (unsigned long long)r->decode.max_site, (unsigned long long)n,
                   (unsigned long long)at);
}

// Reads the index, the trailer and the end of the file.
static int read_end(struct workload_reader *r, const struct frame *f, struct err *e)
{
    struct format_index index = {0};
    uint8_t trailer[FORMAT_TRAILER_BYTES + 1];
    int rc = report_error(r, f, format_get_index(f->data, f->size, &index), "malformed index", e)
                 ?: check_index(r, f, &index, e);
    free(index.entries);
    if (rc < 0)
        return rc;
    ssize_t n = input_read(r->in, trailer, sizeof trailer, e);
    if (n < 0)
        return (int)n;
    if (n < FORMAT_TRAILER_BYTES)
        return err_set(e, -ENODATA, "%s: cut off inside the trailer, at byte %llu", r->in->name,
                       (unsigned long long)r->in->offset);
    if (n > FORMAT_TRAILER_BYTES || get_u64(trailer) != f->offset ||
        get_u64(trailer + 8) != FORMAT_TRAILER_MAGIC)
        return err_set(e, -EBADMSG, "%s: invalid trailer, at byte %llu", r->in->name,
                       (unsigned long long)(r->in->offset - (size_t)n));
    r->at_end = true;
    return 0;
}

// Records the index entry expected for the frame.
static int note_ops(struct workload_reader *r, const struct frame *f, struct err *e)
{
    struct format_index *seen = &r->seen;
    if (HT_GROW(&seen->entries, &seen->capacity, seen->n + 1) < 0)
        return err_no_memory(e, r->in->name);
    struct format_index_entry *entry = &seen->entries[seen->n++];
    *entry = (struct format_index_entry){.offset = f->offset,
                                         .first_op = r->decode.ops_before - r->decode.n_ops,
                                         .n_ops = r->decode.n_ops,
                                         .first_stamp = UINT64_MAX};
    for (size_t i = 0; i < r->decode.n_runs; i++) {
        const struct workload_run *run = &r->decode.runs[i];
        uint64_t first = run->ops[0].stamp, last = run->ops[run->n_ops - 1].stamp;
        entry->first_stamp = first < entry->first_stamp ? first : entry->first_stamp;
        entry->last_stamp = last > entry->last_stamp ? last : entry->last_stamp;
    }
    return 0;
}

static int decode_ops(struct workload_reader *r, const struct frame *f, struct err *e)
{
    const char *what = "";
    if (r->has_summary)
        return bad_frame(r, f, "ops come after the summary", e);
    int rc = decode_frame(&r->decode, f->data, f->size, &what);
    if (rc == -EPROTO && r->decode.unknown_kind)
        return unknown_kind(r, f, r->decode.unknown_kind, e);
    if (rc == -EPROTO)
        return frame_newer(r->in->name, f->offset, r->header.heaptape, what, e);
    rc = report_error(r, f, rc, what, e);
    return rc < 0 ? rc : note_ops(r, f, e);
}

// Converts a check's result to an error about the frame.
static __attribute__((noinline)) int report_disproof(struct workload_reader *r, uint64_t offset,
                                                     int rc, struct err *e)
{
    if (rc == -ENOMEM)
        return err_no_memory(e, r->in->name);
    return err_set(e, rc, "%s: invalid frame: %s, at byte %llu", r->in->name, r->proof.why.text,
                   (unsigned long long)offset);
}

static int read_summary(struct workload_reader *r, const struct frame *f, struct err *e)
{
    int rc = get_summary(r, f, &r->summary, e);
    if (rc < 0)
        return rc;
    r->has_summary = true;
    r->seen.summary_offset = f->offset;
    uint64_t n_sites = r->extras.sites.n_sites;
    if (r->summary.samples_at != r->first_at[FORMAT_SAMPLES] ||
        r->summary.residency_at != r->first_at[FORMAT_RESIDENCY] ||
        r->summary.residency_steps_at != r->first_at[FORMAT_STEPS] ||
        (r->summary.sites_at != r->first_at[FORMAT_SITES] && (r->summary.sites_at || n_sites)))
        return bad_frame(r, f,
                         "the summary does not say where samples, residency and call sites are", e);
    rc = check_site(r, n_sites, f->offset, e);
    if (rc < 0)
        return rc;
    if (r->in_order || !r->decode.ops_before)
        rc = proof_summary(&r->proof, r->header.has_stamps, &r->summary, true);
    return rc < 0 ? report_disproof(r, f->offset, rc, e) : 0;
}

static int check_part(struct beside *b, struct err *e)
{
    struct workload_reader *r = b->r;
    struct workload_summary s;
    struct reader_extras x = {0};
    struct format_index index;
    struct frame f;
    int rc = read_summary_and_index(b, &s, &index, &f, e);
    uint64_t at = f.offset;
    if (rc == 0 && (index.n < r->seen.n || index.ops < r->decode.ops_before))
        rc = bad_frame(r, &f, "the index does not match the frames in the file", e);
    if (rc == 0)
        rc = check_entries(r, at, &index, e);
    if (rc == 0 && (rc = proof_summary(&r->proof, r->header.has_stamps, &s, false)) < 0)
        report_disproof(r, at, rc, e);
    free(index.entries);
    rc = rc
             ?: find_extras(b, s.sites_at, FORMAT_SITES, &x, e)
             ?: check_site(r, x.sites.n_sites, at, e);
    workload_sites_release(&x.sites);
    return rc;
}

int workload_reader_check_part(struct workload_reader *r, struct err *e)
{
    if (!r->in->size_bytes || r->has_summary)
        return 0;
    struct beside b;
    int rc = begin_beside(&b, r, e);
    return rc < 0 ? rc : end_beside(&b, check_part(&b, e), e);
}

// Reads up to the next OPS frame. Returns 1, 0 at the end, or a negative errno.
static int next_ops(struct workload_reader *r, struct err *e)
{
    while (!r->at_end) {
        struct frame f;
        int rc = frame_next(&r->frames, &f, e);
        if (rc == 0)
            return err_set(e, -ENODATA, "%s: cut off before the summary, at byte %llu", r->in->name,
                           (unsigned long long)r->in->offset);
        if (rc < 0)
            return rc;
        switch (f.type) {
        case FORMAT_OPS:
            rc = decode_ops(r, &f, e);
            return rc < 0 ? rc : 1;
        case FORMAT_SAMPLES:
        case FORMAT_RESIDENCY:
        case FORMAT_STEPS:
        case FORMAT_SITES:
        case FORMAT_NAMES:
            if (!r->first_at[f.type])
                r->first_at[f.type] = f.offset;
            rc = get_extras(r, &f, &r->extras, e);
            break;
        case FORMAT_SUMMARY:
            rc = read_summary(r, &f, e);
            break;
        case FORMAT_INDEX:
            rc = read_end(r, &f, e);
            break;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

int workload_next_runs(struct workload_reader *r, const struct workload_run **runs, size_t *n,
                       struct err *e)
{
    int rc = next_ops(r, e);
    *runs = r->decode.runs;
    *n = rc > 0 ? r->decode.n_runs : 0;
    return rc;
}

static bool run_before(const struct reader_run *a, const struct reader_run *b)
{
    return a->at->stamp != b->at->stamp ? a->at->stamp < b->at->stamp : a->thread < b->thread;
}

// Restores the heap order below entry `i`.
static void heap_sift(struct workload_reader *r, size_t i)
{
    struct reader_run moved = r->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= r->n_heap)
            break;
        if (child + 1 < r->n_heap && run_before(&r->heap[child + 1], &r->heap[child]))
            child++;
        if (!run_before(&r->heap[child], &moved))
            break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = moved;
}

static int heap_fill(struct workload_reader *r, struct err *e)
{
    const struct workload_run *runs;
    size_t n;
    r->in_order = true;
    int rc = workload_next_runs(r, &runs, &n, e);
    if (rc <= 0)
        return rc;
    proof_frame(&r->proof);
    if (HT_GROW(&r->heap, &r->heap_capacity, n) < 0)
        return err_no_memory(e, r->in->name);
    for (size_t i = 0; i < n; i++)
        r->heap[i] = (struct reader_run){runs[i].ops, runs[i].ops + runs[i].n_ops, runs[i].thread,
                                         runs[i].first_op};
    r->n_heap = n;
    for (size_t i = n / 2; i-- > 0;)
        heap_sift(r, i);
    return 1;
}

// Returns the number of ops in the first run that precede the ops of all other runs.
static size_t run_length(const struct workload_reader *r)
{
    struct reader_run top = r->heap[0];
    const struct reader_run *other = r->n_heap > 1 ? &r->heap[1] : NULL;
    if (r->n_heap > 2 && run_before(&r->heap[2], other))
        other = &r->heap[2];
    if (!other)
        return (size_t)(top.end - top.at);
    while (top.at != top.end && run_before(&top, other))
        top.at++;
    return (size_t)(top.at - r->heap[0].at);
}

// Sets r->next to the next ops in total order, after checking them.
static int prove_next_run(struct workload_reader *r, struct err *e)
{
    if (!r->n_heap) {
        int rc = heap_fill(r, e);
        if (rc <= 0)
            return rc;
    }
    struct reader_run *top = &r->heap[0];
    r->next = (struct workload_run){top->thread, top->number, run_length(r), top->at};
    int rc = proof_run(&r->proof, &r->next, (size_t)(top->end - top->at));
    if (__builtin_expect(rc < 0, 0))
        return report_disproof(r, r->seen.entries[r->seen.n - 1].offset, rc, e);
    top->at += r->next.n_ops;
    top->number += r->next.n_ops;
    if (top->at == top->end)
        *top = r->heap[--r->n_heap];
    if (r->n_heap > 1)
        heap_sift(r, 0);
    return 1;
}

int workload_next_op(struct workload_reader *r, uint32_t *thread, const struct workload_op **op,
                     struct err *e)
{
    if (!r->next.n_ops) {
        int rc = prove_next_run(r, e);
        if (rc <= 0)
            return rc;
    }
    *thread = r->next.thread;
    *op = r->next.ops++;
    r->next.n_ops--;
    return 1;
}

int workload_next_ops(struct workload_reader *r, uint32_t *thread, const struct workload_op **ops,
                      size_t *n, struct err *e)
{
    int rc = prove_next_run(r, e);
    *thread = r->next.thread;
    *ops = r->next.ops;
    *n = r->next.n_ops;
    r->next.n_ops = 0;
    return rc;
}
