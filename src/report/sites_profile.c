#include "report/json/sites_json.h"

#include "base/sort.h"

#include "report/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SITES = 1000, PARTS_A_SITE = 8 };

// The listed sites, in ascending order of their numbers. All other sites are summed.
struct chosen {
    const struct sites_json *of;
    const struct by_site *totals;
    struct profile_stacks stacks;
    uint32_t *sites; // numbers of the sites
    size_t n;
    uint32_t *index; // maps the number of a site to its index in `sites` plus 1
};

static const enum profile_weight weights[] = {PROFILE_PEAK, PROFILE_LIVE, PROFILE_BYTES,
                                              PROFILE_CALLS, PROFILE_GROWTH};
enum { WEIGHTS = sizeof weights / sizeof *weights };

struct scored {
    double score;
    uint32_t number;
};

// Computes the score of each site, which is its largest share of any weight.
static void score_sites(const struct by_site *b, struct scored *all)
{
    double sums[WEIGHTS] = {0};
    for (size_t i = 0; i < b->n_sites; i++) {
        for (size_t k = 0; k < WEIGHTS; k++)
            sums[k] += (double)profile_weigh(&b->sites[i], weights[k]);
    }
    for (size_t i = 0; i < b->n_sites; i++) {
        all[i] = (struct scored){0, (uint32_t)i};
        for (size_t k = 0; k < WEIGHTS; k++) {
            double share =
                sums[k] > 0 ? (double)profile_weigh(&b->sites[i], weights[k]) / sums[k] : 0;
            all[i].score = share > all[i].score ? share : all[i].score;
        }
    }
    HT_SORT(all, b->n_sites, SORT_DOWN(struct scored, score), SORT_UP(struct scored, number));
}

static void chosen_release(struct chosen *c)
{
    profile_stacks_release(&c->stacks);
    free(c->sites);
    free(c->index);
}

// Selects the `max` sites with the highest score. Returns 0 or -ENOMEM.
static int choose_sites(struct chosen *c, const struct sites_json *n, size_t max)
{
    struct scored *all = calloc(n->totals->n_sites + 1, sizeof *all);
    *c = (struct chosen){.of = n, .totals = n->totals};
    c->sites = calloc(max + 1, sizeof *c->sites);
    c->index = calloc(n->totals->n_sites + 1, sizeof *c->index);
    int rc = all && c->sites && c->index ? 0 : -1;
    if (rc == 0)
        rc = symbols_find_wrappers(n->symbols);
    if (rc == 0)
        score_sites(n->totals, all);
    for (size_t i = 0; rc == 0 && i < n->totals->n_sites && c->n < max && all[i].score > 0; i++) {
        c->sites[c->n++] = all[i].number;
        c->index[all[i].number] = (uint32_t)c->n;
        rc = profile_stacks_add(&c->stacks, all[i].number, n->symbols, 0);
    }
    free(all);
    return rc;
}

static void put_frames(struct json *j, const struct profile_stacks *t)
{
    json_put_array(j, "frames");
    for (size_t i = 0; i < t->n_frames; i++)
        sites_json_function(j, &t->frames[i]);
    json_end_array(j);
    json_put_array(j, "stack_prefixes");
    for (size_t i = 0; i < t->n_stacks; i++)
        json_i64(j, t->stacks[i].prefix == PROFILE_NO_STACK ? -1 : (int64_t)t->stacks[i].prefix);
    json_end_array(j);
    json_put_array(j, "stack_frames");
    for (size_t i = 0; i < t->n_stacks; i++)
        json_u64(j, t->stacks[i].frame);
    json_end_array(j);
}

static const struct {
    const char *key;
    size_t offset;
} columns[] = {
    {"allocs", offsetof(struct by_site_totals, calls)},
    {"allocated_bytes", offsetof(struct by_site_totals, bytes)},
    {"live_at_peak_blocks", offsetof(struct by_site_totals, peak_blocks)},
    {"live_at_peak_bytes", offsetof(struct by_site_totals, peak_bytes)},
    {"live_at_end_blocks", offsetof(struct by_site_totals, live_blocks)},
    {"live_at_end_bytes", offsetof(struct by_site_totals, live_bytes)},
    {"steady_growth_bytes", offsetof(struct by_site_totals, growth_bytes)},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static uint64_t column_of(const struct by_site_totals *t, size_t column)
{
    uint64_t v;
    memcpy(&v, (const char *)t + columns[column].offset, sizeof v);
    return v;
}

// Writes the totals. Each column ends with the sum over the sites that are not listed.
static void put_totals(struct json *j, const struct chosen *c)
{
    json_put_array(j, "stacks");
    for (size_t i = 0; i < c->n; i++)
        json_u64(j, c->stacks.samples[i].stack);
    json_end_array(j);
    json_put_array(j, "sites");
    for (size_t i = 0; i < c->n; i++)
        json_u64(j, c->sites[i]);
    json_end_array(j);
    for (size_t column = 0; column < COLUMNS; column++) {
        uint64_t others = 0;
        json_put_array(j, columns[column].key);
        for (size_t i = 0; i < c->totals->n_sites; i++)
            others += c->index[i] ? 0 : column_of(&c->totals->sites[i], column);
        for (size_t i = 0; i < c->n; i++)
            json_u64(j, column_of(&c->totals->sites[c->sites[i]], column));
        json_u64(j, others);
        json_end_array(j);
    }
}

// Like put_totals, but writes the blocks and bytes whose lifetime is in the shortest class. Writes
// nothing if lifetimes are not counted. Returns 0 or -ENOMEM.
static int put_short_lived(struct json *j, const struct chosen *c)
{
    const struct by_site *b = c->totals;
    if (!b->n_parts)
        return 0;
    struct usage_count *all = calloc(c->n + 1, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < b->n_parts; i++) {
        uint32_t index = c->index[b->parts[i].site];
        struct usage_count *to = &all[index ? index - 1 : c->n];
        to->blocks += b->parts[i].freed[0].blocks;
        to->bytes += b->parts[i].freed[0].bytes;
    }
    json_put_array(j, "short_lived_blocks");
    for (size_t i = 0; i <= c->n; i++)
        json_u64(j, all[i].blocks);
    json_end_array(j);
    json_put_array(j, "short_lived_bytes");
    for (size_t i = 0; i <= c->n; i++)
        json_u64(j, all[i].bytes);
    json_end_array(j);
    free(all);
    return 0;
}

enum flow { FLOW_LIVE, FLOW_BYTES, FLOW_CALLS, FLOWS };
static const char *const flow_keys[FLOWS] = {"live_bytes", "allocated_bytes", "allocs"};

// Returns the value of a site at the start of a bin. If `bin` is n_bins, returns the value at the
// end of the run.
static uint64_t flow_at(const struct by_site *b, enum flow flow, size_t site, size_t bin)
{
    const struct by_site_totals *t = &b->sites[site];
    if (bin == b->n_bins)
        return flow == FLOW_LIVE ? t->live_bytes : flow == FLOW_BYTES ? t->bytes : t->calls;
    if (site >= b->n_levels)
        return 0;
    return flow == FLOW_LIVE    ? b->levels[site][bin]
           : flow == FLOW_BYTES ? b->flows[site].bytes[bin]
                                : b->flows[site].calls[bin];
}

static uint64_t flow_of(const struct chosen *c, enum flow flow, size_t i, size_t bin)
{
    uint64_t others = 0;
    if (i < c->n)
        return flow_at(c->totals, flow, c->sites[i], bin);
    for (size_t site = 0; site < c->totals->n_sites; site++)
        others += c->index[site] ? 0 : flow_at(c->totals, flow, site, bin);
    return others;
}

// Writes the differences between adjacent bins, up to the last difference that is not 0. Most sites
// are used only in a part of the run.
static void put_flow(struct json *j, const struct chosen *c, enum flow flow, size_t i)
{
    uint64_t last = 0, levels[BY_SITE_BINS + 1];
    size_t n = 0;
    for (size_t bin = 0; bin <= c->totals->n_bins; bin++) {
        levels[bin] = flow_of(c, flow, i, bin);
        n = levels[bin] != last ? bin + 1 : n;
        last = levels[bin];
    }
    json_begin_array(j);
    for (size_t bin = 0; bin < n; bin++)
        json_i64(j, (int64_t)(levels[bin] - (bin ? levels[bin - 1] : 0)));
    json_end_array(j);
}

static void put_flows(struct json *j, const struct chosen *c)
{
    json_put_object(j, "flow");
    json_put_array(j, "events");
    for (size_t bin = 0; bin < c->totals->n_bins; bin++)
        json_u64(j, c->totals->first_event + bin * c->totals->bin_events);
    json_u64(j, c->totals->first_event + c->totals->events);
    json_end_array(j);
    for (enum flow flow = 0; flow < FLOWS; flow++) {
        json_put_array(j, flow_keys[flow]);
        for (size_t i = 0; i <= c->n; i++)
            put_flow(j, c, flow, i);
        json_end_array(j);
    }
    json_end_object(j);
}

static void put_part(struct json *j, const struct by_site_part *p, uint32_t index)
{
    json_begin_array(j);
    json_u64(j, index);
    json_u64(j, p->thread);
    json_u64(j, p->size_class);
    json_u64(j, p->all.blocks);
    json_u64(j, p->all.bytes);
    json_u64(j, p->peak.blocks);
    json_u64(j, p->peak.bytes);
    json_u64(j, p->live.blocks);
    json_u64(j, p->live.bytes);
    for (size_t i = 0; i < BY_SITE_LIVES; i++) {
        json_u64(j, p->freed[i].blocks);
        json_u64(j, p->freed[i].bytes);
    }
    json_end_array(j);
}

static void put_parts(struct json *j, const struct chosen *c)
{
    const struct by_site *b = c->totals;
    bool timed = b->ns_per_stamp > 0;
    size_t left = MAX_SITES * PARTS_A_SITE, out = 0;
    json_put_string(j, "lifetime_unit", timed ? "ns" : "events");
    json_put_array(j, "lifetime_limits");
    for (size_t i = 0; i < BY_SITE_LIVES - 1; i++)
        json_u64(j, timed ? by_site_lives_ns[i] : by_site_lives_events[i]);
    json_end_array(j);
    json_put_array(j, "parts");
    for (size_t i = 0; i < b->n_parts; i++) {
        const struct by_site_part *p = &b->parts[i];
        if (!c->index[p->site] || !left)
            out++;
        else
            put_part(j, p, c->index[p->site] - 1), left--;
    }
    json_end_array(j);
    json_put_u64(j, "parts_left_out", out);
}

static char *text_of(const struct chosen *c)
{
    char *text = NULL;
    size_t n = 0;
    struct json j = {.to = open_memstream(&text, &n)};
    if (!j.to)
        return NULL;
    json_begin_object(&j);
    put_frames(&j, &c->stacks);
    put_totals(&j, c);
    int rc = put_short_lived(&j, c);
    put_flows(&j, c);
    put_parts(&j, c);
    json_end_object(&j);
    bool bad = ferror(j.to);
    if (fclose(j.to) == 0 && !bad && rc == 0)
        return text;
    free(text);
    return NULL;
}

char *sites_profile(const struct sites_json *n, size_t max_bytes)
{
    for (size_t max = MAX_SITES;; max = max * 3 / 4) {
        struct chosen c;
        char *text = choose_sites(&c, n, max) == 0 ? text_of(&c) : NULL;
        chosen_release(&c);
        if (!text || strlen(text) <= max_bytes || max == 0)
            return text;
        free(text);
    }
}
