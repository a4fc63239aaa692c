#include "report/profile.h"

#include "base/sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t profile_weigh(const struct by_site_totals *t, enum profile_weight weight)
{
    const uint64_t weights[] = {
        [PROFILE_CALLS] = t->calls,     [PROFILE_BYTES] = t->bytes,
        [PROFILE_PEAK] = t->peak_bytes, [PROFILE_LIVE] = t->live_bytes,
        [PROFILE_SPAN] = t->span_bytes, [PROFILE_GROWTH] = t->growth_bytes,
    };
    return weights[weight];
}

uint64_t profile_rank(const struct by_site_totals *t, enum profile_weight weight)
{
    return weight == PROFILE_GROWTH
               ? (uint64_t)by_site_growth_rank((double)t->growth_bytes, (double)t->freed_blocks)
               : profile_weigh(t, weight);
}

struct weighed {
    uint64_t weight;
    uint32_t number;
};

uint32_t *profile_order(const struct by_site *b, enum profile_weight weight, size_t *n)
{
    struct weighed *all = calloc(b->n_sites + 1, sizeof *all);
    uint32_t *order = calloc(b->n_sites + 1, sizeof *order);
    *n = 0;
    for (size_t i = 0; all && i < b->n_sites; i++) {
        const struct by_site_totals *t = &b->sites[i];
        if (t->calls || t->peak_blocks || t->live_blocks)
            all[(*n)++] = (struct weighed){profile_rank(t, weight), (uint32_t)i};
    }
    if (all)
        HT_SORT(all, *n, SORT_DOWN(struct weighed, weight), SORT_UP(struct weighed, number));
    for (size_t i = 0; all && order && i < *n; i++)
        order[i] = all[i].number;
    free(all);
    return order;
}

// Appends a name. Replaces ';' and line feeds, because they separate functions and stacks.
static int put_name(struct buf *to, const char *name)
{
    int rc = 0;
    for (; rc == 0 && *name; name++)
        rc = buf_put_u8(to, *name == ';' ? ':' : *name == '\n' ? ' ' : (uint8_t)*name);
    return rc;
}

static int put_site(struct buf *to, struct symbols *symbols, size_t number)
{
    const struct workload_site *site = symbols_site(symbols, number);
    bool first = true;
    if (!site->n)
        return put_name(to, "(unknown)");
    for (uint32_t i = site->n; i-- > 0;) {
        const struct symbol *found;
        size_t n = symbols_of(symbols, symbols_frame(symbols, site, i), &found);
        if (!n)
            return -ENOMEM;
        while (n-- > 0) {
            if ((!first && buf_put_u8(to, ';') < 0) || put_name(to, found[n].function) < 0)
                return -ENOMEM;
            first = false;
        }
    }
    return 0;
}

struct line {
    char *text;
    uint64_t weight;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static int add_line(struct line *to, struct symbols *symbols, size_t number)
{
    struct buf text = {0};
    int rc = put_site(&text, symbols, number) ?: buf_put_u8(&text, 0);
    to->text = (char *)text.data;
    return rc;
}

static int put_lines(struct buf *to, struct line *lines, size_t n)
{
    char number[32];
    int rc = 0;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0, next; rc == 0 && i < n; i = next) {
        uint64_t weight = 0;
        for (next = i; next < n && strcmp(lines[next].text, lines[i].text) == 0; next++)
            weight += lines[next].weight;
        int bytes = snprintf(number, sizeof number, " %" PRIu64 "\n", weight);
        rc =
            buf_put(to, lines[i].text, strlen(lines[i].text)) || buf_put(to, number, (size_t)bytes);
    }
    return rc ? -ENOMEM : 0;
}

int profile_folded(struct buf *to, const struct by_site *b, struct symbols *symbols,
                   enum profile_weight weight)
{
    struct line *lines = calloc(b->n_sites + 1, sizeof *lines);
    size_t n = 0;
    int rc = lines ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < b->n_sites; i++) {
        lines[n].weight = profile_weigh(&b->sites[i], weight);
        if (lines[n].weight)
            rc = add_line(&lines[n++], symbols, i);
    }
    if (rc == 0)
        rc = put_lines(to, lines, n);
    for (size_t i = 0; lines && i < n; i++)
        free(lines[i].text);
    free(lines);
    return rc;
}
