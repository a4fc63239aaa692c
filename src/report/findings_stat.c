#include "report/findings_stat.h"

#include "analysis/size_classes.h"
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNEXPLAINED_SHARE 0.1 // share of the bytes in use in malloc

static void set_frame(struct findings_stat_site *s, const struct symbol *f)
{
    enum { NAME_BYTES = 80 };
    char name[SHORTEN_BYTES];
    const char *file = basename(f->file), *module = basename(f->module);
    int n = snprintf(s->frame, sizeof s->frame, "%s",
                     f->function[0] ? shorten_name(f->function, NAME_BYTES, name)
                                    : "an unknown function");
    if (file[0])
        snprintf(s->frame + n, sizeof s->frame - (size_t)n, " (%.60s:%d)", file, f->line);
    else if (module[0])
        snprintf(s->frame + n, sizeof s->frame - (size_t)n, " (%.60s)", module);
    snprintf(s->function, sizeof s->function, "%s",
             shorten_name(f->function, sizeof s->function - 1, name));
    s->has_frame = true;
}

// Counts the process if `text` is not NULL.
static void count_process(struct findings_stat_process *p, uint64_t pid, const char *exe,
                          const char *text)
{
    if (!text)
        return;
    if (p->n++ == 0)
        *p = (struct findings_stat_process){1, pid, exe, text};
}

// Finds the unexplained bytes of the process. In glibc's malloc, a block occupies up to 16 bytes
// more than its requested size.
static void find_unexplained(struct findings_stat *f, uint64_t pid, const char *exe,
                             double in_use_bytes, double live_bytes, double live_blocks)
{
    enum { EXTRA_BYTES = 16 };
    double missing = in_use_bytes - live_bytes - EXTRA_BYTES * live_blocks;
    if (!(missing > UNEXPLAINED_SHARE * in_use_bytes) || !(missing > f->unexplained_bytes))
        return;
    f->unexplained = (struct findings_stat_process){1, pid, exe, NULL};
    f->unexplained_bytes = missing;
    f->in_use_bytes = in_use_bytes;
}

static void set_site(struct findings_stat_site *to, const struct file_stat *s, uint32_t number)
{
    const struct by_site *b = &s->by_site;
    const struct site_use *u = number < b->uses.n_sites ? &b->uses.sites[number] : NULL;
    struct symbol shown;
    to->has_frame = false;
    to->peak_bytes = (double)b->sites[number].peak_bytes;
#define HT_X(key, member) to->key = u ? (double)u->member : NAN;
    SITES_JSON_USES(HT_X)
#undef HT_X
    if (stack_site(s->symbols, &s->sites, number, &shown))
        set_frame(to, &shown);
}

static void set_sites(struct findings_stat *f, const struct file_stat *s)
{
    uint32_t top[SITES_JSON_TOP];
    for (enum sites_json_list list = 0; s->symbols && list < SITES_JSON_LIST_COUNT; list++) {
        size_t n = sites_json_list(&s->by_site, list, top);
        if (n)
            set_site(&f->first[list], s, top[0]);
    }
}

static void set_sizes(struct findings_stat *f, const struct file_stat *s)
{
    struct usage_count counts[USAGE_CLASSES];
    size_classes_two(s->sums, counts);
    f->n_sizes = USAGE_CLASSES;
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        f->sizes[i] =
            (struct findings_stat_size){i == USAGE_CLASSES - 1 ? NAN : (double)(8ull << i),
                                        (double)counts[i].blocks, (double)counts[i].bytes};
    }
}

static void set_usage(struct findings_stat *f, const struct file_stat *s)
{
    const struct timeline *t = &s->usage.by_event;
    set_sizes(f, s);
    if (t->n)
        f->last_event = (double)t->bins[t->n - 1].end_event;
    for (unsigned span = 0; span < USAGE_SPANS; span++)
        f->freed_blocks += (double)usage_freed_after(s->sums, span);
    for (unsigned i = 0; i < FINDINGS_STAT_GROWTHS; i++)
        f->growths[i] = (double)s->sums->resizes.growths[i];
}

static void set_process(struct findings_stat *f, const struct file_stat_process *p)
{
    const struct trace_process *facts = &p->facts;
    count_process(&f->turned_off, p->pid, p->exe, facts->off_reason);
    count_process(&f->own_malloc, p->pid, p->exe, facts->bypassed_by);
    count_process(&f->deepbound, p->pid, p->exe, facts->deepbound_bytes ? facts->deepbound : NULL);
    if (facts->malloc_system_bytes)
        find_unexplained(f, p->pid, p->exe, (double)facts->malloc_in_use_bytes,
                         (double)p->summary.live_at_end_bytes,
                         (double)p->summary.live_at_end_blocks);
}

static void set_coverage(struct findings_stat *f, const struct coverage *c)
{
    if (!c->known)
        return;
    f->covered_bytes = (double)c->all.allocated;
    for (size_t i = 0; i < c->n_objects && i < SITES_JSON_TOP; i++)
        f->short_stack_bytes += (double)c->objects[i].bytes.allocated;
    f->short_stack_object = c->n_objects ? c->objects[0].path : NULL;
    for (unsigned i = 0; i < COVERAGE_RUNTIMES; i++) {
        f->interpreted_bytes[i] = (double)c->interpreted[i].allocated;
        f->named_bytes[i] = (double)c->interpreted[i].named;
    }
}

static void set_unknown(struct findings_stat *f)
{
    *f = (struct findings_stat){.last_event = 0, .covered_bytes = NAN};
    for (unsigned i = 0; i < FINDINGS_STAT_GROWTHS; i++)
        f->growths[i] = NAN;
}

void findings_stat_of_file(struct findings_stat *f, const struct file_stat *s)
{
    set_unknown(f);
    stat_figures_of_file(&f->figures, s);
    f->partial = s->partial;
    f->cut_off = s->cut.text[0];
    f->n_processes = s->n_processes;
    for (size_t i = 0; s->kind != FILE_STAT_WORKLOAD && i < s->n_processes; i++)
        set_process(f, &s->processes[i]);
    if (s->kind != FILE_STAT_WORKLOAD && s->unrecorded.n) {
        const struct trace_missed *m = &s->unrecorded.items[0];
        f->unrecorded = (struct findings_stat_process){s->unrecorded.n, m->pid, m->name, m->why};
    }
    if (s->kind != FILE_STAT_WORKLOAD)
        f->balance = s->unrecorded.balance;
    if (s->sums)
        set_usage(f, s);
    set_sites(f, s);
    set_coverage(f, &s->coverage);
}

static double number_of(const struct json_value *object, const char *key)
{
    return json_value_number(json_value_get(object, key));
}

static double sum_of(const struct json_value *items, const char *key)
{
    double sum = 0;
    for (size_t i = 0; i < json_value_length(items); i++)
        sum += number_of(json_value_at(items, i), key);
    return sum;
}

static const char *text_of(const struct json_value *object, const char *key)
{
    const char *text = json_value_string(json_value_get(object, key));
    return text ? text : "";
}

static struct symbol read_function(const struct json_value *frame)
{
    return (struct symbol){
        .function = text_of(frame, "function"),
        .file = text_of(frame, "file"),
        .line = (int)json_value_u64(json_value_get(frame, "line")),
        .module = text_of(frame, "module"),
        .library = json_value_bool(json_value_get(frame, "library")),
        .wrapper = json_value_bool(json_value_get(frame, "wrapper")),
    };
}

static void read_site(struct findings_stat_site *to, const struct json_value *site)
{
    const struct json_value *frames = json_value_get(site, "frames");
    struct symbol functions[SITES_JSON_FUNCTIONS];
    size_t n = 0;
    to->peak_bytes = number_of(site, "live_at_peak_bytes");
#define HT_X(key, member) to->key = number_of(site, #key);
    SITES_JSON_USES(HT_X)
#undef HT_X
    for (; n < json_value_length(frames) && n < SITES_JSON_FUNCTIONS; n++)
        functions[n] = read_function(json_value_at(frames, n));
    if (n)
        set_frame(to, &functions[stack_shown(functions, n)]);
}

static void read_sites(struct findings_stat *f, const struct json_value *sites)
{
    for (enum sites_json_list list = 0; list < SITES_JSON_LIST_COUNT; list++) {
        const struct json_value *items = json_value_get(sites, sites_json_list_keys[list]);
        size_t n = json_value_length(items);
        if (n)
            read_site(&f->first[list], json_value_at(items, 0));
    }
}

static void read_sizes(struct findings_stat *f, const struct json_value *stat)
{
    const struct json_value *sizes = json_value_get(stat, "sizes");
    for (; f->n_sizes < json_value_length(sizes) && f->n_sizes < USAGE_CLASSES; f->n_sizes++) {
        const struct json_value *row = json_value_at(sizes, f->n_sizes);
        f->sizes[f->n_sizes] = (struct findings_stat_size){
            number_of(row, "max_bytes"), number_of(row, "count"), number_of(row, "bytes")};
    }
}

static void read_usage(struct findings_stat *f, const struct json_value *stat)
{
    const struct json_value *ends = json_value_find(stat, "timeline.by_event.end_event");
    const struct json_value *factors = json_value_find(stat, "realloc.growth_factors");
    size_t n = json_value_length(ends);
    read_sizes(f, stat);
    if (n)
        f->last_event = json_value_number(json_value_at(ends, n - 1));
    f->freed_blocks = sum_of(json_value_find(stat, "lifetimes.by_events"), "count");
    for (size_t i = 0; i < FINDINGS_STAT_GROWTHS; i++)
        f->growths[i] = number_of(json_value_at(factors, i), "count");
}

// Reads the counts of missing data. JSON of an older version may lack some keys, whose values are
// then 0.
static void read_balance(struct trace_balance *to, const struct json_value *balance)
{
#define HT_X(name, tag, meaning) to->name = json_value_u64(json_value_get(balance, #name));
    TRACE_BALANCE(HT_X)
#undef HT_X
}

static void read_process(struct findings_stat *f, const struct json_value *p)
{
    uint64_t pid = json_value_u64(json_value_get(p, "pid"));
    const char *exe = json_value_string(json_value_get(p, "exe"));
    const struct json_value *deepbound = json_value_get(p, "deepbound");
    count_process(&f->turned_off, pid, exe, json_value_string(json_value_get(p, "off_reason")));
    count_process(&f->own_malloc, pid, exe, json_value_string(json_value_get(p, "bypassed_by")));
    count_process(&f->deepbound, pid, exe, json_value_string(json_value_at(deepbound, 0)));
    find_unexplained(f, pid, exe, number_of(p, "malloc_in_use_bytes"),
                     number_of(p, "live_at_end_bytes"), number_of(p, "live_at_end_blocks"));
}

void findings_stat_of_json(struct findings_stat *f, const struct json_value *stat)
{
    const struct json_value *processes = json_value_get(stat, "processes");
    const struct json_value *missed = json_value_find(stat, "unrecorded.list");
    const struct json_value *ends = json_value_find(stat, "stack_coverage.ends");
    set_unknown(f);
    stat_figures_of_json(&f->figures, stat);
    f->partial = json_value_bool(json_value_get(stat, "partial"));
    f->cut_off = json_value_bool(json_value_get(stat, "cut_off"));
    f->n_processes = json_value_length(processes);
    for (size_t i = 0; i < f->n_processes; i++)
        read_process(f, json_value_at(processes, i));
    if (json_value_length(missed)) {
        const struct json_value *first = json_value_at(missed, 0);
        f->unrecorded = (struct findings_stat_process){
            json_value_length(missed), json_value_u64(json_value_get(first, "pid")),
            json_value_string(json_value_get(first, "name")),
            json_value_string(json_value_get(first, "reason"))};
    }
    read_balance(&f->balance, json_value_get(stat, "balance"));
    read_usage(f, stat);
    read_sites(f, json_value_get(stat, "call_sites"));
    f->covered_bytes = json_value_number_at(stat, "stack_coverage.all.allocated_bytes");
    f->short_stack_bytes = sum_of(ends, "allocated_bytes");
    f->short_stack_object = json_value_string(json_value_get(json_value_at(ends, 0), "object"));
    for (unsigned i = 0; i < COVERAGE_RUNTIMES; i++) {
        const struct json_value *of = json_value_get(
            json_value_find(stat, "stack_coverage.interpreted"), coverage_runtime_names[i]);
        f->interpreted_bytes[i] = number_of(of, "allocated_bytes");
        f->named_bytes[i] = number_of(of, "named_bytes");
    }
}
