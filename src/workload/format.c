#include "workload/format.h"

#include "base/tlv.h"
#include "base/varint.h"

#include <errno.h>

#define HEADER(member)  TLV_MEMBER(struct workload_header, member)
#define SUMMARY(member) TLV_MEMBER(struct workload_summary, member)

static const struct tlv_row header_rows[] = {
    {FORMAT_F_CLOCK_HZ, TLV_NUMBER, HEADER(clock_hz)},
    {FORMAT_F_STAMP_SHIFT, TLV_NUMBER, HEADER(stamp_shift)},
    {FORMAT_F_HAS_STAMPS, TLV_FLAG, HEADER(has_stamps)},
    {FORMAT_F_START_STAMP, TLV_NUMBER, HEADER(start_stamp)},
    {FORMAT_F_PID, TLV_NUMBER, HEADER(pid)},
    {FORMAT_F_EXE, TLV_STRING, HEADER(exe)},
    {FORMAT_F_ALLOCATOR, TLV_STRING, HEADER(allocator)},
    {FORMAT_F_ALLOCATOR_BUILD_ID, TLV_STRING, HEADER(allocator_build_id)},
    {FORMAT_F_STACK_SAMPLE_BYTES, TLV_NUMBER, HEADER(stack_sample_bytes),
     HEADER(stack_sample_bytes)},
    {FORMAT_F_FORKED_FROM, TLV_NUMBER, HEADER(forked_from), HEADER(forked_from)},
    {FORMAT_F_HEAPTAPE, TLV_STRING, HEADER(heaptape)},
    {FORMAT_F_ARGV, TLV_BYTES, HEADER(argv), HEADER(argv_bytes), HEADER(argv_bytes)},
    {0},
};

// Fields of a SUMMARY frame, except BY_KIND.
static const struct tlv_row summary_rows[] = {
#define HT_X(tag, member, merge) {tag, TLV_NUMBER, SUMMARY(member)},
    FORMAT_SUMMARY_TABLE(HT_X)
#undef HT_X
        {0},
};

void workload_header_release(struct workload_header *h)
{
    tlv_release_rows(header_rows, h);
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
    static char version[] = HEAPTAPE_VERSION;
    struct workload_header written = *h;
    written.heaptape = version;
    return tlv_put_rows(b, header_rows, &written);
}

static int get_header_field(void *to, const struct tlv *f)
{
    if (f->tag == FORMAT_F_STAMP_SHIFT && f->number > 32)
        return -EBADMSG;
    return tlv_set(header_rows, to, f);
}

int format_get_header(const uint8_t *at, size_t n, struct workload_header *h)
{
    return tlv_read(at, n, get_header_field, h);
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
    int rc = put_by_kind(b, s);
    return rc ? rc : tlv_put_rows(b, summary_rows, s);
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
    return f->tag == FORMAT_F_BY_KIND ? get_by_kind(to, f) : tlv_set(summary_rows, to, f);
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
