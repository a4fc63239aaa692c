#include "report/json/usage_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_THREADS = 64, TOP_PAIRS = 512, MAX_SAMPLES = TIMELINE_BINS };

static double to_ns(const struct usage *u, uint64_t stamps)
{
    return u->ns_per_stamp > 0 ? round((double)stamps * u->ns_per_stamp) : NAN;
}

static void put_thread(struct json *j, size_t number, const struct usage_thread *t)
{
    json_begin_object(j);
    if (number == SIZE_MAX)
        json_put_string(j, "thread", NULL);
    else
        json_put_u64(j, "thread", number);
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

static int by_blocks(const void *a, const void *b)
{
    const struct usage_pair *x = a, *y = b;
    if (x->count.blocks != y->count.blocks)
        return x->count.blocks > y->count.blocks ? -1 : 1;
    uint64_t p = (uint64_t)x->from << 32 | x->to, q = (uint64_t)y->from << 32 | y->to;
    return p < q ? -1 : p > q;
}

static void put_pairs(struct json *j, const struct usage *u)
{
    struct usage_pair *pairs = malloc((u->n_pairs + 1) * sizeof *pairs);
    struct usage_count others = u->other_pairs;
    size_t n = pairs ? u->n_pairs : 0;
    if (n) {
        memcpy(pairs, u->pairs, n * sizeof *pairs);
        qsort(pairs, n, sizeof *pairs, by_blocks);
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

void usage_json_process(struct json *j, const struct usage *u)
{
    put_threads(j, u);
    put_pairs(j, u);
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
        if (group == TIMELINE_GROUPS - 1)
            json_put_string(j, "max_bytes", NULL);
        else
            json_put_u64(j, "max_bytes", 8ull << usage_group_last[group]);
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

void usage_json_timeline(struct json *j, const struct usage *u, uint32_t pid,
                         const struct workload_sample *samples, size_t n_samples)
{
    json_put_object(j, "timeline");
    json_put_u64(j, "pid", pid);
    put_axis(j, u, false);
    if (u->ns_per_stamp > 0) {
        put_axis(j, u, true);
        put_samples(j, u, samples, n_samples);
    }
    json_end_object(j);
}
