#include "workload/format.h"

#include "base/tlv.h"
#include "base/varint.h"

#include <errno.h>
#include <stdlib.h>

void workload_header_release(struct workload_header *h)
{
    free(h->exe);
    free(h->allocator);
    free(h->argv);
    *h = (struct workload_header){0};
}

bool format_flags_valid(unsigned kind, unsigned flags, bool no_slot)
{
    switch (event_infos[kind].class) {
    case HT_CLASS_ALLOC:
        if (kind == HT_PREEXISTING)
            return !(flags & ~WORKLOAD_SIZE_UNKNOWN) && !no_slot;
        return !(flags & ~WORKLOAD_FAILED) && no_slot == !!(flags & WORKLOAD_FAILED);
    case HT_CLASS_FREE:
        return flags == 0;
    case HT_CLASS_RESIZE:
        if (flags & WORKLOAD_FREED)
            return flags == WORKLOAD_FREED && !no_slot;
        if (flags & WORKLOAD_FAILED)
            return !(flags & ~(WORKLOAD_FAILED | WORKLOAD_FROM_NULL)) &&
                   no_slot == !!(flags & WORKLOAD_FROM_NULL);
        return !no_slot && (flags == 0 || flags == WORKLOAD_FROM_NULL || flags == WORKLOAD_MOVED);
    case HT_CLASS_MAP:
        return !(flags & ~WORKLOAD_FAILED);
    case HT_CLASS_THREAD:
    case HT_CLASS_MARK:
        return flags == 0;
    case HT_CLASS_POOL:
        return flags == 0 || (kind == HT_POOL_ALLOC && flags == WORKLOAD_FAILED);
    }
    return false;
}

int format_put_header(struct buf *b, const struct workload_header *h)
{
    int rc = tlv_put_u64(b, FORMAT_F_CLOCK_HZ, h->clock_hz) |
             tlv_put_u64(b, FORMAT_F_STAMP_SHIFT, h->stamp_shift) |
             tlv_put_u64(b, FORMAT_F_HAS_STAMPS, h->has_stamps) |
             tlv_put_u64(b, FORMAT_F_START_STAMP, h->start_stamp) |
             tlv_put_u64(b, FORMAT_F_PID, h->pid) | tlv_put_string(b, FORMAT_F_EXE, h->exe) |
             tlv_put_string(b, FORMAT_F_ALLOCATOR, h->allocator);
    if (h->stack_sample_bytes)
        rc |= tlv_put_u64(b, FORMAT_F_STACK_SAMPLE_BYTES, h->stack_sample_bytes);
    if (h->forked_from)
        rc |= tlv_put_u64(b, FORMAT_F_FORKED_FROM, h->forked_from);
    if (h->argv_bytes)
        rc |= tlv_put_bytes(b, FORMAT_F_ARGV, h->argv, h->argv_bytes);
    return rc ? -ENOMEM : 0;
}

static int get_string(char **to, const struct tlv *f)
{
    free(*to);
    *to = tlv_string(f);
    return *to ? 0 : -ENOMEM;
}

static int get_argv(struct workload_header *h, const struct tlv *f)
{
    free(h->argv);
    h->argv_bytes = 0;
    h->argv = malloc(f->size + 1);
    if (!h->argv)
        return -ENOMEM;
    memcpy(h->argv, f->bytes, f->size);
    h->argv[f->size] = 0;
    h->argv_bytes = (uint32_t)f->size;
    return 0;
}

static int get_header_field(void *to, const struct tlv *f)
{
    struct workload_header *h = to;
    switch (f->tag) {
    case FORMAT_F_CLOCK_HZ:
        h->clock_hz = f->number;
        break;
    case FORMAT_F_STAMP_SHIFT:
        if (f->number > 32)
            return -EBADMSG;
        h->stamp_shift = (unsigned)f->number;
        break;
    case FORMAT_F_HAS_STAMPS:
        h->has_stamps = f->number != 0;
        break;
    case FORMAT_F_START_STAMP:
        h->start_stamp = f->number;
        break;
    case FORMAT_F_PID:
        h->pid = (uint32_t)f->number;
        break;
    case FORMAT_F_FORKED_FROM:
        h->forked_from = (uint32_t)f->number;
        break;
    case FORMAT_F_EXE:
        return get_string(&h->exe, f);
    case FORMAT_F_ALLOCATOR:
        return get_string(&h->allocator, f);
    case FORMAT_F_STACK_SAMPLE_BYTES:
        h->stack_sample_bytes = f->number;
        break;
    case FORMAT_F_ARGV:
        return get_argv(h, f);
    }
    return 0;
}

int format_get_header(const uint8_t *at, size_t n, struct workload_header *h)
{
    return tlv_read(at, n, get_header_field, h);
}

// Returns the member that holds a single-number field, or NULL.
static uint64_t *summary_number(struct workload_summary *s, unsigned tag)
{
    switch (tag) {
    case FORMAT_F_EVENTS:
        return &s->events;
    case FORMAT_F_THREADS:
        return &s->threads;
    case FORMAT_F_SLOTS:
        return &s->slots;
    case FORMAT_F_FIRST_STAMP:
        return &s->first_stamp;
    case FORMAT_F_LAST_STAMP:
        return &s->last_stamp;
    case FORMAT_F_REQUESTED_BYTES:
        return &s->requested_bytes;
    case FORMAT_F_PEAK_LIVE_BYTES:
        return &s->peak_live_bytes;
    case FORMAT_F_LIVE_AT_END_BYTES:
        return &s->live_at_end_bytes;
    case FORMAT_F_LIVE_AT_END_BLOCKS:
        return &s->live_at_end_blocks;
    case FORMAT_F_CROSS_THREAD_FREES:
        return &s->remote_frees;
    case FORMAT_F_UNMATCHED_FREES:
        return &s->unmatched_frees;
    case FORMAT_F_ORDER_REPAIRED:
        return &s->order_repaired;
    case FORMAT_F_ORDER_AMBIGUOUS:
        return &s->order_ambiguous;
    case FORMAT_F_EDGES:
        return &s->dependencies;
    case FORMAT_F_EDGES_NEEDED:
        return &s->dependencies_needed;
    case FORMAT_F_LOST_RECORDS:
        return &s->lost_records;
    case FORMAT_F_SAMPLES_AT:
        return &s->samples_at;
    case FORMAT_F_USABLE_BYTES:
        return &s->usable_bytes;
    case FORMAT_F_USABLE_REQUESTED_BYTES:
        return &s->usable_requested_bytes;
    case FORMAT_F_RECORDED_FROM:
        return &s->recorded_from;
    case FORMAT_F_RECORDED_TO:
        return &s->recorded_to;
    case FORMAT_F_SITES_AT:
        return &s->sites_at;
    case FORMAT_F_RESIDENCY_AT:
        return &s->residency_at;
    case FORMAT_F_RESIDENCY_STEPS_AT:
        return &s->residency_steps_at;
    case FORMAT_F_CPU_NS:
        return &s->cpu_ns;
    case FORMAT_F_RECORDING_NS:
        return &s->recording_ns;
    case FORMAT_F_PREEXISTING_BLOCKS:
        return &s->preexisting_blocks;
    case FORMAT_F_PREEXISTING_BYTES:
        return &s->preexisting_bytes;
    case FORMAT_F_CALLS_MIN_NS:
        return &s->calls_min_ns;
    case FORMAT_F_CALLS_MAX_NS:
        return &s->calls_max_ns;
    case FORMAT_F_RECORDING_RSS_BYTES:
        return &s->recording_rss_bytes;
    case FORMAT_F_CXX_BYTES:
        return &s->cxx_bytes;
    case FORMAT_F_PEAK_RSS_BYTES:
        return &s->peak_rss_bytes;
    case FORMAT_F_EARLY_EVENTS:
        return &s->early_events;
    case FORMAT_F_EARLY_MAX_NS:
        return &s->early_max_ns;
    case FORMAT_F_EARLY_USUAL_NS:
        return &s->early_usual_ns;
    }
    return NULL;
}

static int put_by_kind(struct buf *b, const struct workload_summary *s)
{
    uint8_t pairs[HT_KIND_LIMIT * 2 * VARINT_MAX_BYTES];
    size_t n = 0;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (!s->by_kind[kind])
            continue;
        n += varint_put(pairs + n, kind);
        n += varint_put(pairs + n, s->by_kind[kind]);
    }
    return tlv_put_bytes(b, FORMAT_F_BY_KIND, pairs, n);
}

int format_put_summary(struct buf *b, const struct workload_summary *s)
{
    struct workload_summary copy = *s;
    int rc = put_by_kind(b, s);
    for (unsigned tag = FORMAT_F_EVENTS; rc == 0 && tag <= FORMAT_F_LAST_NUMBER; tag++) {
        const uint64_t *v = summary_number(&copy, tag);
        if (v)
            rc = tlv_put_u64(b, tag, *v);
    }
    return rc;
}

static int get_by_kind(struct workload_summary *s, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    while (at < end) {
        uint64_t kind, count;
        size_t n = varint_get(at, end, &kind), m = n ? varint_get(at + n, end, &count) : 0;
        if (!m || kind >= HT_KIND_LIMIT)
            return -EBADMSG;
        s->by_kind[kind] = count;
        at += n + m;
    }
    return 0;
}

static int get_summary_field(void *to, const struct tlv *f)
{
    uint64_t *v = summary_number(to, f->tag);
    if (v)
        *v = f->number;
    return !v && f->tag == FORMAT_F_BY_KIND ? get_by_kind(to, f) : 0;
}

int format_get_summary(const uint8_t *at, size_t n, struct workload_summary *s)
{
    return tlv_read(at, n, get_summary_field, s);
}

unsigned format_unknown_kind(const struct workload_summary *s)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (s->by_kind[kind] && event_is_unknown(kind))
            return kind;
    }
    return 0;
}

int format_put_samples(struct buf *b, const struct workload_sample *s, size_t n)
{
    struct workload_sample last = {0};
    size_t room;
    if (size_mul(n + 1, 3 * VARINT_MAX_BYTES, &room) < 0 || buf_reserve(b, room) < 0)
        return -ENOMEM;
    b->size += varint_put(b->data + b->size, n);
    for (size_t i = 0; i < n; i++) {
        b->size += varint_put(b->data + b->size, zigzag_put((int64_t)(s[i].stamp - last.stamp)));
        b->size +=
            varint_put(b->data + b->size, zigzag_put((int64_t)(s[i].rss_bytes - last.rss_bytes)));
        b->size +=
            varint_put(b->data + b->size, zigzag_put((int64_t)(s[i].anon_bytes - last.anon_bytes)));
        last = s[i];
    }
    return 0;
}

int format_get_samples(const uint8_t *at, size_t n, struct workload_sample **s, size_t *count,
                       size_t *capacity)
{
    struct varint_source from = {at, at + n, false};
    uint64_t more = varint_source_number(&from);
    if (from.bad || more > (size_t)(from.end - from.at) / 3)
        return -EBADMSG;
    if (HT_GROW(s, capacity, *count + more) < 0)
        return -ENOMEM;
    struct workload_sample last = {0};
    for (uint64_t i = 0; i < more; i++) {
        last.stamp += (uint64_t)zigzag_get(varint_source_number(&from));
        last.rss_bytes += (uint64_t)zigzag_get(varint_source_number(&from));
        last.anon_bytes += (uint64_t)zigzag_get(varint_source_number(&from));
        if (from.bad)
            return -EBADMSG;
        (*s)[(*count)++] = last;
    }
    return from.at == from.end ? 0 : -EBADMSG;
}

enum { RESIDENCY_VALUES = 5 };

int format_put_residency(struct buf *b, const struct workload_residency *r, size_t n)
{
    struct workload_residency last = {0};
    size_t room;
    if (size_mul(n + 1, RESIDENCY_VALUES * VARINT_MAX_BYTES, &room) < 0 || buf_reserve(b, room) < 0)
        return -ENOMEM;
    b->size += varint_put(b->data + b->size, n);
    for (size_t i = 0; i < n; i++) {
        bool same = r[i].thread == last.thread;
        const uint64_t values[RESIDENCY_VALUES] = {r[i].thread - last.thread,
                                                   same ? r[i].op - last.op : r[i].op, r[i].used,
                                                   r[i].resident - r[i].used, r[i].front};
        for (unsigned v = 0; v < RESIDENCY_VALUES; v++)
            b->size += varint_put(b->data + b->size, values[v]);
        last = r[i];
    }
    return 0;
}

int format_get_residency(const uint8_t *at, size_t n, struct workload_residency **r, size_t *count,
                         size_t *capacity)
{
    struct varint_source from = {at, at + n, false};
    uint64_t more = varint_source_number(&from), v[RESIDENCY_VALUES], thread = 0, op = 0;
    if (*count || from.bad || more > (size_t)(from.end - from.at) / RESIDENCY_VALUES)
        return -EBADMSG;
    if (HT_GROW(r, capacity, more) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < more; i++) {
        for (unsigned k = 0; k < RESIDENCY_VALUES; k++)
            v[k] = varint_source_number(&from);
        bool same = i && !v[0], wraps = same && (!v[1] || op + v[1] < op);
        thread += v[0];
        op = same ? op + v[1] : v[1];
        if (from.bad || wraps || v[0] > UINT32_MAX || thread > UINT32_MAX || v[2] > UINT32_MAX ||
            v[3] > UINT32_MAX - v[2] || v[4] > v[2])
            return -EBADMSG;
        (*r)[(*count)++] = (struct workload_residency){.op = op,
                                                       .thread = (uint32_t)thread,
                                                       .used = (uint32_t)v[2],
                                                       .resident = (uint32_t)(v[2] + v[3]),
                                                       .front = (uint32_t)v[4]};
    }
    return from.at == from.end ? 0 : -EBADMSG;
}

enum { STEP_VALUES = 4 };

int format_put_steps(struct buf *b, const struct workload_residency_step *s, size_t n)
{
    struct workload_residency_step last = {0};
    size_t room;
    if (size_mul(n + 1, STEP_VALUES * VARINT_MAX_BYTES, &room) < 0 || buf_reserve(b, room) < 0)
        return -ENOMEM;
    b->size += varint_put(b->data + b->size, n);
    for (size_t i = 0; i < n; i++) {
        bool same = s[i].thread == last.thread;
        const uint64_t values[STEP_VALUES] = {
            s[i].thread - last.thread, same ? s[i].op - last.op : s[i].op,
            zigzag_put((int64_t)(s[i].stamp - last.stamp)), s[i].used};
        for (unsigned v = 0; v < STEP_VALUES; v++)
            b->size += varint_put(b->data + b->size, values[v]);
        last = s[i];
    }
    return 0;
}

// Returns true if `s` follows `last` in the order by thread, op and stamp.
static bool is_step_in_order(const struct workload_residency_step *last,
                             const struct workload_residency_step *s)
{
    if (s->thread != last->thread || s->op != last->op)
        return s->thread != last->thread || s->op > last->op;
    return s->stamp >= last->stamp;
}

int format_get_steps(const uint8_t *at, size_t n, struct samples_residency *l)
{
    struct varint_source from = {at, at + n, false};
    uint64_t more = varint_source_number(&from);
    struct workload_residency_step s = {0};
    if (l->n_steps || from.bad || more > (size_t)(from.end - from.at) / STEP_VALUES)
        return -EBADMSG;
    if (HT_GROW(&l->steps, &l->steps_capacity, more) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < more; i++) {
        const struct workload_residency_step last = s;
        uint64_t thread = varint_source_number(&from), op = varint_source_number(&from);
        s.stamp += (uint64_t)zigzag_get(varint_source_number(&from));
        uint64_t used = varint_source_number(&from);
        if (from.bad || thread > UINT32_MAX - s.thread || used > UINT32_MAX)
            return -EBADMSG;
        s.thread += (uint32_t)thread;
        s.op = thread ? op : s.op + op;
        s.used = (uint32_t)used;
        if (i && !is_step_in_order(&last, &s))
            return -EBADMSG;
        l->steps[l->n_steps++] = s;
    }
    return from.at == from.end ? 0 : -EBADMSG;
}

int format_put_index(struct buf *b, const struct format_index *x)
{
    uint64_t offset = 0, stamp = 0;
    size_t room;
    if (size_mul(x->n + 1, 4 * VARINT_MAX_BYTES, &room) < 0 || buf_reserve(b, room) < 0)
        return -ENOMEM;
    b->size += varint_put(b->data + b->size, x->summary_offset);
    b->size += varint_put(b->data + b->size, x->ops);
    b->size += varint_put(b->data + b->size, x->n);
    for (size_t i = 0; i < x->n; i++) {
        const struct format_index_entry *entry = &x->entries[i];
        b->size += varint_put(b->data + b->size, entry->offset - offset);
        b->size += varint_put(b->data + b->size, entry->n_ops);
        b->size += varint_put(b->data + b->size, zigzag_put((int64_t)(entry->first_stamp - stamp)));
        b->size += varint_put(b->data + b->size, entry->last_stamp - entry->first_stamp);
        offset = entry->offset;
        stamp = entry->first_stamp;
    }
    return 0;
}

static bool get_index_entry(struct varint_source *from, struct format_index *x)
{
    const struct format_index_entry *before =
        x->n ? &x->entries[x->n - 1] : &(struct format_index_entry){0};
    uint64_t offset = varint_source_number(from), ops = varint_source_number(from);
    uint64_t stamp = varint_source_number(from), range = varint_source_number(from);
    if (from->bad)
        return false;
    struct format_index_entry entry = {
        .offset = before->offset + offset,
        .first_op = before->first_op + before->n_ops,
        .n_ops = ops,
        .first_stamp = before->first_stamp + (uint64_t)zigzag_get(stamp),
    };
    entry.last_stamp = entry.first_stamp + range;
    x->entries[x->n++] = entry;
    return true;
}

int format_get_index(const uint8_t *at, size_t n, struct format_index *x)
{
    struct varint_source from = {at, at + n, false};
    x->summary_offset = varint_source_number(&from);
    x->ops = varint_source_number(&from);
    uint64_t entries = varint_source_number(&from);
    if (from.bad || entries > (size_t)(from.end - from.at) / 4)
        return -EBADMSG;
    if (HT_GROW(&x->entries, &x->capacity, entries) < 0)
        return -ENOMEM;
    while (x->n < entries) {
        if (!get_index_entry(&from, x))
            return -EBADMSG;
    }
    return from.at == from.end ? 0 : -EBADMSG;
}
