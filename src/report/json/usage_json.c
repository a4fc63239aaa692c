#include "report/json/usage_json.h"

#include "analysis/size_classes.h"

#include <math.h>
#include <stdlib.h>

enum { TOP_SIZES = 20 };

static double mean(uint64_t sum, uint64_t n)
{
    return n ? (double)sum / (double)n : NAN;
}

static void put_limit(struct json *j, const char *key, uint64_t limit, bool is_last)
{
    if (is_last)
        json_put_string(j, key, NULL);
    else
        json_put_u64(j, key, limit);
}

static void put_count(struct json *j, struct usage_count c)
{
    json_put_u64(j, "count", c.blocks);
    json_put_u64(j, "bytes", c.bytes);
}

// Writes a list of the counts that are not 0. The limit of count i is 2^i. The last count has no
// limit.
static void put_powers(struct json *j, const char *list, const char *limit,
                       const struct usage_count *counts, unsigned n)
{
    json_put_array(j, list);
    for (unsigned i = 0; i < n; i++) {
        if (!counts[i].blocks)
            continue;
        json_begin_object(j);
        put_limit(j, limit, 1ull << i, i == n - 1);
        put_count(j, counts[i]);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_figures(struct json *j, const char *key, const union stat_figures *f,
                        enum stat_figures_group group)
{
    json_put_object(j, key);
    stat_figures_put(j, f, group);
    json_end_object(j);
}

static void put_sizes_of(struct json *j, const struct usage_kind *k)
{
    json_put_u64(j, "sized", k->sized);
    json_put_u64(j, "bytes", k->bytes);
    json_put_u64(j, "min_bytes", k->min_bytes);
    json_put_double(j, "mean_bytes", mean(k->bytes, k->sized));
    json_put_u64(j, "max_bytes", k->max_bytes);
}

static void put_calls(struct json *j, const struct usage_sums *s, const union stat_figures *f)
{
    put_figures(j, "requests", f, STAT_FIGURES_REQUESTS);
    json_put_object(j, "calls");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct usage_kind *k = &s->kinds[kind];
        if (!k->calls || !event_infos[kind].name)
            continue;
        json_put_object(j, event_infos[kind].name);
        json_put_u64(j, "count", k->calls);
        json_put_u64(j, "failed", k->failed);
        if (k->sized)
            put_sizes_of(j, k);
        json_end_object(j);
    }
    json_end_object(j);
    stat_figures_put(j, f, STAT_FIGURES_NULL_FREES);
}

static void put_sizes(struct json *j, const struct usage_sums *s, const struct usage *peak)
{
    struct usage_count counts[USAGE_CLASSES];
    size_classes_two(s, counts);
    json_put_array(j, "sizes");
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        struct usage_count at_peak = peak ? usage_at_peak(peak, i) : (struct usage_count){0};
        if (!counts[i].blocks && !at_peak.blocks && !s->never_freed_sizes[i].blocks)
            continue;
        json_begin_object(j);
        put_limit(j, "max_bytes", 8ull << i, i == USAGE_CLASSES - 1);
        put_count(j, counts[i]);
        json_put_u64(j, "live_at_peak_blocks", at_peak.blocks);
        json_put_u64(j, "live_at_peak_bytes", at_peak.bytes);
        json_put_u64(j, "live_at_end_blocks", s->never_freed_sizes[i].blocks);
        json_put_u64(j, "live_at_end_bytes", s->never_freed_sizes[i].bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_classes(struct json *j, const char *name, const struct size_classes *c,
                        const union stat_figures *f, enum stat_figures_group group)
{
    json_put_object(j, name);
    stat_figures_put(j, f, group);
    json_put_array(j, "classes");
    for (size_t i = 0; i < c->n; i++) {
        json_begin_object(j);
        put_limit(j, "max_bytes", c->classes[i].max_bytes, c->classes[i].max_bytes == UINT64_MAX);
        put_count(j, c->classes[i].count);
        json_put_u64(j, "internal_fragmentation_bytes", c->classes[i].internal_fragmentation_bytes);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_size_classes(struct json *j, const struct usage_sums *s,
                             const union stat_figures *f)
{
    struct size_classes c;
    json_put_object(j, "size_classes");
    size_classes_glibc(s, &c);
    put_classes(j, "glibc", &c, f, STAT_FIGURES_GLIBC);
    size_classes_four(s, &c);
    put_classes(j, "four_per_doubling", &c, f, STAT_FIGURES_FOUR);
    json_end_object(j);
}

static void put_top(struct json *j, const struct usage_sums *s, const union stat_figures *f)
{
    struct size_classes_top_size top[TOP_SIZES];
    json_put_object(j, "top_sizes");
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        json_put_array(j, by_bytes ? "by_bytes" : "by_count");
        size_t n = size_classes_top(s, by_bytes, top, TOP_SIZES);
        for (size_t i = 0; i < n; i++) {
            json_begin_object(j);
            json_put_u64(j, "size_bytes", top[i].size);
            json_put_u64(j, "count", top[i].count);
            json_end_object(j);
        }
        json_end_array(j);
    }
    stat_figures_put(j, f, STAT_FIGURES_TOP_SIZES);
    json_end_object(j);
}

static void put_life(struct json *j, const struct usage_sums *s, unsigned span)
{
    unsigned last = 0;
    for (unsigned class = 0; class < USAGE_CLASSES; class ++)
        last = s->lifetimes[span][class] ? class : last;
    json_begin_object(j);
    put_limit(j, "max_events", 1ull << span, span == USAGE_SPANS - 1);
    put_count(j, (struct usage_count){usage_freed_after(s, span), s->lifetime_bytes[span]});
    json_put_array(j, "by_size");
    for (unsigned class = 0; class <= last; class ++)
        json_u64(j, s->lifetimes[span][class]);
    json_end_array(j);
    json_end_object(j);
}

static void put_lifetimes(struct json *j, const struct usage_sums *s)
{
    json_put_object(j, "lifetimes");
    json_put_array(j, "by_events");
    for (unsigned span = 0; span < USAGE_SPANS; span++) {
        if (usage_freed_after(s, span))
            put_life(j, s, span);
    }
    json_end_array(j);
    put_powers(j, "by_time", "max_ns", s->times, USAGE_SPANS);
    json_end_object(j);
}

static void put_at_once(struct json *j, const struct usage_sums *s)
{
    uint64_t n = 0;
    json_put_array(j, "short_lived");
    for (unsigned span = 0; span <= 4; span++) {
        n += usage_freed_after(s, span);
        json_begin_object(j);
        json_put_u64(j, "within_events", 1u << span);
        json_put_u64(j, "count", n);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_left(struct json *j, const struct usage_sums *s, const union stat_figures *f)
{
    json_put_object(j, "never_freed");
    put_powers(j, "by_age_events", "max_events", s->never_freed_ages, USAGE_SPANS);
    stat_figures_put(j, f, STAT_FIGURES_NEVER_FREED);
    json_end_object(j);
}

static void put_resizes(struct json *j, const struct usage_sums *s, const union stat_figures *f)
{
    const struct usage_resizes *r = &s->resizes;
    json_put_object(j, "realloc");
    stat_figures_put(j, f, STAT_FIGURES_REALLOC);
    put_figures(j, "grown_in_place", f, STAT_FIGURES_GROWN_IN_PLACE);
    put_figures(j, "grown_moved", f, STAT_FIGURES_GROWN_MOVED);
    put_figures(j, "shrunk_in_place", f, STAT_FIGURES_SHRUNK_IN_PLACE);
    put_figures(j, "shrunk_moved", f, STAT_FIGURES_SHRUNK_MOVED);
    json_put_array(j, "growth_factors");
    for (unsigned i = 0; i < USAGE_GROWTHS; i++) {
        json_begin_object(j);
        json_put_double(j, "max_factor", i < USAGE_GROWTHS - 1 ? usage_growth_limits[i] : INFINITY);
        json_put_u64(j, "count", r->growths[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_alignment(struct json *j, const struct usage_sums *s, const union stat_figures *f)
{
    json_put_object(j, "alignment");
    stat_figures_put(j, f, STAT_FIGURES_ALIGNMENT);
    put_powers(j, "by_alignment", "align_bytes", s->aligns, USAGE_ALIGNS);
    json_end_object(j);
}

void usage_json_sums(struct json *j, const struct usage_sums *s, const union stat_figures *f,
                     const struct usage *peak)
{
    put_calls(j, s, f);
    put_sizes(j, s, peak);
    put_size_classes(j, s, f);
    put_top(j, s, f);
    put_lifetimes(j, s);
    put_at_once(j, s);
    put_left(j, s, f);
    put_figures(j, "calloc", f, STAT_FIGURES_CALLOC);
    put_resizes(j, s, f);
    put_alignment(j, s, f);
    put_figures(j, "peak", f, STAT_FIGURES_PEAK);
}
