#include "convert/order/order.h"

#include "base/pages.h"
#include "convert/order/order_private.h"

#include <stdlib.h>

struct order *order_new(const struct order_options *options, const struct order_sink *sink)
{
    struct order *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->options = *options;
    o->sink = *sink;
    o->merge.keeps = options->keep_words;
    o->merge.only_allocator = options->only_allocator;
    o->next_deadline = UINT64_MAX;
    o->steps = ORDER_FIRST_STEPS;
    o->run.limit = 8;
    pool_shared_init(&o->shared);
    o->calls = sink->calls ? calloc(ORDER_BATCH, sizeof *o->calls) : NULL;
    if ((sink->calls && !o->calls) || table_grow(&o->table, NULL) < 0) {
        free(o->calls);
        free(o);
        return NULL;
    }
    return o;
}

void order_free(struct order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_threads; i++) {
        pool_release(&o->threads[i]->pool);
        map_release(&o->threads[i]->waited);
        free(o->threads[i]->recent);
        free(o->threads[i]);
    }
    free(o->threads);
    free(o->numbered);
    free(o->tids);
    free(o->calls);
    pages_array_free(o->slots, o->slots_capacity, sizeof *o->slots);
    free(o->held);
    free(o->coming);
    free(o->due);
    site_table_release(&o->sites);
    names_release(&o->names);
    samples_residency_release(&o->residency);
    map_release(&o->failed_resizes);
    order_pools_release(&o->pools);
    merge_release(&o->merge);
    map_release(&o->by_number);
    table_release(&o->table);
    pool_shared_release(&o->shared);
    free(o);
}

struct order_counts order_counts(const struct order *o)
{
    struct order_counts c = o->counts;
    c.slots = o->n_slots;
    c.threads = o->n_numbered;
    c.residency = &o->residency;
    c.tids = o->tids;
    return c;
}

void order_count(struct order_faults *f, uint64_t n, const struct order_thread *t, uint64_t stamp,
                 uint64_t address)
{
    if (n && !f->n)
        *f = (struct order_faults){.address = address, .stamp = stamp, .tid = t->tid};
    f->n += n;
}

int order_names(struct order *o, const uint8_t *at, size_t n)
{
    uint32_t process;
    return names_get(at, n, &o->names, &process);
}

const struct workload_sites *order_sites(const struct order *o)
{
    return &o->sites.all;
}

int order_sites_so_far(const struct order *o, struct workload_sites *sites)
{
    int rc = workload_sites_copy_all(sites, &o->sites.all);
    if (rc == 0)
        rc = site_table_resolve_whole(&o->sites, sites);
    return rc < 0 ? rc : names_copy(&sites->names, &o->names, o->inherited_modules);
}

void order_summarise(const struct order_counts *counts, struct workload_summary *s)
{
    s->order_repaired = counts->repaired + counts->late;
    s->order_ambiguous = counts->ambiguous.n;
    s->unmatched_frees = counts->unmatched.n;
    s->dependencies = counts->dependencies;
    s->dependencies_needed = counts->dependencies_needed;
    s->lost_records = counts->lost.n;
    s->usable_bytes = counts->usable_bytes;
    s->usable_requested_bytes = counts->usable_requested_bytes;
}
