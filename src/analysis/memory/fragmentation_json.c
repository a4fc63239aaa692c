#include "analysis/memory/fragmentation.h"

#include "analysis/symbols/stack.h"
#include "base/json.h"

static void put_group_key(struct json *j, enum fragmentation_by grouping, uint64_t key)
{
    static const char *const from[] = {
        [FRAGMENTATION_BY_SIZE] = "size_from", [FRAGMENTATION_BY_AGE] = "age_from"};
    static const char *const to[] = {
        [FRAGMENTATION_BY_SIZE] = "size_to", [FRAGMENTATION_BY_AGE] = "age_to"};
    uint64_t range[2];
    if (grouping == FRAGMENTATION_BY_THREAD && key == FRAGMENTATION_UNKNOWN) {
        json_put_string(j, "thread", NULL);
    } else if (grouping == FRAGMENTATION_BY_THREAD || grouping == FRAGMENTATION_BY_SITE) {
        json_put_u64(j, grouping == FRAGMENTATION_BY_SITE ? "site" : "thread", key);
    } else {
        (grouping == FRAGMENTATION_BY_SIZE ? fragmentation_size_range
                                           : fragmentation_age_range)(key, range);
        json_put_u64(j, from[grouping], range[0]);
        json_put_u64(j, to[grouping], range[1]);
    }
}

static void put_groups(struct json *j, struct symbols *symbols,
                       const struct fragmentation_groups *g, enum fragmentation_by grouping)
{
    json_begin_array(j);
    for (size_t i = 0; i < g->n; i++) {
        char text[STACK_SITE_BYTES];
        json_begin_object(j);
        put_group_key(j, grouping, g->groups[i].key);
        if (grouping == FRAGMENTATION_BY_SITE)
            json_put_string(j, "function", stack_site_text(symbols, g->groups[i].key, text));
        json_put_u64(j, "blocks", g->groups[i].blocks);
        json_put_u64(j, "live_bytes", g->groups[i].live_bytes);
        json_put_u64(j, "sparse_pages", g->groups[i].sparse_pages);
        json_put_u64(j, "stranded_bytes", g->groups[i].stranded_bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

void fragmentation_json(struct json *j, const struct fragmentation *h, struct symbols *symbols)
{
    static const char *const keys[] = {"by_size", "by_age", "by_thread", "by_site"};
    json_begin_object(j);
    json_put_u64(j, "event", h->event);
    json_put_u64(j, "blocks", h->blocks);
    json_put_u64(j, "live_bytes", h->live_bytes);
    json_put_u64(j, "page_bytes", h->page_bytes);
    json_put_u64(j, "pages", h->pages);
    json_put_u64(j, "sparse_pages", h->sparse_pages);
    json_put_u64(j, "stranded_bytes", h->stranded_bytes);
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++) {
        static const struct fragmentation_groups none;
        bool empty =
            grouping == FRAGMENTATION_BY_SITE && !fragmentation_has_sites(&h->by[grouping]);
        json_key(j, keys[grouping]);
        put_groups(j, symbols, empty ? &none : &h->by[grouping], grouping);
    }
    json_end_object(j);
}
