#include "report/json/stat_json.h"

#include "base/clock.h"
#include "report/json/sites_json.h"
#include "trace/fields.h"

#include <string.h>
#include <sys/wait.h>

// Selection of the items to write: either all n items, or j->max_items evenly spaced items,
// including the first and the last item.
struct selection {
    size_t n, kept, at, taken; // `at` is the number of the next item
};

static struct selection select_items(const struct json *j, size_t n)
{
    return (struct selection){n, j->max_items && n > j->max_items ? j->max_items : n, 0, 0};
}

static bool is_selected(struct selection *s)
{
    size_t next = s->kept == s->n ? s->taken : s->taken * (s->n - 1) / (s->kept - 1);
    bool selected = s->at++ == next;
    s->taken += selected;
    return selected;
}

// Writes an array of strings. NUL bytes separate the strings in `texts`.
static void put_texts(struct json *j, const char *key, const char *texts, uint32_t bytes)
{
    size_t n = 0;
    for (uint32_t at = 0; at < bytes; at += (uint32_t)strlen(texts + at) + 1)
        n++;
    struct selection s = select_items(j, n);
    json_put_array(j, key);
    for (uint32_t at = 0; at < bytes; at += (uint32_t)strlen(texts + at) + 1) {
        if (is_selected(&s))
            json_string(j, texts + at);
    }
    json_end_array(j);
}

static void put_session(struct json *j, const struct trace_session *s)
{
    json_put_object(j, "recorded");
    json_put_string(j, "heaptape", s->heaptape);
    put_texts(j, "argv", s->argv, s->argv_bytes);
    json_put_string(j, "host", s->host);
    json_put_string(j, "kernel", s->kernel);
    json_put_string(j, "cpu", s->cpu);
    json_put_u64(j, "cpus", s->cpus);
    json_put_u64(j, "memory_bytes", s->memory_bytes);
    json_put_string(j, "clock", clock_kind_name(s->clock));
    json_put_u64(j, "clock_hz", s->clock_hz);
    json_put_u64(j, "timestamp_ticks", 1ull << s->stamp_shift);
    json_put_u64(j, "realtime_ns", s->realtime_ns);
    if (s->dumped)
        json_put_string(j, "dumped_because", s->dumped);
    json_end_object(j);
}

static void put_unrecorded(struct json *j, const struct trace_unrecorded *u,
                           const union stat_figures *f)
{
    static const char *const names[] = {[TRACE_MISSED_UNKNOWN] = "unknown",
                                        [TRACE_MISSED_KERNEL] = "kernel",
                                        [TRACE_MISSED_GAPS] = "kernel_with_gaps",
                                        [TRACE_MISSED_PROC] = "proc"};
    struct selection s = select_items(j, u->n);
    json_put_object(j, "unrecorded");
    json_put_string(j, "found_by", names[u->by < sizeof names / sizeof *names ? u->by : 0]);
    stat_figures_put(j, f, STAT_FIGURES_UNRECORDED);
    json_put_array(j, "list");
    for (size_t i = 0; i < u->n; i++) {
        const struct trace_missed *m = &u->items[i];
        if (!is_selected(&s))
            continue;
        json_begin_object(j);
        json_put_u64(j, "pid", m->pid);
        json_put_string(j, "name", m->name);
        json_put_string(j, "reason", m->why);
        json_put_u64(j, "forks", m->forks);
        if (m->calls != UINT64_MAX)
            json_put_u64(j, "missed_calls", m->calls);
        if (m->ns != UINT64_MAX)
            json_put_u64(j, "ran_ns", m->ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_balance(struct json *j, const struct trace_balance *b)
{
    json_put_object(j, "balance");
#define HT_X(name, tag, meaning) json_put_u64(j, #name, b->name);
    TRACE_BALANCE(HT_X)
#undef HT_X
    json_end_object(j);
}

static void put_unexplained(struct json *j, const struct file_stat *s)
{
    const struct unexplained *u = &s->unexplained;
    struct selection selected = select_items(j, u->n);
    json_put_array(j, "unexplained_memory");
    for (size_t i = 0; i < u->n; i++) {
        if (!is_selected(&selected))
            continue;
        json_begin_object(j);
        json_put_u64(j, "pid", u->items[i].pid);
        json_put_u64(j, "bytes", u->items[i].bytes);
        json_put_u64(j, "rss_bytes", u->items[i].rss_bytes);
        json_put_bool(j, "growth", u->items[i].is_growth);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_allocator(struct json *j, const struct trace_process *p)
{
    json_put_object(j, "allocator");
    json_put_string(j, "library", p->allocator);
    json_put_string(j, "build_id", p->allocator_build_id);
    json_end_object(j);
}

static void put_exit(struct json *j, uint64_t status)
{
    if (WIFSIGNALED(status))
        json_put_u64(j, "signal", (uint64_t)WTERMSIG(status));
    else
        json_put_u64(j, "exit_status", (uint64_t)WEXITSTATUS(status));
}

static void put_names(struct json *j, const struct trace_process *p)
{
    const uint8_t *at = p->thread_names, *end = at + p->thread_names_bytes;
    uint64_t tid;
    const char *name;
    size_t bytes, n = 0;
    while (at < end && fields_next_name(&at, end, &tid, &name, &bytes))
        n++;
    struct selection s = select_items(j, n);
    at = p->thread_names;
    json_put_array(j, "thread_names");
    while (at < end && fields_next_name(&at, end, &tid, &name, &bytes)) {
        if (!is_selected(&s))
            continue;
        json_begin_object(j);
        json_put_u64(j, "tid", tid);
        json_key(j, "name");
        json_string_n(j, name, bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_facts(struct json *j, const struct trace_process *p)
{
    json_put_u64(j, "ppid", p->ppid);
    if (p->forked_from)
        json_put_u64(j, "forked_from", p->forked_from);
    put_allocator(j, p);
    if (p->has_exit_status)
        put_exit(j, p->exit_status);
    json_put_u64(j, "backpressure_waits", p->waits);
    json_put_u64(j, "backpressure_ns", p->wait_ns);
    if (p->bypassed_by)
        json_put_string(j, "bypassed_by", p->bypassed_by);
    if (p->deepbound_bytes)
        put_texts(j, "deepbound", p->deepbound, p->deepbound_bytes);
    if (p->malloc_system_bytes) {
        json_put_u64(j, "malloc_in_use_bytes", p->malloc_in_use_bytes);
        json_put_u64(j, "malloc_system_bytes", p->malloc_system_bytes);
    }
    if (p->off_reason)
        json_put_string(j, "off_reason", p->off_reason);
    if (p->thread_names_bytes)
        put_names(j, p);
}

static void put_by_kind(struct json *j, const struct workload_summary *s)
{
    json_put_object(j, "by_kind");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (s->by_kind[kind] && event_infos[kind].name)
            json_put_u64(j, event_infos[kind].name, s->by_kind[kind]);
    }
    json_end_object(j);
}

static void put_live(struct json *j, const union stat_figures *f)
{
    stat_figures_put(j, f, STAT_FIGURES_LIVE);
    stat_figures_put(j, f, STAT_FIGURES_UNMATCHED);
    stat_figures_put(j, f, STAT_FIGURES_START_BLOCKS);
    stat_figures_put(j, f, STAT_FIGURES_START_BYTES);
}

static void put_process(struct json *j, const struct file_stat_process *p, bool has_facts)
{
    union stat_figures f;
    stat_figures_of(&f, &p->summary, NULL);
    json_begin_object(j);
    json_put_u64(j, "pid", p->pid);
    put_texts(j, "argv", p->argv, p->argv_bytes);
    json_put_string(j, "exe", p->exe);
    stat_figures_put(j, &f, STAT_FIGURES_THREADS);
    stat_figures_put(j, &f, STAT_FIGURES_EVENTS);
    stat_figures_put(j, &f, STAT_FIGURES_LOST);
    put_live(j, &f);
    if (p->summary.early_max_ns) {
        json_put_u64(j, "early_events", p->summary.early_events);
        json_put_u64(j, "early_max_ns", p->summary.early_max_ns);
        json_put_u64(j, "early_usual_ns", p->summary.early_usual_ns);
    }
    if (has_facts)
        put_facts(j, &p->facts);
    json_end_object(j);
}

static void put_processes(struct json *j, const struct file_stat *s)
{
    struct selection selected = select_items(j, s->n_processes);
    json_put_array(j, "processes");
    for (size_t i = 0; i < s->n_processes; i++) {
        if (is_selected(&selected))
            put_process(j, &s->processes[i], s->kind != FILE_STAT_WORKLOAD);
    }
    json_end_array(j);
}

static void put_growth(struct json *j, const struct file_stat *s)
{
    json_put_object(j, "growth");
    json_put_u64(j, "pid", s->n_processes ? s->processes[s->of_usage].pid : 0);
    json_put_u64(j, "period_ns", s->periods.period_ns);
    json_put_array(j, "live_bytes");
    for (size_t i = 0; i < s->periods.n; i++)
        json_u64(j, s->periods.live_bytes[i]);
    json_end_array(j);
    json_end_object(j);
}

void stat_json(struct json *j, const struct file_stat *s, const union stat_figures *f,
               const struct findings *found)
{
    bool is_aggregate = s->kind == FILE_STAT_AGGREGATE;
    json_begin_document(j);
    json_put_string(j, "kind", file_stat_kind_name(s));
    stat_figures_put(j, f, STAT_FIGURES_EVENTS);
    put_by_kind(j, &s->total);
    stat_figures_put(j, f, STAT_FIGURES_THREADS);
    put_processes(j, s);
    if (is_aggregate)
        stat_figures_put(j, f, STAT_FIGURES_OTHERS);
    stat_figures_put(j, f, STAT_FIGURES_TIME);
    put_live(j, f);
    json_put_object(j, "order");
    stat_figures_put(j, f, STAT_FIGURES_ORDER);
    json_end_object(j);
    stat_figures_put(j, f, STAT_FIGURES_DEPENDENCIES);
    stat_figures_put(j, f, STAT_FIGURES_LOST);
    json_put_bool(j, "cut_off", s->cut.text[0]);
    json_put_bool(j, "partial", s->partial);
    json_put_bool(j, "summary_only", s->summary_only);
    stat_figures_put(j, f, STAT_FIGURES_FILE);
    if (is_aggregate)
        put_growth(j, s);
    if (s->kind != FILE_STAT_WORKLOAD) {
        put_session(j, &s->session);
        put_unrecorded(j, &s->unrecorded, f);
        put_balance(j, &s->unrecorded.balance);
    }
    if (s->sums) {
        stat_figures_put(j, f, STAT_FIGURES_BIG);
        stat_json_usage(j, s, f);
        if (s->kind == FILE_STAT_TRACE)
            put_unexplained(j, s);
    }
    if ((is_aggregate || s->sums) && s->symbols)
        sites_json_top(j, &(struct sites_json){&s->by_site, s->symbols}, f);
    if (is_aggregate || s->sums)
        sites_json_coverage(j, &s->coverage);
    if (found)
        findings_json(j, found);
    json_end_object(j);
}

void stat_json_sites(struct json *j, const struct file_stat *s, const uint32_t *order, size_t n)
{
    struct sites_json named = {&s->by_site, s->symbols};
    json_begin_document(j);
    json_put_bool(j, "cut_off", s->cut.text[0]);
    json_put_u64(j, "peak_live_bytes", s->by_site.peak_bytes);
    if (s->stack_sample_bytes)
        json_put_u64(j, "stack_sample_bytes", s->stack_sample_bytes);
    sites_json_span(j, &s->by_site.span);
    json_put_array(j, "sites");
    for (size_t i = 0; i < n; i++)
        sites_json_site(j, &named, order[i], false);
    json_end_array(j);
    sites_json_wrappers(j, &named);
    sites_json_coverage(j, &s->coverage);
    json_end_object(j);
}
