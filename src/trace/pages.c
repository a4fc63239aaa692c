#include "trace/pages.h"

#include "base/tlv.h"
#include "base/varint.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PAYLOAD = 8 << 20, // half of a frame's limit
    AFTER_FILE = 1,        // flag of a mapping
};
#define MAX_PAGE_BYTES (1u << 20)
#define ADDRESS_LIMIT  (1ull << 57) // user address space with five-level page tables

void trace_pages_release(struct trace_pages *p)
{
    free(p->mappings);
    free(p->runs);
    *p = (struct trace_pages){0};
}

int trace_pages_add(struct trace_pages *p, const struct trace_mapping *m)
{
    struct trace_mapping added = *m;
    added.first_run = p->n_runs;
    added.n_runs = 0;
    return HT_APPEND(&p->mappings, &p->n_mappings, &p->mappings_capacity, added);
}

int trace_pages_add_run(struct trace_pages *p, uint64_t first, uint64_t n)
{
    struct trace_mapping *m = &p->mappings[p->n_mappings - 1];
    struct trace_page_run *last = m->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    if (last && last->first + last->n == first) {
        last->n += n;
        return 0;
    }
    m->n_runs++;
    return HT_APPEND(&p->runs, &p->n_runs, &p->runs_capacity, (struct trace_page_run){first, n});
}

// A field whose value is a single number.
struct pages_number {
    unsigned tag;
    size_t offset;
};

#define AT(member) offsetof(struct trace_pages, member)
static const struct pages_number numbers[] = {
    {TRACE_F_PAGES_STAMP, AT(stamp)},         {TRACE_F_PAGES_END_STAMP, AT(end_stamp)},
    {TRACE_F_PAGE_BYTES, AT(page_bytes)},     {TRACE_F_RSS_BYTES, AT(rss_bytes)},
    {TRACE_F_PSS_BYTES, AT(pss_bytes)},       {TRACE_F_SWAP_BYTES, AT(swap_bytes)},
    {TRACE_F_HUGE_BYTES, AT(huge_bytes)},     {TRACE_F_MINOR_FAULTS, AT(minor_faults)},
    {TRACE_F_MAJOR_FAULTS, AT(major_faults)}, {TRACE_F_PROCESS_CPU_NS, AT(cpu_ns)},
    {TRACE_F_CGROUP_BYTES, AT(cgroup_bytes)}, {TRACE_F_CGROUP_LIMIT_BYTES, AT(cgroup_limit_bytes)},
    {TRACE_F_LIBRARIES, AT(libraries)},
};
#undef AT

static uint64_t *member_of(struct trace_pages *p, const struct pages_number *n)
{
    return (uint64_t *)(void *)((char *)p + n->offset);
}

static int put_mapping(struct buf *b, struct buf *field, const struct trace_pages *p,
                       const struct trace_mapping *m, uint64_t *end)
{
    uint64_t page = p->page_bytes, first = m->start / page, pages = m->bytes / page, at = first;
    const uint64_t head[] = {m->kind,
                             m->after_file ? AFTER_FILE : 0,
                             first - *end,
                             pages,
                             m->rss_bytes / page,
                             m->swap_bytes / page,
                             m->huge_bytes / page};
    field->size = 0;
    int rc = 0;
    for (size_t i = 0; i < sizeof head / sizeof *head && rc == 0; i++)
        rc = buf_put_varint(field, head[i]);
    for (size_t i = m->first_run; i < m->first_run + m->n_runs && rc == 0; i++) {
        rc = buf_put_varint(field, p->runs[i].first - at) ?: buf_put_varint(field, p->runs[i].n);
        at = p->runs[i].first + p->runs[i].n;
    }
    *end = first + pages;
    return rc < 0 ? rc : tlv_put_bytes(b, TRACE_F_MAPPING, field->data, field->size);
}

static int put_name(struct buf *b, struct buf *field, const struct trace_pages_name *name)
{
    field->size = 0;
    int rc = buf_put_varint(field, name->kind) ?: buf_put_varint(field, name->rss_bytes);
    if (rc == 0)
        rc = buf_put(field, name->name, strlen(name->name));
    return rc < 0 ? rc : tlv_put_bytes(b, TRACE_F_NAMED, field->data, field->size);
}

int trace_pages_put(struct buf *b, const struct trace_pages *p)
{
    struct trace_pages copy = *p;
    struct buf field = {0};
    uint64_t end = 0;
    size_t from = b->size;
    int rc = tlv_put_u64(b, TRACE_F_PROCESS, p->process);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == 0; i++) {
        uint64_t v = *member_of(&copy, &numbers[i]);
        rc = v == TRACE_PAGES_UNKNOWN ? 0 : tlv_put_u64(b, numbers[i].tag, v);
    }
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS && rc == 0; kind++) {
        field.size = 0;
        rc = buf_put_varint(&field, kind) ?: buf_put_varint(&field, p->rss_of[kind]);
        if (rc == 0 && p->rss_of[kind])
            rc = tlv_put_bytes(b, TRACE_F_UNLISTED, field.data, field.size);
    }
    for (size_t i = 0; i < p->n_names && rc == 0; i++)
        rc = put_name(b, &field, &p->names[i]);
    for (size_t i = 0; i < p->n_mappings && rc == 0; i++) {
        rc = put_mapping(b, &field, p, &p->mappings[i], &end);
        if (rc == 0 && b->size - from > MAX_PAYLOAD)
            rc = -EMSGSIZE;
    }
    buf_release(&field);
    return rc;
}

// Reads the next varint. Returns false if it is invalid or above `max`.
static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t max, uint64_t *v)
{
    return varint_next(at, end, v) && *v <= max;
}

static int get_runs(struct trace_pages *p, const uint8_t *at, const uint8_t *end, uint64_t pages)
{
    uint64_t page = p->mappings[p->n_mappings - 1].start / p->page_bytes, gap, n;
    for (; at < end; page += n, pages -= n) {
        if (!get_number(&at, end, pages, &gap) || !get_number(&at, end, pages - gap, &n) || !n)
            return -EBADMSG;
        page += gap;
        pages -= gap;
        if (trace_pages_add_run(p, page, n) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int get_mapping(struct trace_pages *p, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    const struct trace_mapping *before = p->n_mappings ? &p->mappings[p->n_mappings - 1] : NULL;
    uint64_t page = p->page_bytes, from = before ? before->start + before->bytes : 0, v[7] = {0};
    uint64_t limit = page ? (ADDRESS_LIMIT - from) / page : 0;
    if (!page)
        return -EBADMSG;
    for (unsigned i = 0; i < 7; i++) {
        uint64_t max = i < 2 ? UINT64_MAX : i == 2 ? limit : i == 3 ? limit - v[2] : v[3];
        if (!get_number(&at, end, max, &v[i]))
            return -EBADMSG;
    }
    const struct trace_mapping m = {
        .start = from + v[2] * page,
        .bytes = v[3] * page,
        .kind = v[0] < TRACE_MEMORY_KINDS ? (enum trace_memory)v[0] : TRACE_MEMORY_OTHER,
        .after_file = v[1] & AFTER_FILE,
        .rss_bytes = v[4] * page,
        .swap_bytes = v[5] * page,
        .huge_bytes = v[6] * page,
    };
    int rc = trace_pages_add(p, &m);
    return rc < 0 ? rc : get_runs(p, at, end, v[3]);
}

static int get_unlisted(struct trace_pages *p, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    uint64_t kind, bytes;
    if (!get_number(&at, end, UINT64_MAX, &kind))
        return -EBADMSG;
    uint64_t *to = &p->rss_of[kind < TRACE_MEMORY_KINDS ? kind : TRACE_MEMORY_OTHER];
    if (!get_number(&at, end, ADDRESS_LIMIT - *to, &bytes))
        return -EBADMSG;
    *to += bytes;
    return 0;
}

// Reads a name. Drops names beyond TRACE_PAGES_NAMES, and truncates long names.
static int get_name(struct trace_pages *p, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    uint64_t kind, bytes;
    if (!get_number(&at, end, UINT64_MAX, &kind) || !get_number(&at, end, ADDRESS_LIMIT, &bytes))
        return -EBADMSG;
    if (p->n_names == TRACE_PAGES_NAMES)
        return 0;
    struct trace_pages_name *to = &p->names[p->n_names++];
    size_t n = (size_t)(end - at), max = sizeof to->name - 1;
    to->kind = kind < TRACE_MEMORY_KINDS ? (enum trace_memory)kind : TRACE_MEMORY_OTHER;
    to->rss_bytes = bytes;
    memcpy(to->name, at, n < max ? n : max);
    return 0;
}

static int set_field(void *to, const struct tlv *f)
{
    struct trace_pages *p = to;
    if (f->tag == TRACE_F_PROCESS)
        p->process = f->number < UINT32_MAX ? (uint32_t)f->number : UINT32_MAX;
    if (f->tag == TRACE_F_MAPPING)
        return get_mapping(p, f);
    if (f->tag == TRACE_F_UNLISTED)
        return get_unlisted(p, f);
    if (f->tag == TRACE_F_NAMED)
        return get_name(p, f);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (f->tag == numbers[i].tag)
            *member_of(p, &numbers[i]) = f->number;
    }
    bool good = !(p->page_bytes & (p->page_bytes - 1)) && p->page_bytes <= MAX_PAGE_BYTES;
    return good && (f->tag != TRACE_F_PAGE_BYTES || !p->n_mappings) ? 0 : -EBADMSG;
}

int trace_pages_get(const uint8_t *at, size_t n, struct trace_pages *p)
{
    p->process = UINT32_MAX;
    p->cgroup_bytes = p->cgroup_limit_bytes = TRACE_PAGES_UNKNOWN;
    int rc = tlv_read(at, n, set_field, p);
    return rc == 0 && !p->page_bytes ? -EBADMSG : rc;
}

static int add_recording(void *to, const struct tlv *f)
{
    struct trace_pages p = {0};
    if (f->tag == TRACE_F_UNLISTED && get_unlisted(&p, f) == 0)
        *(uint64_t *)to += p.rss_of[TRACE_MEMORY_RECORDING];
    return 0;
}

uint64_t trace_pages_recording_bytes(const uint8_t *at, size_t n)
{
    uint64_t bytes = 0;
    return tlv_read(at, n, add_recording, &bytes) == 0 ? bytes : 0;
}
