#include "workload/decode.h"

#include "base/varint.h"

#include <errno.h>
#include <stdlib.h>

void decode_release(struct decode *d)
{
    free(d->runs);
    free(d->ops);
    free(d->threads);
    free(d->dependencies);
    free(d->waiting);
    free(d->history);
    free(d->freed);
    *d = (struct decode){0};
}

static int refuse(const char **what, const char *text)
{
    *what = text;
    return -EBADMSG;
}

static int reserve_arrays(struct decode *d, size_t n_ops, size_t n_blocks,
                          size_t n_dependency_values)
{
    if (HT_GROW(&d->ops, &d->ops_capacity, n_ops) < 0 ||
        HT_GROW(&d->runs, &d->runs_capacity, n_blocks) < 0 ||
        HT_GROW(&d->dependencies, &d->dependencies_capacity, n_dependency_values / 2) < 0 ||
        HT_GROW(&d->waiting, &d->waiting_capacity, n_dependency_values) < 0 ||
        HT_GROW(&d->history, &d->history_capacity, n_ops) < 0 ||
        HT_GROW(&d->freed, &d->freed_capacity, n_ops) < 0)
        return -ENOMEM;
    return 0;
}

// Rejects a frame that adds more threads or slots than its ops can use, so that allocations stay
// proportional to the file size.
static int read_limits(struct decode *d, const uint8_t *p, const char **what)
{
    uint64_t n_ops = get_u32(p + FORMAT_AT_OPS), slots = get_u32(p + FORMAT_AT_SLOT_LIMIT);
    size_t threads = get_u32(p + FORMAT_AT_THREAD_LIMIT);
    if (slots < d->slot_limit || slots > d->slot_limit + n_ops)
        return refuse(what, "invalid slot limit");
    if (threads < d->n_threads || threads > d->n_threads + 2 * n_ops)
        return refuse(what, "invalid thread limit");
    d->slot_limit = slots;
    return HT_EXTEND(&d->threads, &d->n_threads, &d->threads_capacity, threads);
}

static int read_shapes(struct decode *d, const uint8_t *p, const char **what)
{
    for (uint32_t i = 0; i < d->n_shapes; i++, p += FORMAT_SHAPE_BYTES) {
        unsigned kind = p[0], flags = p[1] & FORMAT_OP_FLAGS;
        bool site = p[1] & FORMAT_SHAPE_SITE, allocator = format_has_allocator(kind, flags);
        if (event_is_unknown(kind)) {
            d->unknown_kind = kind;
            return -EPROTO;
        }
        if (p[1] & ~(FORMAT_OP_FLAGS | FORMAT_SHAPE_SITE | FORMAT_SHAPE_DEPENDENCIES |
                     FORMAT_SHAPE_NO_SLOT) ||
            (site && !format_has_site(kind)) ||
            !format_flags_valid(kind, flags, p[1] & FORMAT_SHAPE_NO_SLOT))
            return refuse(what, "invalid kind or flags in a shape");
        d->shapes[i] = (struct decode_shape){
            .kind = p[0],
            .flags = (uint8_t)flags,
            .error = allocator ? 0 : p[2],
            .allocator = allocator ? event_valid_allocator(p[2]) : 0,
            .fields = format_op_fields(kind) | (site ? HT_F_VALUE : 0),
            .use = p[1] & FORMAT_SHAPE_NO_SLOT ? FORMAT_SLOT_NONE
                                               : (uint8_t)format_slot_use(kind, flags),
            .dependencies = p[1] & FORMAT_SHAPE_DEPENDENCIES,
        };
    }
    return 0;
}

// Points each column at its part of the payload.
static int read_columns(struct decode *d, const uint8_t *p, size_t n, const char **what)
{
    const uint8_t *at = p + FORMAT_HEAD_BYTES + (size_t)FORMAT_SHAPE_BYTES * d->n_shapes,
                  *end = p + n;
    for (unsigned c = 0; c < FORMAT_COLUMNS; c++) {
        size_t values = get_u32(p + FORMAT_AT_COLUMNS + 8 * c),
               rest = get_u32(p + FORMAT_AT_COLUMNS + 8 * c + 4);
        size_t extra = c == FORMAT_COLUMN_BLOCKS ? d->n_ops : 0; // The shapes follow the blocks.
        if (values + rest + extra > (size_t)(end - at))
            return refuse(what, "columns longer than the frame");
        d->columns[c] = (struct planes){at, at + values, at + values, at + values + rest};
        at += values + rest;
        if (c == FORMAT_COLUMN_BLOCKS)
            d->shape_column = at;
        at += extra;
    }
    if (get_u32(p + FORMAT_AT_TEXT_BYTES) != (size_t)(end - at))
        return refuse(what, "columns shorter than the frame");
    d->text = at;
    d->text_end = end;
    return 0;
}

static int read_head(struct decode *d, const uint8_t *p, size_t n, const char **what)
{
    if (n < FORMAT_HEAD_BYTES)
        return refuse(what, "shorter than its header");
    uint32_t n_blocks = get_u32(p + FORMAT_AT_BLOCKS);
    size_t n_dependencies = get_u32(p + FORMAT_AT_COLUMNS + 8 * FORMAT_COLUMN_DEPENDENCY);
    d->n_ops = get_u32(p + FORMAT_AT_OPS);
    d->n_shapes = get_u32(p + FORMAT_AT_SHAPES);
    d->age_codes = get_u32(p + FORMAT_AT_AGE_CODES);
    d->relative = get_u32(p + FORMAT_AT_FLAGS) & FORMAT_FLAG_RELATIVE_SLOTS;
    d->base_stamp = get_u64(p + FORMAT_AT_BASE_STAMP);
    if (d->n_ops == 0 || d->n_ops > FORMAT_MAX_OPS || n_blocks == 0 || n_blocks > d->n_ops ||
        n_dependencies > FORMAT_MAX_DEPENDENCIES || d->n_shapes > FORMAT_MAX_SHAPES ||
        n < FORMAT_HEAD_BYTES + (size_t)FORMAT_SHAPE_BYTES * d->n_shapes)
        return refuse(what, "invalid counts");
    if (get_u32(p + FORMAT_AT_FLAGS) & ~FORMAT_FLAGS) {
        *what = "a flag of the ops is not known";
        return -EPROTO;
    }
    if (get_u64(p + FORMAT_AT_FIRST_OP) != d->ops_before)
        return refuse(what, "ops before it are missing");
    int rc = read_columns(d, p, n, what);
    if (rc == 0 && (size_t)(d->columns[0].first_end - d->columns[0].first) !=
                       (size_t)n_blocks * FORMAT_BLOCK_VALUES)
        rc = refuse(what, "invalid block table");
    rc = rc ?: read_shapes(d, p + FORMAT_HEAD_BYTES, what) ?: read_limits(d, p, what);
    d->n_runs = n_blocks;
    return rc < 0 ? rc : reserve_arrays(d, d->n_ops, n_blocks, n_dependencies);
}

static int read_block(struct decode *d, uint32_t i, size_t ops_taken, uint64_t *first_stamp)
{
    struct planes *p = &d->columns[FORMAT_COLUMN_BLOCKS];
    uint64_t thread, first_op, n_ops, since;
    if (!planes_get(p, &thread) || !planes_get(p, &first_op) || !planes_get(p, &n_ops) ||
        !planes_get(p, &since))
        return -EBADMSG;
    if (thread >= d->n_threads || n_ops == 0 || n_ops > d->n_ops - ops_taken)
        return -EBADMSG;
    struct decode_thread *t = &d->threads[thread];
    if (t->run_serial == d->serial || first_op != t->next_op)
        return -EBADMSG;
    *first_stamp = d->base_stamp + since;
    if (d->has_stamps && (*first_stamp < since || *first_stamp < t->last_stamp))
        return -EBADMSG;
    t->run_serial = d->serial;
    t->run = i;
    d->runs[i] = (struct workload_run){(uint32_t)thread, first_op, n_ops, d->ops + ops_taken};
    return 0;
}

// Slots of a run.
struct decode_run {
    uint32_t *history, *freed; // slots used and slots freed
    uint32_t n_history, n_freed;
    uint32_t last_taken, last_used; // last slots that were encoded by number
};

static inline bool get_allocated(struct decode *d, struct decode_run *r, uint32_t *slot)
{
    uint64_t code;
    if (!planes_get(&d->columns[FORMAT_COLUMN_ALLOCATED], &code))
        return false;
    if (code == 0) {
        if (!r->n_freed)
            return false;
        *slot = r->freed[--r->n_freed];
    } else {
        uint64_t s = r->last_taken + (uint64_t)zigzag_get(code - 1);
        if (s >= d->slot_limit)
            return false;
        *slot = r->last_taken = (uint32_t)s;
    }
    r->history[r->n_history++] = *slot;
    return true;
}

static inline bool get_used(struct decode *d, struct decode_run *r, unsigned use, uint32_t *slot)
{
    uint64_t code;
    if (!planes_get(&d->columns[FORMAT_COLUMN_USED], &code))
        return false;
    if (code < d->age_codes) {
        if (code >= r->n_history)
            return false;
        *slot = r->history[r->n_history - 1 - code];
    } else {
        uint64_t s = code - d->age_codes;
        if (d->relative)
            s = r->last_used + (uint64_t)zigzag_get(s);
        if (s >= d->slot_limit)
            return false;
        *slot = r->last_used = (uint32_t)s;
    }
    if (use == FORMAT_SLOT_FREED)
        r->freed[r->n_freed++] = *slot;
    else
        r->history[r->n_history++] = *slot;
    return true;
}

static inline bool get_slot(struct decode *d, struct decode_run *r, unsigned use, uint32_t *slot)
{
    return use == FORMAT_SLOT_ALLOCATED ? get_allocated(d, r, slot) : get_used(d, r, use, slot);
}

static bool get_text(struct decode *d, struct workload_op *op)
{
    uint64_t n;
    if (!planes_get(&d->columns[FORMAT_COLUMN_TEXT], &n) || n > FORMAT_MAX_TEXT ||
        n > (size_t)(d->text_end - d->text))
        return false;
    op->text = (const char *)d->text;
    op->text_bytes = (uint32_t)n;
    d->text += n;
    return true;
}

static bool get_more(struct decode *d, unsigned fields, struct workload_op *op)
{
    struct planes *p = &d->columns[FORMAT_COLUMN_MORE];
    if ((fields & HT_F_COUNT && !planes_get(p, &op->count)) ||
        (fields & HT_F_ALIGN && !planes_get(p, &op->align)) ||
        (fields & HT_F_VALUE && !planes_get(p, &op->value)))
        return false;
    return !(fields & HT_F_TEXT) || get_text(d, op);
}

// Decodes an op's dependencies. dependencies_point_back checks them after all stamps are decoded.
static bool get_dependencies(struct decode *d, struct workload_op *op, uint32_t thread)
{
    struct planes *p = &d->columns[FORMAT_COLUMN_DEPENDENCY];
    uint64_t n, t, code;
    if (!planes_get(p, &n) || n == 0 || n > (size_t)(p->first_end - p->first) / 2)
        return false;
    op->dependencies = d->dependencies + d->n_dependencies;
    op->n_dependencies = (uint32_t)n;
    d->waiting[d->n_waiting++] = (uint32_t)(op - d->ops);
    for (uint64_t i = 0; i < n; i++) {
        if (!planes_get(p, &t) || !planes_get(p, &code) || t >= d->n_threads || t == thread)
            return false;
        struct decode_thread *other = &d->threads[t];
        uint64_t from =
            other->wait_block == d->blocks_before ? other->dependency_op : other->next_op;
        other->dependency_op = from + (uint64_t)zigzag_get(code);
        other->wait_block = d->blocks_before;
        d->dependencies[d->n_dependencies++] =
            (struct workload_dependency){(uint32_t)t, other->dependency_op};
    }
    return true;
}

static void note_site(struct decode *d, const struct workload_op *op)
{
    uint64_t site = format_op_site(op);
    d->max_site = site > d->max_site ? site : d->max_site;
}

static inline const char *decode_op(struct decode *d, struct decode_run *r,
                                    const struct decode_shape *s, struct workload_op *op,
                                    uint32_t thread)
{
    *op = (struct workload_op){.slot = WORKLOAD_NO_SLOT,
                               .kind = s->kind,
                               .flags = s->flags,
                               .error = s->error,
                               .allocator = s->allocator};
    if (s->use != FORMAT_SLOT_NONE && !get_slot(d, r, s->use, &op->slot))
        return "invalid slot";
    if (s->fields & HT_F_SIZE && !planes_get(&d->columns[FORMAT_COLUMN_SIZE], &op->size))
        return "missing sizes";
    if (s->fields & (HT_F_COUNT | HT_F_ALIGN | HT_F_VALUE | HT_F_TEXT) &&
        !get_more(d, s->fields, op))
        return "missing fields";
    if (op->value)
        note_site(d, op);
    if (s->kind == HT_THREAD_CREATE && op->value >= d->n_threads)
        return "invalid thread";
    if (s->dependencies && !get_dependencies(d, op, thread))
        return "invalid dependency";
    return NULL;
}

static const char *decode_run(struct decode *d, uint32_t i, uint64_t stamp)
{
    struct workload_run *run = &d->runs[i];
    struct workload_op *op = d->ops + (run->ops - d->ops);
    struct decode_run r = {.history = d->history, .freed = d->freed};
    d->blocks_before++;
    for (size_t k = 0; k < run->n_ops; k++, op++) {
        unsigned shape = *d->shape_column++;
        if (shape >= d->n_shapes)
            return "a shape is not in the table";
        const struct decode_shape *s = &d->shapes[shape];
        const char *what = decode_op(d, &r, s, op, run->thread);
        if (what)
            return what;
        uint64_t delta = 0;
        bool is_there =
            !d->has_stamps || (s->use == FORMAT_SLOT_ALLOCATED
                                   ? planes_get(&d->columns[FORMAT_COLUMN_ALLOCATED_TIME], &delta)
                                   : planes_get(&d->columns[FORMAT_COLUMN_TIME], &delta));
        if (!is_there || delta > UINT64_MAX - stamp)
            return "invalid timestamps";
        op->stamp = stamp += delta;
    }
    return NULL;
}

// Sets the stamps of a workload without timestamps: the stamp of an op is its number in the total
// order. The column stores the order as pairs of a run and a number of its ops.
static const char *number_ops(struct decode *d)
{
    struct planes *p = &d->columns[FORMAT_COLUMN_TIME];
    uint64_t at = d->ops_before, end = at + d->n_ops;
    // Indexed by run: number of ops that already have a stamp. Reuses the array d->freed, which is
    // not needed after all runs are decoded.
    uint32_t *allocated = d->freed;
    memset(allocated, 0, d->n_runs * sizeof *allocated);
    while (at < end) {
        uint64_t run, n;
        if (!planes_get(p, &run) || !planes_get(p, &n) || run >= d->n_runs || n == 0 ||
            n > d->runs[run].n_ops - allocated[run])
            return "invalid thread sequence";
        struct workload_op *op = d->ops + (d->runs[run].ops - d->ops) + allocated[run];
        allocated[run] += (uint32_t)n;
        for (uint64_t i = 0; i < n; i++)
            op[i].stamp = at++;
    }
    return NULL;
}

// Returns true if each op's stamp is greater than the stamps of the ops on which it depends.
// Sorting by stamp then yields a valid total order, and no two ops wait for each other.
static bool dependencies_point_back(const struct decode *d)
{
    for (size_t i = 0; i < d->n_waiting; i++) {
        const struct workload_op *op = &d->ops[d->waiting[i]];
        for (uint32_t k = 0; k < op->n_dependencies; k++) {
            const struct decode_thread *t = &d->threads[op->dependencies[k].thread];
            uint64_t number = op->dependencies[k].op;
            if (number < t->next_op)
                continue;
            if (t->run_serial != d->serial)
                return false;
            const struct workload_run *run = &d->runs[t->run];
            if (number - run->first_op >= run->n_ops ||
                run->ops[number - run->first_op].stamp >= op->stamp)
                return false;
        }
    }
    return true;
}

static const char *check_ends(const struct decode *d)
{
    for (unsigned c = 0; c < FORMAT_COLUMNS; c++) {
        if (!planes_at_end(&d->columns[c]))
            return "columns longer than its ops";
    }
    return d->text == d->text_end ? NULL : "texts longer than its ops";
}

static const char *decode_runs(struct decode *d)
{
    size_t allocated = 0;
    for (uint32_t i = 0; i < d->n_runs; i++) {
        uint64_t stamp;
        if (read_block(d, i, allocated, &stamp) < 0)
            return "invalid block of ops";
        allocated += d->runs[i].n_ops;
        const char *what = decode_run(d, i, stamp);
        if (what)
            return what;
    }
    if (allocated != d->n_ops)
        return "ops outside of any block";
    const char *what = d->has_stamps ? NULL : number_ops(d);
    if (what)
        return what;
    return dependencies_point_back(d) ? check_ends(d)
                                      : "a dependency does not point to an earlier op";
}

int decode_frame(struct decode *d, const uint8_t *payload, size_t n, const char **what)
{
    d->serial++;
    d->n_dependencies = d->n_waiting = 0;
    int rc = read_head(d, payload, n, what);
    if (rc < 0)
        return rc;
    const char *wrong = decode_runs(d);
    if (wrong)
        return refuse(what, wrong);
    for (size_t i = 0; i < d->n_runs; i++) {
        struct decode_thread *t = &d->threads[d->runs[i].thread];
        t->next_op += d->runs[i].n_ops;
        t->last_stamp = d->runs[i].ops[d->runs[i].n_ops - 1].stamp;
    }
    d->ops_before += d->n_ops;
    return 0;
}
