#include "workload/merged.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "workload/format.h"
#include "workload/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_NUMBER = 0xffffffff };

// Maps the thread or slot numbers of an input to numbers of the merged workload.
struct merged_numbers {
    uint32_t *at; // indexed by the number in the input; NO_NUMBER if not assigned yet
    size_t n, capacity;
};

struct merged_source {
    struct workload_reader *reader;
    uint64_t hz; // stamps per second
    // First stamp in units of the input, and offset in units of the merged workload.
    uint64_t first_stamp, offset;
    uint64_t op_number;
    uint32_t thread;                      // thread of `op`
    const struct workload_op *op;         // next op, NULL at the end
    uint64_t stamp;                       // stamp of `op` in the merged workload
    struct merged_numbers threads, slots; // arrays, because the reader limits these numbers
    // A map, because the reader checks site numbers only when it reads the SITES frame.
    struct map sites;
};

struct merged {
    struct workload_header header;
    struct merged_source *sources;
    size_t n_sources;
    bool begun;
    struct merged_source *last; // source of the op returned last; not yet advanced past that op
    uint64_t *last_stamps;      // last stamp of each thread
    size_t n_last_stamps, last_stamps_capacity;
    uint32_t n_threads, n_slots, n_sites;
    uint64_t hz;
    struct workload_op op;
    struct workload_dependency *dependencies;
    size_t dependencies_capacity;
};

static uint64_t stamps_a_second(const struct workload_header *h)
{
    return h->clock_hz >> h->stamp_shift;
}

static uint64_t scale_stamps(uint64_t stamps, uint64_t to_hz, uint64_t from_hz)
{
    if (to_hz == from_hz || !from_hz)
        return stamps;
    return (uint64_t)((unsigned __int128)stamps * to_hz / from_hz);
}

// Joins the command lines. Returns 0 or -ENOMEM.
static int join_argv(struct workload_header *to, const struct merged_input *inputs, size_t n)
{
    struct buf b = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct workload_header *h = workload_reader_header(inputs[i].reader);
        rc |= i ? buf_put(&b, "+", 2) : 0;
        rc |= h->argv_bytes ? buf_put(&b, h->argv, h->argv_bytes) : 0;
    }
    to->argv = (char *)b.data;
    to->argv_bytes = (uint32_t)b.size;
    return rc;
}

// Sets *to to a copy of a string in the headers. Leaves *to unchanged if the inputs have different
// strings.
static int common_text(char **to, const struct merged_input *inputs, size_t n, size_t offset)
{
    const char *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *text =
            *(char *const *)((const char *)workload_reader_header(inputs[i].reader) + offset);
        if (i && (!text || !first || strcmp(text, first) != 0))
            return 0;
        first = text;
    }
    *to = first ? strdup(first) : NULL;
    return first && !*to ? -ENOMEM : 0;
}

static int make_header(struct workload_header *to, const struct merged_input *inputs, size_t n)
{
    const struct workload_header *first = workload_reader_header(inputs[0].reader);
    *to = (struct workload_header){.clock_hz = first->clock_hz,
                                   .stamp_shift = first->stamp_shift,
                                   .has_stamps = true,
                                   .start_stamp = first->start_stamp,
                                   .pid = n == 1 ? first->pid : 0,
                                   .stack_sample_bytes = first->stack_sample_bytes};
    for (size_t i = 0; i < n; i++)
        to->has_stamps &= workload_reader_header(inputs[i].reader)->has_stamps;
    int rc = join_argv(to, inputs, n)
                 ?: common_text(&to->exe, inputs, n, offsetof(struct workload_header, exe))
                 ?: common_text(&to->allocator, inputs, n,
                                offsetof(struct workload_header, allocator));
    return rc < 0 ? rc
                  : common_text(&to->allocator_build_id, inputs, n,
                                offsetof(struct workload_header, allocator_build_id));
}

struct merged *merged_new(const struct merged_input *inputs, size_t n)
{
    struct merged *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->sources = calloc(n, sizeof *m->sources);
    if (!m->sources || make_header(&m->header, inputs, n) < 0) {
        merged_free(m);
        return NULL;
    }
    m->hz = stamps_a_second(&m->header);
    m->n_sources = n;
    for (size_t i = 0; i < n; i++)
        m->sources[i] =
            (struct merged_source){.reader = inputs[i].reader,
                                   .hz = stamps_a_second(workload_reader_header(inputs[i].reader)),
                                   .offset = scale_stamps(inputs[i].offset_ns, m->hz, 1000000000u)};
    return m;
}

void merged_free(struct merged *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->sources && i < m->n_sources; i++) {
        free(m->sources[i].threads.at);
        free(m->sources[i].slots.at);
        map_release(&m->sources[i].sites);
    }
    workload_header_release(&m->header);
    free(m->sources);
    free(m->last_stamps);
    free(m->dependencies);
    free(m);
}

const struct workload_header *merged_header(const struct merged *m)
{
    return &m->header;
}

// Reads the source's next op and computes its stamp.
static int advance_source(struct merged *m, struct merged_source *s, struct err *e)
{
    int rc = workload_next_op(s->reader, &s->thread, &s->op, e);
    if (rc <= 0) {
        s->op = NULL;
        return rc;
    }
    if (!m->header.has_stamps) {
        s->stamp = s->op_number++;
        return 0;
    }
    if (!s->op_number++)
        s->first_stamp = s->op->stamp;
    // If a later op has a lower stamp than the first op, it gets the stamp of the first op.
    uint64_t since = s->op->stamp > s->first_stamp ? s->op->stamp - s->first_stamp : 0;
    s->stamp = m->sources[0].first_stamp + s->offset + scale_stamps(since, m->hz, s->hz);
    return 0;
}

// Maps number `i` of the input to its number in the merged workload, or to NO_NUMBER.
static uint32_t get_number(const struct merged_numbers *n, size_t i)
{
    return i < n->n ? n->at[i] : NO_NUMBER;
}

// Returns the source of the next op, or NULL at the end. Ops with equal stamps are ordered by
// thread, as in the reader. The peak in the summary therefore equals the peak that a reader
// computes.
static struct merged_source *choose_source(struct merged *m)
{
    struct merged_source *best = NULL;
    for (size_t i = 0; i < m->n_sources; i++) {
        struct merged_source *s = &m->sources[i];
        if (s->op && (!best || s->stamp < best->stamp ||
                      (s->stamp == best->stamp && get_number(&s->threads, s->thread) <
                                                      get_number(&best->threads, best->thread))))
            best = s;
    }
    return best;
}

// Replaces a number of the input with its number in the merged workload. If the number is new,
// assigns *count to it and increments *count. Returns 0, -ENOMEM, or -EOVERFLOW if *count has
// reached its limit.
static int renumber(struct merged_numbers *n, uint32_t *number, uint32_t *count)
{
    size_t had = n->n;
    if (*number >= had) {
        if (HT_GROW(&n->at, &n->capacity, (size_t)*number + 1) < 0)
            return -ENOMEM;
        n->n = (size_t)*number + 1;
        memset(n->at + had, 0xff, (n->n - had) * sizeof *n->at);
    }
    uint32_t *cell = &n->at[*number];
    if (*cell == NO_NUMBER && *count == NO_NUMBER)
        return -EOVERFLOW;
    if (*cell == NO_NUMBER)
        *cell = (*count)++;
    *number = *cell;
    return 0;
}

static int number_thread(struct merged *m, struct merged_source *s, uint32_t *thread)
{
    int rc = renumber(&s->threads, thread, &m->n_threads);
    return rc < 0 ? rc
                  : HT_EXTEND(&m->last_stamps, &m->n_last_stamps, &m->last_stamps_capacity,
                              m->n_threads);
}

// Renumbers an op's call site.
static int number_site(struct merged *m, struct merged_source *s, struct workload_op *op)
{
    unsigned shift = op->kind == HT_PREEXISTING ? 8 : 0;
    uint64_t site = op->value >> shift;
    if (!site || site >= NO_NUMBER)
        return 0;
    uint64_t number = map_get(&s->sites, site);
    if (!number && map_put(&s->sites, site, number = ++m->n_sites) < 0)
        return -ENOMEM;
    op->value = (op->value & ((1u << shift) - 1)) | number << shift;
    return 0;
}

// Renumbers the thread that a thread.create or thread.start names.
static int number_named(struct merged *m, struct merged_source *s, struct workload_op *op)
{
    uint32_t named = op->value < NO_NUMBER ? (uint32_t)op->value : NO_NUMBER;
    if (op->kind != HT_THREAD_CREATE && op->kind != HT_THREAD_START)
        return 0;
    // A thread.start names the creator of the thread. A creator without earlier ops is unknown.
    if (op->kind == HT_THREAD_START && get_number(&s->threads, named) == NO_NUMBER) {
        op->value = NO_NUMBER;
        return 0;
    }
    int rc = number_thread(m, s, &named);
    op->value = named;
    return rc;
}

// Renumbers the dependencies. Raises the op's stamp above the stamps of its dependencies, because
// these stamps can become equal on a coarser clock.
static int number_dependencies(struct merged *m, struct merged_source *s, struct workload_op *op)
{
    if (HT_GROW(&m->dependencies, &m->dependencies_capacity, op->n_dependencies) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        m->dependencies[i] = op->dependencies[i];
        int rc = number_thread(m, s, &m->dependencies[i].thread);
        if (rc < 0)
            return rc;
        uint64_t last_stamp = m->last_stamps[m->dependencies[i].thread];
        if (m->header.has_stamps && op->stamp <= last_stamp)
            op->stamp = last_stamp + 1;
    }
    op->dependencies = m->dependencies;
    return 0;
}

static int renumber_op(struct merged *m, struct merged_source *s, uint32_t *thread)
{
    struct workload_op *op = &m->op;
    *op = *s->op;
    *thread = s->thread;
    op->stamp = s->stamp;
    int rc = number_thread(m, s, thread) ?: number_named(m, s, op);
    if (rc == 0 && op->slot != WORKLOAD_NO_SLOT)
        rc = renumber(&s->slots, &op->slot, &m->n_slots);
    if (rc == 0 && op->value && (op->kind == HT_PREEXISTING || format_has_site(op->kind)))
        rc = number_site(m, s, op);
    // Pools of different sources are distinct.
    if (event_infos[op->kind].class == HT_CLASS_POOL)
        op->align = op->align * m->n_sources + (size_t)(s - m->sources);
    if (rc == 0 && op->n_dependencies)
        rc = number_dependencies(m, s, op);
    if (rc < 0)
        return rc;
    uint64_t *last_stamp = &m->last_stamps[*thread];
    if (op->stamp < *last_stamp)
        op->stamp = *last_stamp;
    *last_stamp = op->stamp;
    return 1;
}

int merged_next(struct merged *m, uint32_t *thread, const struct workload_op **op, struct err *e)
{
    int rc = 0;
    if (!m->begun) {
        for (size_t i = 0; rc == 0 && i < m->n_sources; i++)
            rc = advance_source(m, &m->sources[i], e);
        m->begun = true;
    } else if (m->last) {
        rc = advance_source(m, m->last, e);
    }
    if (rc < 0)
        return rc;
    m->last = choose_source(m);
    if (!m->last)
        return 0;
    rc = renumber_op(m, m->last, thread);
    *op = &m->op;
    return rc;
}

static int add_sites(struct workload_sites *to, const struct merged_source *s)
{
    const struct workload_sites *from = workload_reader_sites(s->reader);
    int rc = 0;
    for (size_t i = 1; rc == 0 && i <= from->n_sites; i++) {
        uint64_t number = map_get(&s->sites, i);
        if (number)
            rc = workload_sites_copy(to, (uint32_t)number, from, (uint32_t)i,
                                     (uint32_t)to->n_modules);
    }
    return rc < 0 ? rc : workload_sites_copy_modules(to, from);
}

// Merges the call sites of all inputs. Call after reading all ops. The caller must release *to.
// Returns 0 or -ENOMEM.
static int merge_sites(const struct merged *m, struct workload_sites *to)
{
    int rc = 0;
    *to = (struct workload_sites){0};
    for (size_t i = 0; rc == 0 && i < m->n_sources; i++)
        rc = add_sites(to, &m->sources[i]);
    return rc;
}

// Like merge_sites, but merges the residency of all inputs. Sorts the result. Ops keep their
// numbers within their threads, so the op numbers need no change.
static int merge_residency(const struct merged *m, struct samples_residency *to)
{
    int rc = 0;
    *to = (struct samples_residency){0};
    for (size_t i = 0; i < m->n_sources; i++) {
        const struct merged_source *s = &m->sources[i];
        const struct samples_residency *from = workload_reader_residency(s->reader);
        for (size_t k = 0; rc == 0 && k < from->n; k++) {
            struct workload_residency r = from->items[k];
            r.thread = get_number(&s->threads, r.thread);
            rc = r.thread == NO_NUMBER ? 0 : samples_residency_add(to, &r);
        }
    }
    samples_residency_sort(to);
    return rc;
}

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

// Returns the total size of all files, or 0 if any file is a pipe.
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
        if (number % 65536 == 0)
            progress_update(w->files->progress, bytes_read(w->files));
        rc = workload_output_op(&w->to, thread, op, w->e);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? err_set(w->e, rc, "%s: cannot merge: %s", w->to.out->name, strerror(-rc)) : 0;
}

static int end_output(struct merged_writing *w, struct workload_summary *s)
{
    struct workload_sites sites;
    *s = workload_output_summary(&w->to);
    for (size_t i = 0; i < w->files->n; i++) {
        const struct workload_summary *of = workload_reader_summary(w->files->in[i].reader);
        s->order_repaired += of->order_repaired;
        s->order_ambiguous += of->order_ambiguous;
        s->lost_records += of->lost_records;
        s->dependencies_needed += of->dependencies_needed;
        summary_add_early(s, of);
    }
    int rc = merge_sites(w->merged, &sites);
    if (rc < 0)
        err_no_memory(w->e, w->to.out->name);
    struct samples_residency residency = {0};
    if (rc == 0 && (rc = merge_residency(w->merged, &residency)) < 0)
        err_no_memory(w->e, w->to.out->name);
    workload_write_sites(w->to.writer, &sites);
    workload_write_residency(w->to.writer, &residency);
    if (rc == 0)
        rc = workload_write_end(w->to.writer, s, w->e);
    samples_residency_release(&residency);
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
    progress_clear(progress);
    rc = rc < 0 ? rc : end_output(w, s);
    workload_output_release(&w->to);
    return rc;
}

int merged_files_write(const struct merged_files *m, struct output *out, struct workload_summary *s,
                       struct err *e)
{
    struct merged_writing w = {.files = m, .e = e};
    struct merged_input *inputs = calloc(m->n, sizeof *inputs);
    for (size_t i = 0; inputs && i < m->n; i++)
        inputs[i] = (struct merged_input){m->in[i].reader, m->offsets_ns[i]};
    w.merged = inputs ? merged_new(inputs, m->n) : NULL;
    int rc = w.merged ? write_all(&w, out, s) : err_no_memory(e, out->name);
    merged_free(w.merged);
    free(inputs);
    return rc;
}
