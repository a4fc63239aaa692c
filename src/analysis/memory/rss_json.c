#include "analysis/memory/rss.h"

// Writes null if the value is unknown.
static void put_known(struct json *j, const char *key, uint64_t n, bool known)
{
    json_key(j, key);
    if (known)
        json_u64(j, n);
    else
        json_null(j);
}

static void put_parts(struct json *j, const uint64_t bytes[RSS_PARTS], bool maps)
{
    static const char *const keys[] = {"live_bytes", "rounding_bytes", "partly_free_bytes",
                                       "wholly_free_bytes", "allocator_bytes"};
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        put_known(j, keys[i], bytes[i], maps || i != RSS_WHOLLY_FREE);
}

static void put_pages(struct json *j, const struct rss_counts *c)
{
    json_put_u64(j, "used_pages", c->used_pages);
    json_put_u64(j, "sparse_pages", c->sparse_pages);
    json_put_u64(j, "free_pages", c->free_pages);
    json_put_u64(j, "allocator_pages", c->own_pages);
}

static void put_not_heap(struct json *j, const struct rss *r)
{
    static const char *const keys[TRACE_MEMORY_KINDS] = {
        [TRACE_MEMORY_HEAP] = "brk_bytes",      [TRACE_MEMORY_ANONYMOUS] = "mappings_bytes",
        [TRACE_MEMORY_STACK] = "stack_bytes",   [TRACE_MEMORY_FILE] = "files_bytes",
        [TRACE_MEMORY_SHARED] = "shared_bytes", [TRACE_MEMORY_RECORDING] = "recording_bytes",
        [TRACE_MEMORY_OTHER] = "other_bytes",
    };
    json_key(j, "not_heap");
    if (!r->maps) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_u64(j, "bytes", r->all.bytes[RSS_NOT_HEAP]);
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS; kind++)
        json_put_u64(j, keys[kind], r->not_heap[kind]);
    json_end_object(j);
}

static void put_arenas(struct json *j, const struct rss *r)
{
    static const char *const kinds[] = {"main", "thread_heap", "mapped_blocks", "mapping"};
    json_put_array(j, "arenas");
    for (size_t i = 0; r->maps && i < r->n_arenas; i++) {
        const struct rss_arena *a = &r->arenas[i];
        json_begin_object(j);
        json_put_string(j, "kind", kinds[a->kind]);
        json_key(j, "address");
        if (a->kind == RSS_ARENA_MAPPED)
            json_null(j);
        else
            json_hex(j, a->start);
        json_put_u64(j, "mapped_bytes", a->bytes);
        json_put_u64(j, "blocks", a->counts.blocks);
        json_put_u64(j, "requested_bytes", a->counts.live_bytes);
        put_parts(j, a->counts.bytes, true);
        put_pages(j, &a->counts);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_sampled(struct json *j, const struct trace_pages *p, bool maps)
{
    json_put_object(j, "sampled");
    json_put_u64(j, "rss_bytes", p->rss_bytes);
    put_known(j, "pss_bytes", p->pss_bytes, maps);
    put_known(j, "swap_bytes", p->swap_bytes, maps);
    put_known(j, "huge_bytes", p->huge_bytes, maps);
    put_known(j, "minor_faults", p->minor_faults, maps);
    put_known(j, "major_faults", p->major_faults, maps);
    put_known(j, "cpu_ns", p->cpu_ns, maps);
    put_known(j, "cgroup_bytes", p->cgroup_bytes, p->cgroup_bytes != TRACE_PAGES_UNKNOWN);
    put_known(j, "cgroup_limit_bytes", p->cgroup_limit_bytes,
              p->cgroup_limit_bytes != TRACE_PAGES_UNKNOWN);
    json_end_object(j);
}

void rss_json(struct json *j, const struct rss *r)
{
    json_begin_document(j);
    json_put_u64(j, "pid", r->pid);
    json_put_u64(j, "processes", r->n_processes);
    json_put_u64(j, "time_ns", r->time_ns);
    json_put_u64(j, "page_maps", r->maps);
    json_put_bool(j, "is_after_point", !r->is_last);
    json_put_u64(j, "page_bytes", r->pages.page_bytes);
    json_put_bool(j, "rounding_known", r->is_glibc || r->has_usable);
    json_put_u64(j, "blocks", r->all.blocks);
    json_put_u64(j, "requested_bytes", r->all.live_bytes);
    put_parts(j, r->all.bytes, r->maps);
    put_not_heap(j, r);
    put_known(j, "unknown_bytes", r->all.bytes[RSS_NOT_HEAP], !r->maps);
    json_put_u64(j, "sum_bytes", rss_sum(r));
    put_pages(j, &r->all);
    put_sampled(j, &r->pages, r->maps);
    put_arenas(j, r);
    json_key(j, "pinned");
    fragmentation_json(j, &r->pinned, r->symbols);
    json_end_object(j);
}
