#include "record/aggregate/format.h"

#include "base/bytes.h"
#include "base/tlv.h"
#include "base/varint.h"
#include "workload/format.h"

#include <errno.h>

enum {
    HEAD_BYTES = 5,          // type and length, which precede a payload
    TOTALS_BYTES = 4 << 20,  // a frame ends with the row that exceeds this size
    ROW_NUMBERS = 7 + 3 * 5, // maximum number of varints in a row, not counting the levels
};

int aggregate_put(struct buf *b, enum aggregate_frame type, const void *payload, size_t n)
{
    uint8_t head[HEAD_BYTES] = {(uint8_t)type};
    put_u32(head + 1, (uint32_t)n);
    int rc = buf_put(b, head, sizeof head);
    return rc < 0 || n == 0 ? rc : buf_put(b, payload, n);
}

static int put_buf(struct buf *b, enum aggregate_frame type, struct buf *payload)
{
    int rc = aggregate_put(b, type, payload->data, payload->size);
    payload->size = 0;
    return rc;
}

static int put_periods(struct buf *b, struct buf *payload, const struct aggregate_counts *c)
{
    const struct by_site *s = &c->by_site;
    if (buf_reserve(payload, (4 + BY_SITE_BINS) * VARINT_MAX_BYTES) < 0)
        return -ENOMEM;
    buf_put_varint(payload, s->bin_events);
    buf_put_varint(payload, s->events);
    buf_put_varint(payload, s->peak_bytes);
    buf_put_varint(payload, s->n_bins);
    for (size_t i = 0; i < s->n_bins; i++)
        buf_put_varint(payload, c->levels[i]);
    return put_buf(b, AGGREGATE_PERIODS, payload);
}

// Stores a negative sum as 0, because only rounding errors can make a sum negative.
static void put_double(struct buf *b, double v)
{
    uint64_t bits;
    v = v > 0 ? v : 0;
    memcpy(&bits, &v, sizeof bits);
    put_u64(b->data + b->size, bits);
    b->size += sizeof bits;
}

static void put_estimate(struct buf *b, const struct estimate *e)
{
    put_double(b, e->bytes);
    put_double(b, e->blocks);
    put_double(b, e->variance);
    buf_put_varint(b, e->sampled_bytes);
    buf_put_varint(b, e->sampled_blocks);
}

static void put_row(struct buf *b, const struct by_site *s, size_t i)
{
    const struct by_site_totals *t = &s->sites[i];
    // If the site has not changed since the peak, its counts at the peak are the current counts.
    bool same = t->seen_peak != s->peaks;
    buf_put_varint(b, t->calls);
    buf_put_varint(b, t->bytes);
    buf_put_varint(b, same ? t->live_blocks : t->peak_blocks);
    buf_put_varint(b, same ? t->live_bytes : t->peak_bytes);
    buf_put_varint(b, t->live_blocks);
    buf_put_varint(b, t->live_bytes);
    buf_put_varint(b, t->freed_blocks);
    if (s->sample_bytes) {
        put_estimate(b, &t->allocated);
        put_estimate(b, same ? &t->live : &t->peak);
        put_estimate(b, &t->live);
    }
    uint64_t last = 0;
    for (size_t k = 0; k < s->n_bins; k++) {
        uint64_t level = i < s->n_levels ? s->levels[i][k] : 0;
        buf_put_varint(b, zigzag_put((int64_t)(level - last)));
        last = level;
    }
}

static int put_totals(struct buf *b, struct buf *payload, const struct by_site *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_sites; i++) {
        if (buf_reserve(payload, (ROW_NUMBERS + BY_SITE_BINS) * VARINT_MAX_BYTES) < 0)
            return -ENOMEM;
        put_row(payload, s, i);
        if (payload->size > TOTALS_BYTES || i + 1 == s->n_sites)
            rc = put_buf(b, AGGREGATE_TOTALS, payload);
    }
    return rc;
}

static int put_sites(struct buf *b, struct buf *payload, const struct workload_sites *s)
{
    size_t module = 0, site = 0;
    int rc = 0;
    while (rc == 0 && (module < s->n_modules || site < s->n_sites))
        rc = workload_sites_put(payload, s, &module, &site) ?: put_buf(b, AGGREGATE_SITES, payload);
    return rc;
}

static int put_names(struct buf *b, struct buf *payload, const struct workload_sites *s)
{
    struct names used = {0};
    int rc = workload_sites_used_names(s, &used);
    for (size_t entry = 0; rc == 0 && entry < used.n_entries;)
        rc = names_put(payload, &used, 0, &entry) ?: put_buf(b, AGGREGATE_NAMES, payload);
    names_release(&used);
    return rc;
}

int aggregate_put_process(struct buf *b, const struct aggregate_process *p)
{
    struct buf payload = {0};
    int rc = aggregate_put(b, AGGREGATE_PROCESS, p->facts->data, p->facts->size);
    rc = rc ?: format_put_summary(&payload, p->summary) ?: put_buf(b, AGGREGATE_SUMMARY, &payload);
    rc = rc ?: put_periods(b, &payload, p->counts) ?: put_totals(b, &payload, &p->counts->by_site);
    rc = rc ?: put_sites(b, &payload, p->sites) ?: put_names(b, &payload, p->sites);
    buf_release(&payload);
    return rc;
}

int aggregate_put_end(struct buf *b, const struct aggregate_end *end)
{
    struct buf payload = {0};
    int rc = tlv_put_u64(&payload, AGGREGATE_F_STAMP, end->stamp);
    rc = rc ?: tlv_put_u64(&payload, AGGREGATE_F_STATE, end->state);
    rc = rc ?: put_buf(b, AGGREGATE_END, &payload);
    buf_release(&payload);
    return rc;
}

int aggregate_write_frames(struct frame_writer *w, const struct buf *b, struct err *e)
{
    int rc = 0;
    for (size_t at = 0, n; rc == 0 && at < b->size; at += HEAD_BYTES + n) {
        n = get_u32(b->data + at + 1);
        rc = frame_write(w, b->data[at], b->data + at + HEAD_BYTES, n, e);
    }
    return rc;
}

int aggregate_get_periods(const uint8_t *at, size_t n, struct by_site *to,
                          uint64_t levels[BY_SITE_BINS])
{
    struct varint_source from = {at, at + n, false};
    to->by_time = true;
    to->bin_events = varint_source_number(&from);
    to->events = varint_source_number(&from);
    to->peak_bytes = varint_source_number(&from);
    uint64_t bins = varint_source_number(&from);
    if (from.bad || bins >= BY_SITE_BINS || !to->bin_events || to->events >> 62)
        return -EBADMSG;
    to->n_bins = (size_t)bins;
    for (size_t i = 0; i < to->n_bins; i++)
        levels[i] = varint_source_number(&from);
    return from.bad || from.at != from.end ? -EBADMSG : 0;
}

static double get_double(struct varint_source *from, double limit)
{
    double v = 0;
    from->bad |= from->end - from->at < (ptrdiff_t)sizeof v;
    if (!from->bad) {
        memcpy(&v, from->at, sizeof v);
        from->at += sizeof v;
    }
    from->bad |= !(v >= 0 && v < limit);
    return from->bad ? 0 : v;
}

static struct estimate get_estimate(struct varint_source *from)
{
    const double limit = 0x1p63;
    struct estimate e = {.bytes = get_double(from, limit)};
    e.blocks = get_double(from, limit);
    e.variance = get_double(from, limit * limit);
    e.sampled_bytes = varint_source_number(from);
    e.sampled_blocks = varint_source_number(from);
    return e;
}

static int get_row(struct varint_source *from, struct by_site *to)
{
    size_t at = to->n_sites;
    if (at > BY_SITE_MAX)
        return -EBADMSG;
    if (HT_EXTEND(&to->sites, &to->n_sites, &to->sites_capacity, at + 1) < 0 ||
        HT_EXTEND(&to->levels, &to->n_levels, &to->levels_capacity, at + 1) < 0)
        return -ENOMEM;
    struct by_site_totals *t = &to->sites[at];
    t->calls = varint_source_number(from);
    t->bytes = varint_source_number(from);
    t->peak_blocks = varint_source_number(from);
    t->peak_bytes = varint_source_number(from);
    t->live_blocks = varint_source_number(from);
    t->live_bytes = varint_source_number(from);
    t->freed_blocks = varint_source_number(from);
    if (to->sample_bytes) {
        t->allocated = get_estimate(from);
        t->peak = get_estimate(from);
        t->live = get_estimate(from);
    }
    uint64_t level = 0;
    for (size_t k = 0; k < to->n_bins; k++)
        to->levels[at][k] = level += (uint64_t)zigzag_get(varint_source_number(from));
    to->live_bytes += t->live_bytes;
    return from->bad ? -EBADMSG : 0;
}

int aggregate_get_totals(const uint8_t *at, size_t n, struct by_site *to)
{
    struct varint_source from = {at, at + n, false};
    int rc = 0;
    while (rc == 0 && from.at < from.end)
        rc = get_row(&from, to);
    return rc;
}

int aggregate_get_others(const uint8_t *at, size_t n, uint64_t *processes,
                         struct workload_summary *sum)
{
    struct varint_source from = {at, at + n, false};
    *processes = varint_source_number(&from);
    return from.bad ? -EBADMSG : format_get_summary(from.at, (size_t)(from.end - from.at), sum);
}

static int set_end(void *to, const struct tlv *f)
{
    struct aggregate_end *end = to;
    if (f->tag == AGGREGATE_F_STAMP)
        end->stamp = f->number;
    else if (f->tag == AGGREGATE_F_STATE && f->number <= AGGREGATE_CUT_OFF)
        end->state = (enum aggregate_state)f->number;
    else if (f->tag == AGGREGATE_F_STATE)
        return -EBADMSG;
    return 0;
}

int aggregate_get_end(const uint8_t *at, size_t n, struct aggregate_end *end)
{
    return tlv_read(at, n, set_end, end);
}
