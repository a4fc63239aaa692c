#include "report/text/fragmentation.h"

#include "analysis/symbols/stack.h"
#include "base/sort.h"
#include "cli/command.h"

#include <stdio.h>

static void group_label(struct symbols *symbols, char text[STACK_SITE_BYTES],
                        enum fragmentation_by grouping, uint64_t key)
{
    uint64_t range[2];
    if (grouping == FRAGMENTATION_BY_SIZE) {
        fragmentation_size_range(key, range);
        snprintf(text, STACK_SITE_BYTES, "%llu to %llu bytes", (unsigned long long)range[0],
                 (unsigned long long)range[1]);
    } else if (grouping == FRAGMENTATION_BY_AGE) {
        fragmentation_age_range(key, range);
        snprintf(text, STACK_SITE_BYTES, "%s to %s calls old", human_number(range[0]),
                 human_number(range[1]));
    } else if (grouping == FRAGMENTATION_BY_SITE && stack_site_text(symbols, key, text)) {
        return;
    } else if (key == (grouping == FRAGMENTATION_BY_SITE ? 0 : FRAGMENTATION_UNKNOWN)) {
        snprintf(text, STACK_SITE_BYTES,
                 grouping == FRAGMENTATION_BY_SITE ? "unknown call site" : "preexisting");
    } else {
        snprintf(text, STACK_SITE_BYTES, "%s %llu",
                 grouping == FRAGMENTATION_BY_SITE ? "call site" : "thread",
                 (unsigned long long)key);
    }
}

static void print_groups(struct symbols *symbols, const struct fragmentation_groups *all,
                         enum fragmentation_by grouping)
{
    enum { TOP = 4 };
    struct fragmentation_group top[TOP + 1];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        top[n] = all->groups[i];
        n += top[n].stranded_bytes > 0;
        HT_SORT(top, n, SORT_DOWN(struct fragmentation_group, stranded_bytes));
        n -= n > TOP;
    }
    for (size_t i = 0; i < n; i++) {
        char name[STACK_SITE_BYTES];
        group_label(symbols, name, grouping, top[i].key);
        printf("%12s %12s %14s %14s  %s\n", human_size(top[i].stranded_bytes),
               human_size(top[i].live_bytes), human_number(top[i].blocks),
               human_number(top[i].sparse_pages), cli_text(name));
    }
}

void fragmentation_print(const struct fragmentation *h, struct symbols *symbols)
{
    if (!h->stranded_bytes)
        return;
    cli_table_head("%12s %12s %14s %14s  %s", "stranded", "live", "blocks", "sparse pages",
                   "pinning blocks");
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++) {
        if (grouping != FRAGMENTATION_BY_SITE || fragmentation_has_sites(&h->by[grouping]))
            print_groups(symbols, &h->by[grouping], grouping);
    }
}
