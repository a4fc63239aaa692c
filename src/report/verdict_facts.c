#include "report/verdict.h"

#include "analysis/symbols/stack.h"
#include "report/json/sites_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    ARENA_BYTES = 256 << 10, // minimum free memory of an arena that is counted
};

#define SITE_SHARE   0.02 // call sites below this share of the first call site are not named
#define MOST_SHARE   0.8  // share of the growth of RSS
#define OTHER_SHARE  0.1  // growth of another process, as a share of the peak of live bytes
#define KEPT_SHARE   0.5  // new live blocks as a share of the events that say nothing of the load
#define RECENT_NS    1e9
#define OLD_MAP      1.5  // the last page map is ignored if RSS reaches this multiple of its RSS
#define ENDED_SHARE  0.1  // min. share of a call site's growth that is in the last third
#define FREED_SHARE  0.1  // share of freed blocks above which a call site can be a cache
#define EXIT_SHARE   0.25 // max. time in which a process frees its blocks at exit, as a share
#define LEFT_SHARE   0.5  // max. share of the live bytes that remains after the exit
#define FALLEN_SHARE 0.75 // share of the live bytes below which the process has begun to free them

static bool is_growing(const struct file_stat_process *p)
{
    const struct workload_summary *s = &p->summary;
    return verdict_is_growing(&p->live_growth) && s->live_at_end_blocks > 2 * s->unmatched_frees;
}

const struct file_stat_process *verdict_other_growing(const struct file_stat *s, size_t *n)
{
    const struct file_stat_process *most = NULL;
    size_t growing = 0;
    for (size_t i = 0; s->kind != FILE_STAT_WORKLOAD && i < s->n_processes; i++) {
        const struct file_stat_process *p = &s->processes[i];
        double peak = (double)s->processes[s->of_usage].summary.peak_live_bytes;
        if (i == s->of_usage || !is_growing(p) || p->live_growth.grown_bytes < OTHER_SHARE * peak)
            continue;
        growing++;
        if (!most || p->live_growth.grown_bytes > most->live_growth.grown_bytes)
            most = p;
    }
    if (n)
        *n = growing;
    return most;
}

static const struct file_stat_process *process_of(const struct file_stat *s)
{
    return s->of_usage < s->n_processes ? &s->processes[s->of_usage] : NULL;
}

// The most important call sites. Sites with the same path become one.
struct site_list {
    struct verdict_site items[SITES_JSON_TOP];
    size_t n;
};

// Adds a site. If a site has the same path already, adds the bytes to that site.
static void add_site(struct site_list *to, const struct verdict_site *s)
{
    size_t at = 0;
    while (at < to->n && strcmp(to->items[at].path, s->path) != 0)
        at++;
    if (at == SITES_JSON_TOP || !(s->bytes > 0))
        return;
    if (at == to->n)
        to->items[to->n++] = *s;
    else
        to->items[at].bytes += s->bytes;
}

// Returns the weight that determines the order of the sites.
static double site_weight(const struct verdict_site *s, bool is_growth)
{
    return is_growth ? by_site_growth_rank(s->bytes, s->freed_share > 0) : s->bytes;
}

// Copies the sites with the highest weights, in order.
static void choose_sites(struct verdict_sites *to, struct site_list *from, bool is_growth)
{
    to->n = 0;
    for (size_t n = from->n; n && to->n < VERDICT_SITES; n--) {
        struct verdict_site *best = &from->items[0];
        for (size_t i = 1; i < n; i++) {
            if (site_weight(&from->items[i], is_growth) > site_weight(best, is_growth))
                best = &from->items[i];
        }
        if (to->n && best->bytes < SITE_SHARE * to->items[0].bytes)
            return;
        to->items[to->n++] = *best;
        memmove(best, best + 1, (size_t)(from->items + n - best - 1) * sizeof *best);
    }
}

static void set_sites(struct verdict_sites *to, const struct file_stat *s,
                      enum sites_json_list list)
{
    uint32_t top[SITES_JSON_TOP];
    struct site_list sites = {.n = 0};
    size_t n = sites_json_list(&s->by_site, list, top);
    for (size_t i = 0; i < n; i++) {
        const struct by_site_totals *t = &s->by_site.sites[top[i]];
        uint64_t bytes = list == SITES_JSON_by_growth ? t->growth_bytes
                         : list == SITES_JSON_at_peak ? t->peak_bytes
                                                      : t->live_bytes;
        struct verdict_site site = {
            .bytes = (double)bytes,
            .freed_share = t->calls ? (double)t->freed_blocks / (double)t->calls : NAN};
        stack_path(s->symbols, top[i], site.path);
        add_site(&sites, &site);
    }
    choose_sites(to, &sites, list == SITES_JSON_by_growth);
}

static void set_pinning(struct verdict_facts *f, const struct rss_history *h)
{
    const struct fragmentation *pinned = &h->rss.pinned;
    const struct fragmentation_groups *sites = &pinned->by[FRAGMENTATION_BY_SITE],
                                      *sizes = &pinned->by[FRAGMENTATION_BY_SIZE];
    struct site_list list = {.n = 0};
    f->pinning_blocks = f->pinning_bytes = 0;
    for (size_t i = 0; i < sizes->n; i++) {
        f->pinning_blocks += sizes->groups[i].sparse_pages ? (double)sizes->groups[i].blocks : 0;
        f->pinning_bytes += sizes->groups[i].sparse_pages ? (double)sizes->groups[i].live_bytes : 0;
    }
    for (size_t i = 0; i < sites->n && i < SITES_JSON_TOP; i++) {
        struct verdict_site site = {.bytes = (double)sites->groups[i].stranded_bytes,
                                    .freed_share = NAN};
        if (sites->groups[i].key)
            stack_path(h->rss.symbols, sites->groups[i].key, site.path);
        add_site(&list, &site);
    }
    choose_sites(&f->pinning, &list, false);
    if (h->rss.all.blocks)
        f->pinning_before_share = (double)h->before_blocks / (double)h->rss.all.blocks;
}

static double free_of(const struct verdict_facts *f, const struct rss_arena *a, uint64_t page_bytes)
{
    const struct rss_counts *c = &a->counts;
    return (double)(c->bytes[RSS_PARTLY_FREE] + c->bytes[RSS_WHOLLY_FREE]) +
           (f->knows_blocks ? (double)(c->own_pages * page_bytes) : 0);
}

static void set_arenas(struct verdict_facts *f, const struct rss *r)
{
    f->arenas = f->arena_free_bytes = 0;
    for (size_t i = 0; i < r->n_arenas; i++) {
        double bytes = free_of(f, &r->arenas[i], r->pages.page_bytes);
        f->arenas += r->arenas[i].kind != RSS_ARENA_MAPPED && bytes >= ARENA_BYTES;
        f->arena_free_bytes += r->arenas[i].kind == RSS_ARENA_HEAP ? bytes : 0;
    }
}

// Distributes RSS among its owners. If not all blocks are known, heap pages without known blocks
// may contain blocks that are older than the recording. A language runtime's anonymous mappings are
// the runtime's heap.
static void set_resident(struct verdict_facts *f, const struct rss *r)
{
    double *to = f->resident, own = (double)(r->all.own_pages * r->pages.page_bytes);
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        to[i] = 0;
    to[VERDICT_LIVE] = (double)r->all.bytes[RSS_LIVE];
    to[VERDICT_ROUNDING] = (double)r->all.bytes[RSS_ROUNDING] + (double)r->all.bytes[RSS_OWN] - own;
    to[VERDICT_FREE] = (double)r->all.bytes[RSS_WHOLLY_FREE];
    to[f->knows_blocks ? VERDICT_PINNED : VERDICT_UNKNOWN_HEAP] +=
        (double)r->all.bytes[RSS_PARTLY_FREE];
    to[!f->knows_blocks                 ? VERDICT_UNKNOWN_HEAP
       : f->allocator == SOFTWARE_GLIBC ? VERDICT_FREE
                                        : VERDICT_MAPPINGS] += own;
    to[f->knows_blocks ? VERDICT_MAPPINGS : VERDICT_UNKNOWN_HEAP] +=
        (double)r->not_heap[TRACE_MEMORY_HEAP];
    to[f->knows_blocks || f->runtime ? VERDICT_MAPPINGS : VERDICT_UNKNOWN_HEAP] +=
        (double)r->not_heap[TRACE_MEMORY_ANONYMOUS];
    to[VERDICT_STACKS] = (double)r->not_heap[TRACE_MEMORY_STACK];
    to[VERDICT_FILES] = (double)r->not_heap[TRACE_MEMORY_FILE];
    to[VERDICT_SHARED] = (double)r->not_heap[TRACE_MEMORY_SHARED];
    to[VERDICT_RECORDING] = (double)r->not_heap[TRACE_MEMORY_RECORDING];
    to[VERDICT_OTHER] = (double)r->not_heap[TRACE_MEMORY_OTHER];
}

// Returns the level of an owner outside malloc.
static double level_of(const struct rss_history_moment *m, enum verdict_owner owner)
{
    static const enum trace_memory kinds[] = {[VERDICT_STACKS] = TRACE_MEMORY_STACK,
                                              [VERDICT_MAPPINGS] = TRACE_MEMORY_ANONYMOUS,
                                              [VERDICT_FILES] = TRACE_MEMORY_FILE,
                                              [VERDICT_SHARED] = TRACE_MEMORY_SHARED};
    return (double)(m->not_heap[kinds[owner]] +
                    (owner == VERDICT_MAPPINGS ? m->never_held_bytes : 0));
}

// If there are few page maps and most of the growth of RSS is due to the owner, uses the growth of
// RSS, which is known for more points in time.
static void use_rss_growth(struct growth *g, const struct growth *rss, const struct rss_history *h)
{
    double rss_grown = (double)h->moments[h->n - 1].rss_bytes - (double)h->moments[0].rss_bytes,
           share = g->grown_bytes / rss_grown;
    if (g->shape == GROWTH_UNKNOWN && rss_grown > 0 && share >= MOST_SHARE) {
        *g = *rss;
        g->grown_bytes *= fmin(1, share);
    }
}

// Finds the growth of the owners outside malloc, whose levels are known at each sample.
static void set_owner_growth(struct verdict_facts *f, const struct rss_history *h)
{
    struct growth_point points[RSS_MOMENTS];
    for (unsigned owner = VERDICT_STACKS; owner <= VERDICT_SHARED; owner++) {
        for (size_t i = 0; i < h->n; i++) {
            double level = level_of(&h->moments[i], owner);
            points[i] = (struct growth_point){(double)h->moments[i].time_ns, level, level};
        }
        growth_find(&f->of[owner], points, h->n);
        use_rss_growth(&f->of[owner], &f->rss, h);
    }
}

static void count_stacks(struct verdict_facts *f, const struct trace_pages *p)
{
    f->stacks = 1; // the stack of the main thread
    for (size_t i = 0; i < p->n_mappings; i++)
        f->stacks += p->mappings[i].kind == TRACE_MEMORY_STACK;
}

static uint64_t first_bytes_of(const struct rss_history *h, const struct trace_pages_name *name)
{
    for (size_t i = 0; i < h->n_first_names; i++) {
        if (h->first_names[i].kind == name->kind && strcmp(h->first_names[i].name, name->name) == 0)
            return h->first_names[i].rss_bytes;
    }
    return 0;
}

// Adds the names of the largest mappings that do not contain code.
static void set_names(struct verdict_facts *f, const struct rss_history *h)
{
    const struct trace_pages *p = &h->rss.pages;
    for (size_t i = 0; i < p->n_names && f->n_names < VERDICT_NAMES; i++) {
        struct verdict_name *to = &f->names[f->n_names++];
        snprintf(to->name, sizeof to->name, "%s", p->names[i].name);
        to->bytes = (double)p->names[i].rss_bytes;
        to->grown_bytes = to->bytes - (double)first_bytes_of(h, &p->names[i]);
        to->owner = p->names[i].kind == TRACE_MEMORY_FILE     ? VERDICT_FILES
                    : p->names[i].kind == TRACE_MEMORY_SHARED ? VERDICT_SHARED
                    : p->names[i].kind == TRACE_MEMORY_OTHER  ? VERDICT_OTHER
                                                              : VERDICT_MAPPINGS;
    }
}

static double last_rss_of(const struct verdict_facts *f, const struct file_stat *s)
{
    return s->n_samples ? (double)s->samples[s->n_samples - 1].rss_bytes : f->rss_bytes;
}

// Subtracts the memory that was released after the last page map, which can be a second old. A map
// that was read during a burst does not show which memory was released, so free memory is
// subtracted first.
static void subtract_returned(struct verdict_facts *f, const struct file_stat *s)
{
    static const enum verdict_owner first[] = {VERDICT_FREE,         VERDICT_LIVE,
                                               VERDICT_ROUNDING,     VERDICT_PINNED,
                                               VERDICT_UNKNOWN_HEAP, VERDICT_MAPPINGS};
    double returned = f->rss_bytes - last_rss_of(f, s);
    for (size_t i = 0; i < sizeof first / sizeof *first && returned > 0; i++) {
        double *of = &f->resident[first[i]], bytes = fmin(*of, returned);
        *of -= bytes;
        returned -= bytes;
        f->rss_bytes -= bytes;
    }
}

// The last page map may show the process while it frees its blocks. These blocks count as live.
static void restore_freed(struct verdict_facts *f)
{
    static const enum verdict_owner from[] = {VERDICT_FREE, VERDICT_PINNED};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        double missing = f->live_bytes - f->resident[VERDICT_LIVE],
               bytes = fmax(0, fmin(f->resident[from[i]], missing));
        f->resident[from[i]] -= bytes;
        f->resident[VERDICT_LIVE] += bytes;
    }
}

static void set_memory(struct verdict_facts *f, const struct file_stat *s)
{
    const struct rss_history *h = &s->history;
    const struct rss *r = &h->rss;
    f->knows_blocks = f->from_start || h->lists_before;
    f->rss_bytes = (double)r->pages.rss_bytes;
    f->knows_resident = last_rss_of(f, s) < OLD_MAP * f->rss_bytes;
    if (!f->knows_resident)
        f->rss_since_bytes = last_rss_of(f, s) - f->rss_bytes;
    f->swap_bytes = (double)r->pages.swap_bytes;
    for (size_t i = 0; i < h->n; i++)
        f->peak_rss_bytes = fmax(f->peak_rss_bytes, (double)h->moments[i].rss_bytes);
    f->top_free_bytes = (double)h->top_free_bytes;
    if (f->allocator == SOFTWARE_MIMALLOC && f->knows_blocks)
        f->shared_free_bytes = (double)h->region_free_bytes[RSS_HISTORY_MIMALLOC];
    if (f->allocator == SOFTWARE_TCMALLOC && f->knows_blocks)
        f->shared_free_bytes = (double)h->region_free_bytes[RSS_HISTORY_TCMALLOC];
    set_resident(f, r);
    if (isnan(f->freed_at_exit_ns))
        subtract_returned(f, s);
    else
        restore_freed(f);
    set_arenas(f, r);
    set_pinning(f, h);
    count_stacks(f, &r->pages);
    set_owner_growth(f, h);
    set_names(f, h);
}

// Returns the time of a sample since the start of the process.
static double sample_ns(const struct file_stat *s, size_t i)
{
    uint64_t stamp = s->samples[i].stamp, start = s->usage.start_stamp;
    return stamp > start ? (double)(stamp - start) * s->usage.ns_per_stamp : 0;
}

// Returns true if the level falls by half of the highest level or more.
static bool falls(const struct timeline *t, size_t bins, double highest)
{
    double peak = 0, fall = 0;
    for (size_t i = 0; i < bins; i++) {
        peak = fmax(peak, (double)t->bins[i].end_bytes);
        fall = fmax(fall, peak - (double)t->bins[i].end_bytes);
    }
    return fall >= (1 - LEFT_SHARE) * highest;
}

// Returns the number of bins before a process begins to free its blocks at exit, or t->n if it does
// not, or if it also freed as many blocks before. `all` is the number of bins until the exit,
// including idle time.
static size_t bins_before_exit(const struct timeline *t, double all)
{
    size_t from = (size_t)((1 - EXIT_SHARE) * all) + 1, n = t->n;
    double highest = 0;
    for (size_t i = from; i < t->n; i++)
        highest = fmax(highest, (double)t->bins[i].end_bytes);
    if (from >= t->n || (double)t->bins[t->n - 1].end_bytes >= LEFT_SHARE * highest)
        return t->n;
    while ((double)t->bins[n - 1].end_bytes < FALLEN_SHARE * highest)
        n--;
    while (n > from && t->bins[n - 2].end_bytes >= t->bins[n - 1].end_bytes)
        n--;
    while (t->bins[n].end_bytes == t->bins[n - 1].end_bytes)
        n++;
    return falls(t, n, highest) ? t->n : n;
}

// Sets the figures of the live blocks to those before the exit. Returns the number of bins of
// by_time before the exit.
static size_t find_exit(struct verdict_facts *f, const struct usage *u, double span_ns,
                        double until_ns)
{
    const struct timeline *t = &u->by_time;
    double bins = (double)t->n;
    size_t n = f->exited ? bins_before_exit(t, fmax(bins, bins * until_ns / span_ns)) : t->n;
    if (n < t->n) {
        f->freed_at_exit_ns = (double)n / bins * span_ns;
        f->live_bytes = (double)t->bins[n - 1].end_bytes;
        f->live_blocks = (double)t->bins[n - 1].end_blocks;
    }
    return n;
}

static size_t event_bins_until(const struct timeline *t, uint64_t end_event)
{
    size_t n = t->n > 0;
    while (n < t->n && t->bins[n].end_event <= end_event)
        n++;
    return n;
}

// Sets the growth of a process without events. Its live bytes do not change.
static void set_idle(struct verdict_facts *f, const struct file_stat *s)
{
    struct growth_point *points = calloc(s->n_samples + 1, sizeof *points);
    double level = (double)s->usage.live.bytes;
    for (size_t i = 0; points && i < s->n_samples; i++)
        points[i] = (struct growth_point){sample_ns(s, i), level, level};
    if (points)
        growth_find(&f->live, points, s->n_samples);
    free(points);
    if (f->live.span_ns > 0)
        f->span_ns = f->live.span_ns;
}

static void set_recent(struct verdict_facts *f, const struct usage *u, double until_ns)
{
    const struct timeline *t = &u->by_time;
    double from_ns = until_ns - RECENT_NS;
    f->recent_live_bytes = (double)u->live.bytes;
    for (size_t i = t->n; i-- > 0;) {
        double end_ns = (double)((uint64_t)(i + 1) << t->width_shift) * u->ns_per_stamp;
        if (end_ns < from_ns)
            break;
        f->recent_live_bytes = fmax(f->recent_live_bytes, (double)t->bins[i].counts.max_bytes);
    }
}

// Growth of a call site.
struct site_growth {
    uint32_t site;
    double bytes, freed_share, rank;
};

// Inserts a site into the sites with the highest ranks. Returns their new number.
static size_t insert_growth(struct site_growth top[SITES_JSON_TOP], size_t n,
                            const struct site_growth *g)
{
    size_t at = n;
    while (at > 0 && top[at - 1].rank < g->rank)
        at--;
    if (at == SITES_JSON_TOP)
        return n;
    n += n < SITES_JSON_TOP;
    memmove(top + at + 1, top + at, (n - at - 1) * sizeof *top);
    top[at] = *g;
    return n;
}

// Returns the sum of the shrinkage of all call sites between two numbers of events.
static double shrunk_bytes(const struct by_site *b, uint64_t from, uint64_t to)
{
    double bytes = 0;
    for (size_t i = 0; i < b->n_sites; i++)
        bytes += fmax(0, -by_site_growth(b, i, from, to));
    return bytes;
}

// Sets the call paths that grow between two numbers of events, and the bytes that other call sites
// lose. If blocks move from one call site to another, as when a program replaces the elements of a
// table, omits call sites that no longer grow in the last third. If the process frees its blocks at
// exit, its total of freed blocks does not describe the time before the exit.
static void set_growing(struct verdict_facts *f, const struct file_stat *s, uint64_t from,
                        uint64_t to)
{
    const struct by_site *b = &s->by_site;
    struct site_list sites = {.n = 0};
    struct site_growth top[SITES_JSON_TOP];
    size_t n = 0;
    from -= from < b->first_event ? from : b->first_event;
    to -= to < b->first_event ? to : b->first_event;
    f->shrunk_bytes = shrunk_bytes(b, from, to);
    for (uint32_t i = 0; i < b->n_sites; i++) {
        const struct by_site_totals *t = &b->sites[i];
        struct site_growth g = {.site = i, .bytes = by_site_growth(b, i, from, to)};
        g.freed_share = t->calls && isnan(f->freed_at_exit_ns)
                            ? (double)t->freed_blocks / (double)t->calls
                            : NAN;
        g.rank = by_site_growth_rank(g.bytes, g.freed_share > 0);
        if (f->shrunk_bytes > 0 && g.bytes > 0 &&
            by_site_growth(b, i, to - (to - from) / 3, to) < ENDED_SHARE * g.bytes)
            f->shrunk_bytes = fmax(0, f->shrunk_bytes - g.bytes);
        else if (g.bytes > 0)
            n = insert_growth(top, n, &g);
    }
    for (size_t i = 0; i < n; i++) {
        struct verdict_site site = {.bytes = top[i].bytes, .freed_share = top[i].freed_share};
        stack_path(s->symbols, top[i].site, site.path);
        add_site(&sites, &site);
    }
    choose_sites(&f->growing, &sites, true);
}

// Returns the blocks that became live between two numbers of events, as a share of these events.
static double kept_share(const struct timeline *t, uint64_t from, uint64_t to)
{
    double first_blocks = 0, last_blocks = 0;
    for (size_t i = 0; i < t->n && t->bins[i].end_event <= to; i++) {
        last_blocks = (double)t->bins[i].end_blocks;
        if (t->bins[i].end_event <= from)
            first_blocks = last_blocks;
    }
    return to > from ? (last_blocks - first_blocks) / (double)(to - from) : 1;
}

// Finds the growth of the live bytes, over events and over time. If the load varies, a leak is
// linear over events, but not over time. If most events allocate blocks that are kept, however,
// events do not show the load: a cache without replacement grows by its entries. If a program
// allocates and then sleeps, the growth has ended over time, but not over events.
static void set_live_growth(struct verdict_facts *f, const struct file_stat *s)
{
    const struct usage *u = &s->usage;
    const struct timeline *time = &u->by_time;
    struct growth events = {.shape = GROWTH_UNKNOWN};
    uint64_t from, to, events_from;
    double span_ns = (double)u->last_stamp * u->ns_per_stamp, until_ns = 0;
    if (!(span_ns > 0) || !time->n) {
        set_idle(f, s);
        return;
    }
    if (s->n_samples)
        until_ns = sample_ns(s, s->n_samples - 1);
    set_recent(f, u, fmax(span_ns, until_ns));
    size_t bins = find_exit(f, u, span_ns, until_ns);
    if (bins < time->n)
        span_ns = until_ns = f->freed_at_exit_ns;
    from = growth_of_timeline(&f->live, time, bins, span_ns, until_ns);
    to = bins < time->n ? time->bins[bins - 1].end_event : u->events;
    f->span_ns = f->live.span_ns;
    events_from = growth_of_timeline(&events, &u->by_event,
                                     event_bins_until(&u->by_event, time->bins[bins - 1].end_event),
                                     f->live.span_ns, 0);
    enum growth_shape shape = f->live.shape;
    bool may_be_cache =
        (f->growing.n && f->growing.items[0].freed_share > FREED_SHARE) || growth_is_full(&f->live);
    bool slows = events.shape == GROWTH_LINEAR && shape == GROWTH_SATURATING && !may_be_cache;
    f->load_unknown = slows && kept_share(&u->by_event, events_from, to) >= KEPT_SHARE;
    f->live_over_calls =
        (events.shape == GROWTH_LINEAR && shape == GROWTH_IRREGULAR) || (slows && !f->load_unknown);
    if (f->live_over_calls ||
        (events.shape == GROWTH_SATURATING &&
         (shape == GROWTH_IRREGULAR || (shape == GROWTH_LINEAR && may_be_cache)))) {
        f->live = events;
        from = events_from;
    }
    if (s->symbols)
        set_growing(f, s, from, to);
}

// The last period may be unfinished.
static void set_period_growth(struct verdict_facts *f, const struct file_stat *s)
{
    const struct file_stat_periods *p = &s->periods;
    struct growth_point points[BY_SITE_BINS];
    for (size_t i = 0; i < p->n; i++)
        points[i] = (struct growth_point){(double)p->period_ns * (double)(i + 1),
                                          (double)p->live_bytes[i], (double)p->live_bytes[i]};
    f->span_ns = fmin((double)p->period_ns * (double)p->n, (double)s->duration_ns);
    if (p->n)
        growth_find(&f->live, points, p->n);
}

static void set_rss_growth(struct verdict_facts *f, const struct file_stat *s)
{
    struct growth_point *points = calloc(s->n_samples + 1, sizeof *points);
    size_t n = 0;
    for (size_t i = 0; points && i < s->n_samples; i++) {
        double bytes = (double)s->samples[i].rss_bytes, ns = sample_ns(s, i);
        if (!(ns > f->freed_at_exit_ns))
            points[n++] = (struct growth_point){ns, bytes, bytes};
        f->peak_rss_bytes = fmax(f->peak_rss_bytes, bytes);
    }
    if (points)
        growth_find(&f->rss, points, n);
    free(points);
}

static void set_process(struct verdict_facts *f, const struct file_stat *s,
                        const struct file_stat_process *p)
{
    uint64_t status = p->facts.exit_status;
    // Traces of older versions do not contain `attached`.
    bool attached = p->facts.attached || (p->summary.unmatched_frees && !p->facts.forked_from);
    bool whole = !attached && !p->facts.recorded_to && !p->summary.recorded_to && !s->cut.text[0];
    f->runtime = software_runtime_of(p->exe);
    f->allocator = software_allocator_of(p->facts.allocator, &f->allocator_name);
    // Only the child of the recorder has an exit status.
    f->exited = whole && p->facts.ended && (!p->facts.has_exit_status || WIFEXITED(status));
    f->from_start = whole && s->kind == FILE_STAT_TRACE;
    if (f->from_start)
        f->all_threads = (double)p->summary.threads;
    f->live_bytes = (double)p->summary.live_at_end_bytes;
    f->live_blocks = (double)p->summary.live_at_end_blocks;
    if (attached)
        f->freed_before_blocks = (double)p->summary.unmatched_frees;
    f->peak_live_bytes = (double)p->summary.peak_live_bytes;
}

void verdict_facts_of_file(struct verdict_facts *f, const struct file_stat *s)
{
    const struct file_stat_process *p = process_of(s);
    verdict_facts_init(f);
    if (!p)
        return;
    set_process(f, s, p);
    const struct file_stat_process *other = verdict_other_growing(s, NULL);
    if (other)
        snprintf(f->growing_process, sizeof f->growing_process, "process %u (%s)", other->pid,
                 other->exe ? other->exe : "");
    if (s->symbols)
        set_sites(&f->growing, s, SITES_JSON_by_growth);
    if (s->kind == FILE_STAT_AGGREGATE)
        set_period_growth(f, s);
    else if (s->sums)
        set_live_growth(f, s);
    if (s->symbols)
        set_sites(&f->holding, s,
                  isnan(f->freed_at_exit_ns) ? SITES_JSON_at_end : SITES_JSON_at_peak);
    if (s->sums)
        set_rss_growth(f, s);
    if (s->history.n)
        set_memory(f, s);
}
