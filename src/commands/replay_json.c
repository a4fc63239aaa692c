#include "commands/replay_print.h"

#include <math.h>
#include <string.h>

static void put_text(struct json *j, const char *key, const char *text)
{
    json_put_string(j, key, text[0] ? text : NULL);
}

static void put_known(struct json *j, const char *key, uint64_t n)
{
    if (n)
        json_put_u64(j, key, n);
    else
        json_put_string(j, key, NULL);
}

void replay_print_machine(struct json *j, const struct machine *m)
{
    json_key(j, "machine");
    json_begin_object(j);
    put_text(j, "architecture", m->architecture);
    put_text(j, "cpu_model", m->cpu_model);
    put_known(j, "cores", m->cores);
    put_known(j, "memory_bytes", m->memory_bytes);
    put_known(j, "page_bytes", m->page_bytes);
    put_text(j, "kernel", m->kernel);
    put_text(j, "cpu_governor", m->governor);
    put_text(j, "transparent_hugepages", m->transparent_hugepages);
    json_put_double(j, "load_at_start", m->load < 0 ? NAN : m->load);
    json_end_object(j);
}

static void print_allocator(struct json *j, const struct replay_figures *f)
{
    json_key(j, "allocator");
    json_begin_object(j);
    json_put_string(j, "name", f->allocator.name);
    json_put_string(j, "library", f->runs[0].library);
    put_text(j, "version", f->runs[0].version);
    char build_id[129];
    machine_build_id(f->runs[0].library, build_id, sizeof build_id);
    put_text(j, "build_id", build_id);
    json_key(j, "tunables");
    json_begin_array(j);
    for (size_t i = 0; i < f->allocator.n_tunables; i++)
        json_string(j, f->allocator.tunables[i]);
    json_end_array(j);
    json_end_object(j);
}

void replay_print_verified_members(struct json *j, const struct replay_figures *f)
{
    print_allocator(j, f);
    json_key(j, "verify");
    json_begin_object(j);
    json_put_u64(j, "runs", f->n_runs);
    json_put_u64(j, "blocks", f->runs[0].checked_blocks);
    json_put_u64(j, "violations", 0); // the first one ends the replay
    json_end_object(j);
}

static void put_figure(struct json *j, const struct figure_info *info, double v)
{
    bool is_whole = info->unit == FIGURE_COUNT || info->unit == FIGURE_BYTES || v == floor(v);
    if (is_whole && v >= 0 && v < 0x1p63)
        json_put_u64(j, info->name, (uint64_t)v);
    else
        json_put_double(j, info->name, v);
}

// The figures of one object of JSON: NULL stands for the result itself.
static void put_figures(struct json *j, const union figures *f, const char *object)
{
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_objects[figure_infos[i].group] == object)
            put_figure(j, &figure_infos[i], f->values[i]);
    }
}

static void print_run(struct json *j, const struct replay_run *run)
{
    json_begin_object(j);
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_infos[i].shown & FIGURE_IN_RUN)
            put_figure(j, &figure_infos[i], run->figures.values[i]);
    }
    json_end_object(j);
}

static void print_times(struct json *j, const struct replay_call *c, double overhead_ns)
{
    json_put_double(j, "mean_ns", c->mean_ns);
    json_put_double(j, "p50_ns", c->p50_ns);
    json_put_double(j, "p99_ns", c->p99_ns);
    json_put_double(j, "p999_ns", c->p999_ns);
    json_put_double(j, "max_ns", c->max_ns);
    json_put_double(j, "overhead_ns", overhead_ns);
}

static void print_sizes(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    json_key(j, "calls_by_size");
    json_begin_array(j);
    for (unsigned i = 0; i < RESULTS_SIZES; i++) {
        struct replay_call c = session_size(s, f, i);
        if (!c.count)
            continue;
        json_begin_object(j);
        if (i == RESULTS_SIZES - 1)
            json_put_string(j, "max_bytes", NULL);
        else
            json_put_u64(j, "max_bytes", (uint64_t)8 << i);
        json_put_u64(j, "count", c.count);
        print_times(j, &c, s->null.latency.sizes[i].undisturbed_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

static void print_calls(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    json_key(j, "calls");
    json_begin_object(j);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (!facts->by_kind[kind])
            continue;
        struct replay_call c = session_call(s, f, kind);
        json_key(j, event_infos[kind].name);
        json_begin_object(j);
        json_put_u64(j, "count", facts->by_kind[kind]);
        if (c.count)
            print_times(j, &c, s->null.latency.calls[kind].undisturbed_ns);
        json_end_object(j);
    }
    json_end_object(j);
}

static void print_timeline(struct json *j, const struct replay_run *run)
{
    json_key(j, "timeline");
    json_begin_array(j);
    for (size_t i = 0; i < run->n_samples; i++) {
        const struct results_sample *at = &run->samples[i];
        json_begin_array(j);
        json_u64(j, at->event);
        json_u64(j, at->ns);
        json_u64(j, at->rss_bytes);
        json_u64(j, at->live_bytes);
        json_end_array(j);
    }
    json_end_array(j);
}

static void print_internal_fragmentation(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    json_key(j, "internal_fragmentation");
    if (!s->internal_fragmentation || !f->usable.usable_bytes) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_u64(j, "requested_bytes", f->usable.requested_bytes);
    json_put_u64(j, "usable_bytes", f->usable.usable_bytes);
    json_put_double(j, "usable_ratio", (double)f->usable.usable_bytes / (double)f->usable.requested_bytes);
    json_end_object(j);
}

static void put_reported(struct json *j, const char *key, uint64_t bytes)
{
    if (bytes == RESULTS_UNKNOWN)
        json_put_string(j, key, NULL);
    else
        json_put_u64(j, key, bytes);
}

// What the allocator has from the kernel and has not given out.
static uint64_t waste(const struct results_stats *at)
{
    if (at->mapped_bytes == RESULTS_UNKNOWN || at->allocated_bytes == RESULTS_UNKNOWN)
        return RESULTS_UNKNOWN;
    return at->mapped_bytes > at->allocated_bytes ? at->mapped_bytes - at->allocated_bytes : 0;
}

static void print_stats(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    put_text(j, "trim_function", s->how_to_plan.trim_every ? f->runs[0].trim_function : "");
    json_key(j, "stats");
    if (!s->how_to_plan.stats_every) {
        json_null(j);
        return;
    }
    json_begin_array(j);
    for (size_t i = 0; i < f->stats.n_stats; i++) {
        const struct results_stats *at = &f->stats.stats[i];
        json_begin_object(j);
        json_put_u64(j, "event", at->event);
        json_put_u64(j, "ns", at->ns);
        json_put_u64(j, "rss_bytes", at->rss_bytes);
        json_put_u64(j, "live_bytes", at->live_bytes);
        put_reported(j, "mapped_bytes", at->mapped_bytes);
        put_reported(j, "allocated_bytes", at->allocated_bytes);
        put_reported(j, "unused_bytes", waste(at));
        put_reported(j, "active_bytes", at->active_bytes);
        put_reported(j, "resident_bytes", at->resident_bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

static void print_counters(struct json *j, const struct replay_figures *f)
{
    const struct replay_run *run = &f->runs[f->typical];
    json_key(j, "counters");
    json_begin_object(j);
    put_figures(j, &f->figures, "counters");
    json_key(j, "with_kernel");
    if (isnan(f->figures.cycles))
        json_null(j);
    else
        json_bool(j, run->counters_with_kernel);
    json_put_string(j, "missing_reason", run->counters_errno ? strerror(run->counters_errno) : NULL);
    json_end_object(j);
}

// Of a workload that was streamed.
static void print_decoder(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    json_key(j, "decoder");
    if (!facts->streamed) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_u64(j, "windows", facts->windows);
    json_put_u64(j, "window_bytes", facts->window_bytes);
    put_figures(j, &f->figures, "decoder");
    json_end_object(j);
}

void replay_print_members(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    print_allocator(j, f);
    json_key(j, "runs");
    json_begin_array(j);
    for (size_t i = 0; i < f->n_runs; i++)
        print_run(j, &f->runs[i]);
    json_end_array(j);
    put_figures(j, &f->figures, NULL);
    json_put_bool(j, "touch_zeroed", plan_facts(s->plan)->touch_zeroed);
    json_put_double(j, "speed", s->speed > 0 ? s->speed : NAN);
    print_counters(j, f);
    print_decoder(j, s, f);
    print_calls(j, s, f);
    print_sizes(j, s, f);
    replay_print_fidelity(j, s, f);
    print_internal_fragmentation(j, s, f);
    replay_print_fragmentation(j, s, f);
    print_stats(j, s, f);
    print_timeline(j, &f->runs[f->typical]);
}
