#include "report/json/stat_json.h"

#include "analysis/size_classes.h"
#include "base/sort.h"
#include "record/entries/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_SIZES = 20, TOP_THREADS = 64, TOP_PAIRS = 512, MAX_SAMPLES = TIMELINE_BINS };

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
        struct usage_count at_peak = usage_at_peak(peak, i);
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

static double to_ns(const struct usage *u, uint64_t stamps)
{
    return u->ns_per_stamp > 0 ? round((double)stamps * u->ns_per_stamp) : NAN;
}

static void put_thread(struct json *j, size_t number, const struct usage_thread *t)
{
    json_begin_object(j);
    put_limit(j, "thread", number, number == SIZE_MAX);
    if (t->tid)
        json_put_u64(j, "tid", t->tid);
    if (t->name[0])
        json_put_string(j, "name", t->name);
    json_put_u64(j, "events", t->events);
    json_put_u64(j, "allocs", t->allocs);
    json_put_u64(j, "allocated_bytes", t->allocated_bytes);
    json_put_u64(j, "local_frees", t->local_frees);
    json_put_u64(j, "remote_frees", t->remote_frees);
    json_put_u64(j, "remotely_freed", t->remotely_freed);
    json_put_u64(j, "live_at_end_bytes", t->live_bytes);
    json_end_object(j);
}

static void add_thread(struct usage_thread *to, const struct usage_thread *t)
{
    to->events += t->events;
    to->allocs += t->allocs;
    to->allocated_bytes += t->allocated_bytes;
    to->local_frees += t->local_frees;
    to->remote_frees += t->remote_frees;
    to->remotely_freed += t->remotely_freed;
    to->live_bytes += t->live_bytes;
}

// Returns the smallest n such that fewer than TOP_THREADS threads have more than n events.
static uint64_t min_events(const struct usage *u)
{
    uint64_t low = 0, high = UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        size_t n = 0;
        for (size_t i = 0; i < u->n_threads; i++)
            n += u->threads[i].events > middle;
        if (n < TOP_THREADS)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Writes the threads with the most events, sorted by number. Writes the sum of all other threads as
// one thread without a number.
static void put_threads(struct json *j, const struct usage *u)
{
    struct usage_thread others = {0};
    uint64_t limit = u->n_threads > TOP_THREADS ? min_events(u) : 0;
    json_put_array(j, "by_thread");
    for (size_t i = 0; i < u->n_threads; i++) {
        if (u->n_threads <= TOP_THREADS || u->threads[i].events > limit)
            put_thread(j, i, &u->threads[i]);
        else
            add_thread(&others, &u->threads[i]);
    }
    if (others.events)
        put_thread(j, SIZE_MAX, &others);
    json_end_array(j);
}

static void put_allocators(struct json *j, const struct usage *u)
{
    if (!usage_has_allocators(u))
        return;
    json_put_array(j, "allocators");
    for (unsigned i = 0; i < HT_ALLOCATORS; i++) {
        struct usage_allocator_figures f = usage_of_allocator(u, i);
        if (!f.calls && !f.peak.blocks)
            continue;
        json_begin_object(j);
        json_put_string(j, "name", entries_allocator_name(i));
        json_put_u64(j, "calls", f.calls);
        json_put_u64(j, "live_at_peak_blocks", f.peak.blocks);
        json_put_u64(j, "live_at_peak_bytes", f.peak.bytes);
        json_put_u64(j, "live_at_end_blocks", f.live.blocks);
        json_put_u64(j, "live_at_end_bytes", f.live.bytes);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_u64(j, "mismatched_frees", u->mismatched_frees);
}

static void put_pairs(struct json *j, const struct usage *u)
{
    struct usage_pair *pairs = malloc((u->n_pairs + 1) * sizeof *pairs);
    struct usage_count others = u->other_pairs;
    size_t n = pairs ? u->n_pairs : 0;
    if (n) {
        memcpy(pairs, u->pairs, n * sizeof *pairs);
        HT_SORT(pairs, n, SORT_DOWN(struct usage_pair, count.blocks),
                SORT_UP(struct usage_pair, from), SORT_UP(struct usage_pair, to));
    }
    json_put_object(j, "thread_pairs");
    json_put_array(j, "from_to_count_bytes");
    for (size_t i = 0; i < n; i++) {
        if (i >= TOP_PAIRS) {
            others.blocks += pairs[i].count.blocks;
            others.bytes += pairs[i].count.bytes;
            continue;
        }
        json_begin_array(j);
        json_u64(j, pairs[i].from);
        json_u64(j, pairs[i].to);
        json_u64(j, pairs[i].count.blocks);
        json_u64(j, pairs[i].count.bytes);
        json_end_array(j);
    }
    json_end_array(j);
    json_put_u64(j, "others_count", others.blocks);
    json_put_u64(j, "others_bytes", others.bytes);
    json_end_object(j);
    free(pairs);
}

static void put_column(struct json *j, const char *key, const struct timeline *t, size_t offset)
{
    json_put_array(j, key);
    for (size_t i = 0; i < t->n; i++) {
        uint64_t v;
        memcpy(&v, (const char *)&t->bins[i] + offset, sizeof v);
        json_u64(j, v);
    }
    json_end_array(j);
}

static void put_groups(struct json *j, const struct timeline *t)
{
    json_put_array(j, "by_size");
    for (unsigned group = 0; group < TIMELINE_GROUPS; group++) {
        json_begin_object(j);
        put_limit(j, "max_bytes", 8ull << usage_group_last[group], group == TIMELINE_GROUPS - 1);
        put_column(j, "end_bytes", t,
                   offsetof(struct timeline_bin, groups) + group * sizeof(uint64_t));
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_means(struct json *j, const struct usage *u, bool by_time)
{
    const struct timeline *t = by_time ? &u->by_time : &u->by_event;
    uint64_t from = 0;
    json_put_array(j, "mean_bytes");
    for (size_t i = 0; i < t->n; i++) {
        const struct timeline_bin *b = &t->bins[i];
        double sum = by_time ? b->counts.stamp_bytes : b->counts.event_bytes;
        double over = (double)((by_time ? b->end_stamp : b->end_event) - from);
        json_double(j, over > 0 ? round(sum / over) : (double)b->end_bytes);
        from = by_time ? b->end_stamp : b->end_event;
    }
    json_end_array(j);
}

static void put_ends_ns(struct json *j, const struct usage *u, const struct timeline *t)
{
    json_put_array(j, "end_ns");
    for (size_t i = 0; i < t->n; i++)
        json_double(j, to_ns(u, t->bins[i].end_stamp));
    json_end_array(j);
}

#define COUNT(field) offsetof(struct timeline_bin, counts.field)

static void put_axis(struct json *j, const struct usage *u, bool by_time)
{
    const struct timeline *t = by_time ? &u->by_time : &u->by_event;
    json_put_object(j, by_time ? "by_time" : "by_event");
    if (by_time)
        json_put_double(j, "bin_ns", (double)(1ull << t->width_shift) * u->ns_per_stamp);
    else
        json_put_u64(j, "bin_events", 1ull << t->width_shift);
    put_column(j, "end_event", t, offsetof(struct timeline_bin, end_event));
    if (u->ns_per_stamp > 0)
        put_ends_ns(j, u, t);
    put_column(j, "events", t, COUNT(events));
    put_column(j, "allocs", t, COUNT(allocs));
    put_column(j, "frees", t, COUNT(frees));
    put_column(j, "allocated_bytes", t, COUNT(allocated_bytes));
    put_column(j, "min_bytes", t, COUNT(min_bytes));
    put_means(j, u, by_time);
    put_column(j, "max_bytes", t, COUNT(max_bytes));
    put_column(j, "end_bytes", t, offsetof(struct timeline_bin, end_bytes));
    put_column(j, "min_blocks", t, COUNT(min_blocks));
    put_column(j, "max_blocks", t, COUNT(max_blocks));
    put_groups(j, t);
    json_end_object(j);
}

// The samples of one interval.
struct sampled {
    uint64_t n, ns, min, max, sum, anon;
};

static void put_sampled(struct json *j, const struct sampled *s)
{
    if (!s->n)
        return;
    json_begin_array(j);
    json_u64(j, s->ns);
    json_u64(j, s->min);
    json_u64(j, s->sum / s->n);
    json_u64(j, s->max);
    json_u64(j, s->anon / s->n);
    json_end_array(j);
}

static void add_sample(struct sampled *s, const struct workload_sample *w, uint64_t ns)
{
    s->min = !s->n || w->rss_bytes < s->min ? w->rss_bytes : s->min;
    s->max = w->rss_bytes > s->max ? w->rss_bytes : s->max;
    s->sum += w->rss_bytes;
    s->anon += w->anon_bytes;
    s->ns = ns;
    s->n++;
}

static uint64_t sample_ns(const struct usage *u, const struct workload_sample *s)
{
    uint64_t since = s->stamp > u->start_stamp ? s->stamp - u->start_stamp : 0;
    return (uint64_t)((double)since * u->ns_per_stamp);
}

static void put_samples(struct json *j, const struct usage *u, const struct workload_sample *s,
                        size_t n)
{
    struct sampled open = {0};
    uint64_t last = 0, width, at = 0;
    for (size_t i = 0; i < n; i++)
        last = sample_ns(u, &s[i]) > last ? sample_ns(u, &s[i]) : last;
    width = last / MAX_SAMPLES + 1;
    json_put_array(j, "rss_ns_min_mean_max_anon");
    for (size_t i = 0; i < n; i++) {
        uint64_t ns = sample_ns(u, &s[i]);
        if (ns / width > at) {
            put_sampled(j, &open);
            open = (struct sampled){0};
            at = ns / width;
        }
        add_sample(&open, &s[i], ns);
    }
    put_sampled(j, &open);
    json_end_array(j);
}

static void put_timeline(struct json *j, const struct file_stat *s, uint32_t pid)
{
    const struct usage *u = &s->usage;
    json_put_object(j, "timeline");
    json_put_u64(j, "pid", pid);
    put_axis(j, u, false);
    if (u->ns_per_stamp > 0) {
        put_axis(j, u, true);
        put_samples(j, u, s->samples, s->n_samples);
    }
    json_end_object(j);
}

void stat_json_usage(struct json *j, const struct file_stat *s, const union stat_figures *f)
{
    put_calls(j, s->sums, f);
    put_sizes(j, s->sums, &s->usage);
    put_size_classes(j, s->sums, f);
    put_top(j, s->sums, f);
    put_lifetimes(j, s->sums);
    put_at_once(j, s->sums);
    put_left(j, s->sums, f);
    put_figures(j, "calloc", f, STAT_FIGURES_CALLOC);
    put_resizes(j, s->sums, f);
    put_alignment(j, s->sums, f);
    put_figures(j, "peak", f, STAT_FIGURES_PEAK);
    put_threads(j, &s->usage);
    put_allocators(j, &s->usage);
    put_pairs(j, &s->usage);
    put_timeline(j, s, (uint32_t)f->peak_pid);
}
