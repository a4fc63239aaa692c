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

static void print_run(struct json *j, const struct replay_run *run)
{
    json_begin_object(j);
    json_put_u64(j, "events", run->events);
    json_put_u64(j, "wall_ns", run->wall_ns);
    json_put_u64(j, "cpu_ns", run->user_ns + run->system_ns);
    json_put_u64(j, "system_ns", run->system_ns);
    json_put_u64(j, "peak_rss_bytes", run->peak_rss_bytes);
    json_put_u64(j, "end_rss_bytes", run->end_rss_bytes);
    json_put_u64(j, "rss_after_free_bytes", run->rss_after_free_bytes);
    json_put_double(j, "mean_rss_bytes", run->mean_rss_bytes);
    json_put_u64(j, "baseline_rss_bytes", run->baseline_rss_bytes);
    json_put_u64(j, "minor_faults", run->minor_faults);
    json_put_u64(j, "major_faults", run->major_faults);
    json_put_u64(j, "blocked_waits", run->blocked_waits);
    json_put_u64(j, "sleeps", run->sleeps);
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

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static void print_memory(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    json_put_u64(j, "rss_after_free_bytes", (uint64_t)f->rss_after_free_bytes);
    if (s->settings.idle_wait_ns)
        json_put_u64(j, "rss_after_idle_bytes", (uint64_t)f->rss_after_idle_bytes);
    else
        json_put_string(j, "rss_after_idle_bytes", NULL);
    json_put_u64(j, "mean_rss_bytes", (uint64_t)f->mean_rss_bytes);
    json_put_u64(j, "mean_live_bytes", (uint64_t)f->mean_live_bytes);
    json_put_u64(j, "peak_live_bytes", facts->peak_live_bytes);
    json_put_u64(j, "live_at_end_bytes", facts->live_at_end_bytes);
    json_put_double(j, "peak_fragmentation", ratio(f->peak_rss_bytes, (double)facts->peak_live_bytes));
    json_put_double(j, "mean_fragmentation", ratio(f->mean_rss_bytes, f->mean_live_bytes));
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
    json_put_double(j, "usable_ratio", ratio((double)f->usable.usable_bytes, (double)f->usable.requested_bytes));
    json_end_object(j);
}

static void put_said(struct json *j, const char *key, uint64_t bytes)
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
    if (s->how_to_plan.trim_every)
        put_text(j, "trim_function", f->runs[0].trim_function);
    if (!s->how_to_plan.stats_every)
        return;
    json_key(j, "stats");
    json_begin_array(j);
    for (size_t i = 0; i < f->stats.n_stats; i++) {
        const struct results_stats *at = &f->stats.stats[i];
        json_begin_object(j);
        json_put_u64(j, "event", at->event);
        json_put_u64(j, "ns", at->ns);
        json_put_u64(j, "rss_bytes", at->rss_bytes);
        json_put_u64(j, "live_bytes", at->live_bytes);
        put_said(j, "mapped_bytes", at->mapped_bytes);
        put_said(j, "allocated_bytes", at->allocated_bytes);
        put_said(j, "unused_bytes", waste(at));
        put_said(j, "active_bytes", at->active_bytes);
        put_said(j, "resident_bytes", at->resident_bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

static void print_pace(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    // 0 is no pace.
    json_put_double(j, "speed", s->speed > 0 ? s->speed : NAN);
    if (s->speed > 0)
        json_put_u64(j, "max_lag_ns", f->runs[f->typical].max_lag_ns);
}

static void print_counters(struct json *j, const struct replay_run *run)
{
    static const char *const keys[RESULTS_COUNTERS] = {
        [RESULTS_CYCLES] = "cycles",
        [RESULTS_INSTRUCTIONS] = "instructions",
        [RESULTS_CACHE_MISSES] = "cache_misses",
        [RESULTS_DTLB_MISSES] = "dtlb_misses",
    };
    json_key(j, "counters");
    json_begin_object(j);
    for (unsigned i = 0; i < RESULTS_COUNTERS; i++)
        put_said(j, keys[i], run->counters[i]);
    json_put_u64(j, "page_faults", run->minor_faults + run->major_faults);
    json_put_u64(j, "context_switches", run->context_switches);
    if (run->counters[RESULTS_CYCLES] != RESULTS_UNKNOWN)
        json_put_bool(j, "with_kernel", run->counters_with_kernel);
    json_put_string(j, "missing_reason", run->counters_errno ? strerror(run->counters_errno) : NULL);
    json_end_object(j);
}

// Of a workload that was streamed.
static void print_decoder(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    const struct replay_run *run = &f->runs[f->typical];
    json_key(j, "decoder");
    if (!facts->fed) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_u64(j, "windows", facts->windows);
    json_put_u64(j, "window_bytes", facts->window_bytes);
    json_put_u64(j, "stalls", run->stalls);
    json_put_u64(j, "stall_ns", run->stall_ns);
    json_put_double(j, "stall_share", session_stall_share(s, f));
    json_put_u64(j, "free_space_wait_ns", run->free_space_wait_ns);
    json_put_u64(j, "idle_ns", run->decoder_idle_ns);
    json_end_object(j);
}

void replay_print_members(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    print_allocator(j, f);
    json_key(j, "runs");
    json_begin_array(j);
    for (size_t i = 0; i < f->n_runs; i++)
        print_run(j, &f->runs[i]);
    json_end_array(j);
    json_put_double(j, "wall_ns", f->wall_ns);
    json_put_double(j, "cpu_ns", f->cpu_ns);
    json_put_double(j, "ns_per_event", f->ns_per_event);
    json_put_double(j, "overhead_ns_per_event", session_overhead_ns(s));
    json_put_u64(j, "peak_rss_bytes", (uint64_t)f->peak_rss_bytes);
    json_put_u64(j, "end_rss_bytes", (uint64_t)f->end_rss_bytes);
    print_memory(j, s, f);
    json_put_u64(j, "events", facts->events);
    json_put_u64(j, "skipped", facts->skipped);
    json_put_u64(j, "preexisting", facts->preexisting);
    json_put_bool(j, "touch_zeroed", facts->touch_zeroed);
    json_put_u64(j, "threads", facts->threads);
    json_put_u64(j, "dependencies", facts->waits);
    if (facts->one_thread) {
        json_put_u64(j, "thread_switches", facts->switches);
        json_put_u64(j, "cache_switches", f->runs[f->typical].cache_switches);
    }
    print_pace(j, s, f);
    print_counters(j, &f->runs[f->typical]);
    print_decoder(j, s, f);
    print_calls(j, s, f);
    print_sizes(j, s, f);
    replay_print_fidelity(j, s, f);
    print_internal_fragmentation(j, s, f);
    replay_print_fragmentation(j, s, f);
    print_stats(j, s, f);
    print_timeline(j, &f->runs[f->typical]);
}
