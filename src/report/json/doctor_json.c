#include "report/doctor.h"

static void put_heap(struct json *j, const struct look_heap *h)
{
    json_put_object(j, "malloc");
    json_put_string(j, "allocator", software_allocators[h->allocator].name);
    if (h->version[0])
        json_put_string(j, "version", h->version);
    json_put_bool(j, "blocks_read", h->is_read);
    if (h->has_statistics) {
        json_put_bool(j, "statistics_read", true);
        json_put_u64(j, "live_bytes", h->live_bytes);
        json_put_u64(j, "free_bytes", h->free_bytes);
    }
    if (h->why_not[0])
        json_put_string(j, "missing_reason", h->why_not);
    if (h->is_read) {
        json_put_u64(j, "live_bytes", h->live_bytes);
        json_put_u64(j, "live_blocks", h->blocks);
        json_put_u64(j, "largest_block_bytes", h->largest_bytes);
        json_put_u64(j, "free_bytes", h->free_bytes);
        json_put_u64(j, "arenas", h->arenas);
        json_put_u64(j, "arenas_with_free_memory", h->free_arenas);
        json_put_u64(j, "arenas_bytes", h->arena_bytes);
        json_put_u64(j, "other_arenas_free_bytes", h->other_free_bytes);
        json_put_u64(j, "main_top_bytes", h->main_top_bytes);
        json_put_u64(j, "mapped_blocks", h->mapped);
        json_put_u64(j, "mapped_bytes", h->mapped_bytes);
        json_put_u64(j, "mapped_resident_bytes", h->mapped_resident_bytes);
        json_put_u64(j, "pinning_blocks", h->pinning_blocks);
        json_put_u64(j, "pinning_bytes", h->pinning_bytes);
        json_put_u64(j, "read_bytes", h->read_bytes);
        json_put_u64(j, "lost_bytes", h->lost_bytes);
    }
    if (h->is_corrupt && h->bad_at) {
        json_key(j, "corrupt_chunk");
        json_hex(j, h->bad_at);
    }
    json_end_object(j);
}

static void put_names(struct json *j, const struct look *l)
{
    json_put_array(j, "mappings");
    for (size_t i = 0; i < l->n_names; i++) {
        const struct look_name *n = &l->names[i];
        json_begin_object(j);
        json_put_string(j, "name", n->name);
        json_put_string(j, "owner", look_owner_name(n->owner));
        json_put_u64(j, "rss_bytes", n->rss_bytes);
        json_put_u64(j, "bytes", n->bytes);
        json_put_u64(j, "count", n->mappings);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_surroundings(struct json *j, const struct look *l)
{
    json_put_object(j, "children");
    json_put_u64(j, "count", l->children);
    json_put_u64(j, "rss_bytes", l->children_bytes);
    if (l->largest_child.pid) {
        json_put_object(j, "largest");
        json_put_u64(j, "pid", (uint64_t)l->largest_child.pid);
        json_put_string(j, "command", l->largest_child.command);
        json_put_u64(j, "rss_bytes", l->largest_child.rss_bytes);
        json_end_object(j);
    }
    json_end_object(j);
    json_put_object(j, "cgroup");
    if (l->group.used_bytes != UINT64_MAX)
        json_put_u64(j, "used_bytes", l->group.used_bytes);
    if (l->group.limit_bytes != UINT64_MAX)
        json_put_u64(j, "limit_bytes", l->group.limit_bytes);
    if (l->group.file_bytes != UINT64_MAX)
        json_put_u64(j, "file_bytes", l->group.file_bytes);
    json_end_object(j);
}

static void put_growth(struct json *j, const struct doctor *d)
{
    json_put_object(j, "growth");
    json_put_u64(j, "duration_ns", d->last.time_ns - d->first.time_ns);
    json_put_u64(j, "samples", d->looks);
    json_put_string(j, "rss", growth_shape_name(d->facts.rss.shape));
    json_put_u64(j, "first_rss_bytes", d->first.rss_bytes);
    if (d->last.heap.is_read || d->last.heap.has_statistics)
        json_put_string(j, "live", growth_shape_name(d->facts.live.shape));
    json_end_object(j);
}

static void put_notes(struct json *j, const struct doctor *d)
{
    json_put_array(j, "notes");
    for (size_t i = 0; i < d->n_notes; i++)
        json_string(j, d->notes[i]);
    json_end_array(j);
    if (d->next[0])
        json_put_string(j, "next", d->next);
}

static void put_try(struct json *j, const struct doctor_try *t)
{
    json_put_object(j, "try");
    json_put_string(j, "call", t->call);
    json_put_u64(j, "rss_before_bytes", t->before_bytes);
    json_put_u64(j, "rss_after_bytes", t->after_bytes);
    json_put_u64(j, "call_ns", t->call_ns);
    json_put_u64(j, "paused_ns", t->paused_ns);
    json_end_object(j);
}

static void put_file(struct json *j, const struct doctor *d)
{
    json_begin_document(j);
    if (d->file)
        json_put_string(j, "file", d->file);
    verdict_json(j, &d->verdict, &d->facts);
    put_notes(j, d);
    json_end_object(j);
}

void doctor_json(struct json *j, const struct doctor *d)
{
    const struct look *l = &d->last;
    if (d->is_file) {
        put_file(j, d);
        return;
    }
    json_begin_document(j);
    json_put_u64(j, "pid", (uint64_t)l->pid);
    json_put_string(j, "command", l->command);
    json_put_u64(j, "threads", l->threads);
    if (d->facts.runtime)
        json_put_string(j, "runtime", d->facts.runtime->name);
    json_put_u64(j, "rss_bytes", l->rss_bytes);
    json_put_u64(j, "peak_rss_bytes", l->peak_rss_bytes);
    json_put_u64(j, "swap_bytes", l->swap_bytes);
    json_put_u64(j, "huge_bytes", l->huge_bytes);
    verdict_json(j, &d->verdict, &d->facts);
    json_put_object(j, "resident");
    for (unsigned i = 0; i < LOOK_OWNERS; i++) {
        char key[40];
        snprintf(key, sizeof key, "%s_bytes", look_owner_name(i));
        json_put_u64(j, key, l->owners[i]);
    }
    json_end_object(j);
    put_heap(j, &l->heap);
    json_put_u64(j, "stacks", l->stacks);
    json_put_u64(j, "stacks_virtual_bytes", l->stack_bytes);
    put_names(j, l);
    put_surroundings(j, l);
    put_growth(j, d);
    put_notes(j, d);
    if (d->tried.call)
        put_try(j, &d->tried);
    json_end_object(j);
}
