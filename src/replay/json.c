#include "replay/json.h"

#include "analysis/memory/fragmentation.h"

#include "replay/fidelity.h"
#include "replay/program.h"
#include "replay/real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_text(struct json *j, const char *key, const char *text)
{
    json_put_string(j, key, text[0] ? text : NULL);
}

// Writes null if the number is `unknown`.
static void put_known(struct json *j, const char *key, uint64_t n, uint64_t unknown)
{
    if (n == unknown)
        json_put_string(j, key, NULL);
    else
        json_put_u64(j, key, n);
}

// Begins an object. If it is not known, writes null instead and returns false.
static bool put_object_if(struct json *j, const char *key, bool is_known)
{
    json_key(j, key);
    if (is_known)
        json_begin_object(j);
    else
        json_null(j);
    return is_known;
}

static void put_numbers(struct json *j, const uint64_t *numbers, size_t n)
{
    json_begin_array(j);
    for (size_t i = 0; i < n; i++)
        json_u64(j, numbers[i]);
    json_end_array(j);
}

static void put_machine(struct json *j, const struct machine *m)
{
    json_put_object(j, "machine");
    put_text(j, "architecture", m->architecture);
    put_text(j, "cpu_model", m->cpu_model);
    put_known(j, "cores", m->cores, 0);
    put_known(j, "online_cpus", m->online_cpus, 0);
    put_text(j, "cpus", m->cpus);
    put_known(j, "memory_bytes", m->memory_bytes, 0);
    put_known(j, "page_bytes", m->page_bytes, 0);
    put_text(j, "kernel", m->kernel);
    put_text(j, "cpu_governor", m->governor);
    if (m->boost < 0)
        json_put_string(j, "cpu_boost", NULL);
    else
        json_put_bool(j, "cpu_boost", m->boost);
    put_text(j, "transparent_hugepages", m->transparent_hugepages);
    json_put_double(j, "load_at_start", m->load < 0 ? NAN : m->load);
    json_end_object(j);
}

static void put_tunables(struct json *j, const struct allocator *a)
{
    json_put_array(j, "tunables");
    for (size_t i = 0; i < a->n_tunables; i++)
        json_string(j, a->tunables[i]);
    json_end_array(j);
}

void replay_json_allocator(struct json *j, const struct replay_result *r)
{
    json_put_object(j, "allocator");
    json_put_string(j, "name", r->allocator.name);
    json_put_string(j, "library", r->runs[0].library);
    put_text(j, "version", r->runs[0].report.version);
    put_text(j, "build_id", r->build_id);
    put_tunables(j, &r->allocator);
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

// Writes the figures that belong to a JSON object. If `object` is NULL, writes the figures that
// belong to the result itself.
static void put_figures(struct json *j, const union figures *f, const char *object)
{
    for (size_t i = 0; i < FIGURES; i++) {
        const char *of = figure_objects[figure_infos[i].group];
        if (of == object || (of && object && strcmp(of, object) == 0))
            put_figure(j, &figure_infos[i], f->values[i]);
    }
}

static void put_run(struct json *j, const struct replay_run *run)
{
    json_begin_object(j);
    for (size_t i = 0; i < FIGURES; i++) {
        if (figure_infos[i].shown & FIGURE_IN_RUN)
            put_figure(j, &figure_infos[i], run->figures.values[i]);
    }
    json_end_object(j);
}

static void put_times(struct json *j, const struct replay_call *c, double overhead_ns)
{
    json_put_double(j, "mean_ns", c->mean_ns);
    json_put_double(j, "p50_ns", c->p50_ns);
    json_put_double(j, "p99_ns", c->p99_ns);
    json_put_double(j, "p999_ns", c->p999_ns);
    json_put_double(j, "max_ns", c->max_ns);
    json_put_u64(j, "outliers", c->outliers);
    json_put_double(j, "overhead_ns", overhead_ns);
}

static void put_sizes(struct json *j, const struct replay_session *s, const struct replay_result *r)
{
    json_put_array(j, "calls_by_size");
    for (unsigned i = 0; i < RESULTS_SIZES; i++) {
        struct replay_call c = replay_run_call(&r->latency, &s->null.latency, RESULTS_KINDS + i);
        if (!c.count)
            continue;
        json_begin_object(j);
        put_known(j, "max_bytes", i == RESULTS_SIZES - 1 ? 0 : (uint64_t)8 << i, 0);
        json_put_u64(j, "count", c.count);
        put_times(j, &c, s->null.latency.calls[RESULTS_KINDS + i].undisturbed_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_calls(struct json *j, const struct replay_session *s, const struct replay_result *r)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    json_put_object(j, "calls");
    for (unsigned kind = 0; kind < RESULTS_KINDS; kind++) {
        if (!facts->by_kind[kind])
            continue;
        struct replay_call c = replay_run_call(&r->latency, &s->null.latency, kind);
        json_put_object(j, event_infos[kind].name);
        json_put_u64(j, "count", facts->by_kind[kind]);
        if (c.count)
            put_times(j, &c, s->null.latency.calls[kind].undisturbed_ns);
        json_end_object(j);
    }
    json_end_object(j);
}

static void put_timeline(struct json *j, const struct replay_run *run)
{
    json_put_array(j, "timeline");
    for (size_t i = 0; i < run->n_samples; i++) {
        const struct results_sample *at = &run->samples[i];
        put_numbers(
            j,
            (const uint64_t[]){at->event, at->ns, at->rss_bytes, at->live_bytes, at->virtual_bytes},
            5);
    }
    json_end_array(j);
}

// Writes the memory of the whole process at each sample, or an empty array if unknown.
static void put_process_timeline(struct json *j, const struct replay_session *s,
                                 const struct replay_run *run)
{
    json_put_string(j, "process_rss_missing_reason", process_rss_missing_reason(s));
    json_put_bool(j, "process_rss_has_recording", process_rss_has_recording(s));
    json_put_array(j, "process_timeline");
    for (size_t i = 0; s->outside.n && i < run->n_samples; i++) {
        const struct results_sample *at = &run->samples[i];
        uint64_t outside = (uint64_t)process_rss_outside(&s->outside, run, at->event);
        put_numbers(j, (const uint64_t[]){at->event, at->ns, at->rss_bytes + outside, outside}, 4);
    }
    json_end_array(j);
}

// If the memory outside the heap was computed from this result, or from a result that is not
// written and this result is the first one, writes that memory at the recorded samples. Otherwise,
// writes an empty array.
static void put_outside_samples(struct json *j, const struct replay_session *s,
                                const struct replay_result *r)
{
    const struct process_rss_outside *o = &s->outside;
    const struct replay_result *of = s->added.n_runs ? s->results : process_rss_recorded(s);
    json_put_array(j, "outside_samples");
    for (size_t i = 0; r == of && i < o->n; i++) {
        put_numbers(j, (const uint64_t[]){o->points[i].event, (uint64_t)o->points[i].bytes}, 2);
    }
    json_end_array(j);
    json_put_double(j, "outside_hidden_bytes", r == of && o->n ? o->hidden_bytes : NAN);
}

static void put_internal_fragmentation(struct json *j, const struct replay_session *s,
                                       const struct replay_result *r)
{
    if (!put_object_if(j, "internal_fragmentation",
                       s->settings.internal_fragmentation && r->usable.report.usable_bytes))
        return;
    json_put_u64(j, "requested_bytes", r->usable.report.requested_bytes);
    json_put_u64(j, "usable_bytes", r->usable.report.usable_bytes);
    json_put_double(j, "usable_ratio",
                    (double)r->usable.report.usable_bytes /
                        (double)r->usable.report.requested_bytes);
    json_end_object(j);
}

// Returns the bytes that the allocator holds beyond its live blocks.
static uint64_t unused_bytes(const struct results_stats *at)
{
    if (at->mapped_bytes == RESULTS_UNKNOWN || at->allocated_bytes == RESULTS_UNKNOWN)
        return RESULTS_UNKNOWN;
    return at->mapped_bytes > at->allocated_bytes ? at->mapped_bytes - at->allocated_bytes : 0;
}

static void put_bins(struct json *j, const struct results_stats *at)
{
    json_put_array(j, "bins_size_unused");
    for (size_t i = 0; i < RESULTS_BINS && at->bins[i].block_bytes; i++) {
        put_numbers(j, (const uint64_t[]){at->bins[i].block_bytes, at->bins[i].unused_bytes}, 2);
    }
    json_end_array(j);
}

static void put_stats(struct json *j, const struct replay_session *s, const struct replay_result *r)
{
    put_text(j, "trim_function", s->settings.trim_every ? r->runs[0].report.trim_function : "");
    json_key(j, "stats");
    if (!r->stats.n_stats) {
        json_null(j);
        return;
    }
    json_begin_array(j);
    for (size_t i = 0; i < r->stats.n_stats; i++) {
        const struct results_stats *at = &r->stats.stats[i];
        json_begin_object(j);
        json_put_u64(j, "event", at->event);
        json_put_u64(j, "ns", at->ns);
        json_put_u64(j, "rss_bytes", at->rss_bytes);
        json_put_u64(j, "live_bytes", at->live_bytes);
        put_known(j, "mapped_bytes", at->mapped_bytes, RESULTS_UNKNOWN);
        put_known(j, "allocated_bytes", at->allocated_bytes, RESULTS_UNKNOWN);
        put_known(j, "unused_bytes", unused_bytes(at), RESULTS_UNKNOWN);
        put_known(j, "active_bytes", at->active_bytes, RESULTS_UNKNOWN);
        put_known(j, "metadata_bytes", at->metadata_bytes, RESULTS_UNKNOWN);
        put_known(j, "resident_bytes", at->resident_bytes, RESULTS_UNKNOWN);
        put_known(j, "retained_bytes", at->retained_bytes, RESULTS_UNKNOWN);
        put_known(j, "dirty_bytes", at->dirty_bytes, RESULTS_UNKNOWN);
        put_known(j, "bin_unused_bytes", at->bin_unused_bytes, RESULTS_UNKNOWN);
        put_bins(j, at);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_counters(struct json *j, const struct replay_result *r)
{
    const struct replay_run *run = &r->runs[r->typical];
    json_put_object(j, "counters");
    put_figures(j, &r->figures, "counters");
    json_key(j, "with_kernel");
    if (isnan(r->figures.cycles))
        json_null(j);
    else
        json_bool(j, run->report.counters_with_kernel);
    json_put_string(j, "missing_reason",
                    run->report.counters_errno ? strerror((int)run->report.counters_errno) : NULL);
    json_end_object(j);
}

static void put_decoder(struct json *j, const struct replay_session *s,
                        const struct replay_result *r)
{
    const struct plan_facts *facts = plan_facts(s->plan);
    if (!put_object_if(j, "decoder", facts->streamed))
        return;
    json_put_u64(j, "windows", facts->windows);
    json_put_u64(j, "window_bytes", facts->window_bytes);
    put_figures(j, &r->figures, "decoder");
    json_end_object(j);
}

static void put_share(struct json *j, const char *key, double part, double whole)
{
    json_put_double(j, key, whole > 0 ? part / whole : NAN);
}

static void put_live(struct json *j, const struct fidelity_live *l)
{
    json_put_object(j, "live");
    json_put_u64(j, "points", l->points);
    json_put_u64(j, "equal_points", l->equal);
    json_put_u64(j, "max_difference_bytes", l->max_bytes);
    json_put_double(j, "mean_difference_bytes", l->mean_bytes);
    json_put_double(j, "peak_ratio", l->peak_ratio);
    json_end_object(j);
}

static void put_recorded_memory(struct json *j, const struct fidelity *f)
{
    const struct fidelity_memory *m = &f->memory;
    json_put_string(j, "rss_missing_reason", f->missing_reason);
    if (!put_object_if(j, "rss", !f->missing_reason))
        return;
    json_put_u64(j, "samples", m->samples);
    json_put_u64(j, "recorded_peak_bytes", (uint64_t)m->recorded_peak_bytes);
    json_put_u64(j, "replayed_peak_bytes", (uint64_t)m->replayed_peak_bytes);
    put_share(j, "peak_ratio", m->replayed_peak_bytes, m->recorded_peak_bytes);
    json_put_double(j, "mean_error", m->mean_error);
    json_put_double(j, "mean_bias", m->mean_bias);
    json_put_bool(j, "far_off", f->is_far);
    json_put_u64(j, "recorded_baseline_bytes", m->baseline_bytes);
    json_put_u64(j, "recorded_mappings_bytes", m->mapped_bytes);
    json_end_object(j);
}

static void put_overlap(struct json *j, const struct fidelity *f)
{
    if (!put_object_if(j, "overlap", f->has_overlap))
        return;
    json_put_double(j, "recorded_time_share", f->overlap.recorded_time);
    json_put_double(j, "replayed_time_share", f->overlap.replayed_time);
    json_put_double(j, "recorded_event_share", f->overlap.recorded_events);
    json_put_double(j, "replayed_event_share", f->overlap.replayed_events);
    json_end_object(j);
}

static void put_program(struct json *j, const struct replay_session *s,
                        const struct replay_result *r)
{
    const struct program_time t = program_time(s);
    json_put_string(j, "program_missing_reason", t.missing_reason);
    if (!put_object_if(j, "program", !t.missing_reason))
        return;
    json_put_double(j, "cpu_ns", t.cpu_ns);
    json_put_double(j, "recording_cpu_ns", t.recording_ns);
    json_put_double(j, "recorded_calls_cpu_ns", t.calls_ns);
    json_put_double(j, "timed_calls_cpu_ns", t.timed_calls_ns);
    json_put_double(j, "calls_share", t.share);
    json_put_double(j, "calls_max_share", t.max_share);
    json_put_double(j, "calls_cpu_ns", program_calls_ns(s, r, PROGRAM_ALL_RUNS));
    const struct measure_ratio ratio = program_interval(s, &t, r);
    replay_json_ratio(j, "cpu_ratio", &ratio);
    json_put_double(j, "rest_share", t.rest_share);
    json_end_object(j);
}

static void put_fidelity(struct json *j, const struct replay_session *s,
                         const struct replay_result *r)
{
    const struct fidelity f = fidelity_of(s, r);
    json_put_object(j, "fidelity");
    json_put_string(j, "recorded_allocator", f.recorded_allocator);
    json_put_bool(j, "same_allocator", f.same_allocator);
    put_live(j, &f.live);
    put_recorded_memory(j, &f);
    put_overlap(j, &f);
    json_put_object(j, "allocator_time");
    json_put_string(j, "recorded_ns", NULL); // each call has only one timestamp
    json_put_double(j, "replayed_ns", f.allocator_ns);
    json_put_double(j, "recorded_duration_ns", f.recorded_ns);
    put_share(j, "share_of_recorded_duration", f.allocator_ns, f.recorded_ns);
    json_end_object(j);
    put_program(j, s, r);
    json_end_object(j);
}

static void put_fragmentations(struct json *j, const struct replay_session *s,
                               const struct replay_result *r)
{
    if (!put_object_if(j, "fragmentation", s->settings.fragmentation))
        return;
    json_key(j, "at_peak");
    fragmentation_json(j, &r->fragmentation[PLAN_SNAPSHOT_PEAK], s->symbols);
    json_key(j, "at_end");
    fragmentation_json(j, &r->fragmentation[PLAN_SNAPSHOT_END], s->symbols);
    json_end_object(j);
}

static void put_refused(struct json *j, const struct replay_run *run)
{
    if (!put_object_if(j, "first_refused", run->figures.refused_calls > 0))
        return;
    json_put_string(j, "call", event_infos[run->report.refused_kind].name);
    json_put_u64(j, "bytes", run->report.refused_size);
    json_put_u64(j, "alignment", run->report.refused_alignment);
    json_end_object(j);
}

// Writes the members of a result, without braces.
static void put_result(struct json *j, const struct replay_session *s,
                       const struct replay_result *r)
{
    replay_json_allocator(j, r);
    json_put_array(j, "runs");
    for (size_t i = 0; i < r->n_runs; i++)
        put_run(j, &r->runs[i]);
    json_end_array(j);
    put_figures(j, &r->figures, NULL);
    put_refused(j, &r->runs[r->typical]);
    json_put_bool(j, "touch_zeroed", plan_facts(s->plan)->touch_zeroed);
    json_put_u64(j, "big_block_bytes", plan_facts(s->plan)->big_bytes);
    json_put_u64(j, "big_block_measured_bytes", plan_facts(s->plan)->big_known_bytes);
    json_put_u64(j, "big_block_estimated_bytes", plan_facts(s->plan)->big_estimated_bytes);
    static const char *const threads[] = {"auto", "real", "coupled", "one"}; // values of --threads
    json_put_string(j, "memory_threads", threads[replay_session_memory_threads(s)]);
    json_put_double(j, "speed", s->settings.speed > 0 ? s->settings.speed : NAN);
    put_counters(j, r);
    put_decoder(j, s, r);
    put_calls(j, s, r);
    put_sizes(j, s, r);
    put_fidelity(j, s, r);
    put_internal_fragmentation(j, s, r);
    put_fragmentations(j, s, r);
    put_stats(j, s, r);
    put_timeline(j, &r->runs[r->typical_memory]);
    put_process_timeline(j, s, &r->runs[r->typical_memory]);
    put_outside_samples(j, s, r);
}

static void put_verified(struct json *j, const struct replay_result *r)
{
    replay_json_allocator(j, r);
    json_put_object(j, "verify");
    json_put_u64(j, "runs", r->n_runs);
    json_put_u64(j, "blocks", r->runs[0].report.checked_blocks);
    json_put_u64(j, "violations", 0); // the replay ends at the first violation
    json_put_u64(j, "refused_calls", (uint64_t)r->runs[0].figures.refused_calls);
    put_refused(j, &r->runs[0]);
    json_end_object(j);
}

void replay_json_head(struct json *j, const struct replay_session *s)
{
    json_begin_document(j);
    json_put_string(j, "workload", s->workload);
    put_machine(j, &s->machine);
}

void replay_json(struct json *j, const struct replay_session *s)
{
    replay_json_head(j, s);
    if (s->settings.verify)
        put_verified(j, &s->results[0]);
    else
        put_result(j, s, &s->results[0]);
    json_end_object(j);
}

void replay_json_ratio(struct json *j, const char *key, const struct measure_ratio *r)
{
    char interval_key[64];
    snprintf(interval_key, sizeof interval_key, "%s_ci95", key);
    json_put_double(j, key, r->ratio);
    json_key(j, interval_key);
    if (!measure_has_interval(r)) {
        json_null(j);
        return;
    }
    json_begin_array(j);
    json_double(j, r->low);
    json_double(j, r->high);
    json_end_array(j);
}

static void put_ratios(struct json *j, const struct replay_session *s,
                       const struct replay_result *r)
{
    for (size_t i = 0; i < FIGURES; i++) {
        struct measure_ratio ratio;
        if (!figure_infos[i].ratio)
            continue;
        ratio = replay_session_ratio(s, r, i);
        replay_json_ratio(j, figure_infos[i].ratio, &ratio);
    }
}

static void put_real_calls(struct json *j, const struct replay_call *calls)
{
    if (!put_object_if(j, "calls", calls))
        return;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (!calls[kind].count)
            continue;
        json_put_object(j, event_infos[kind].name);
        json_put_u64(j, "count", calls[kind].count);
        json_put_double(j, "p50_ns", calls[kind].p50_ns);
        json_put_double(j, "p99_ns", calls[kind].p99_ns);
        json_put_double(j, "p999_ns", calls[kind].p999_ns);
        json_end_object(j);
    }
    json_end_object(j);
}

void replay_json_real(struct json *j, const struct replay_session *s, const struct replay_result *r)
{
    const struct replay_real_info *infos = replay_real_infos;
    if (!put_object_if(j, "real", r->n_real))
        return;
    for (unsigned i = 0; i < REAL_FIGURES; i++) {
        struct measure_ratio ratio = replay_real_ratio(s, r, i);
        json_put_u64(j, infos[i].key, (uint64_t)replay_real_median(r, i));
        replay_json_ratio(j, infos[i].ratio_key, &ratio);
    }
    int within = replay_real_cpu_is_within(s, r);
    json_key(j, "cpu_ratio_is_within");
    if (within < 0)
        json_null(j);
    else
        json_bool(j, within);
    put_real_calls(j, r->real_calls);
    json_put_array(j, "runs");
    for (size_t n = 0; n < r->n_real; n++) {
        json_begin_object(j);
        for (unsigned i = 0; i < REAL_FIGURES; i++)
            json_put_u64(j, infos[i].key, (uint64_t)r->real[n].values[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_placement(struct json *j, const struct replay_session *s)
{
    const struct replay_best_placement best = replay_session_best_placement(s);
    json_put_string(j, "placement_missing_reason", s->placement_missing_reason);
    if (!put_object_if(j, "placement", !s->placement_missing_reason))
        return;
    json_put_u64(j, "live_bytes", s->placement.lower_bytes);
    json_put_u64(j, "found_bytes", s->placement.found_bytes);
    json_put_u64(j, "best_bytes", (uint64_t)best.bytes);
    json_put_string(j, "best_allocator", best.result ? best.result->allocator.name : NULL);
    json_end_object(j);
}

static void put_failed(struct json *j, const struct replay_session *s)
{
    json_put_array(j, "failed_allocators");
    for (size_t i = s->n_failed; i-- > 0;) {
        const struct replay_result *r = &s->results[s->n_results + i];
        json_begin_object(j);
        json_put_string(j, "name", r->allocator.name);
        put_tunables(j, &r->allocator);
        json_put_string(j, "error", r->failure);
        json_end_object(j);
    }
    json_end_array(j);
}

void replay_json_compare(struct json *j, const struct replay_session *s)
{
    replay_json_head(j, s);
    json_put_string(j, "added_allocator", s->added.n_runs ? s->added.runs[0].library : NULL);
    put_failed(j, s);
    json_put_array(j, "allocators");
    for (size_t i = 0; i < s->n_results; i++) {
        json_begin_object(j);
        put_result(j, s, &s->results[i]);
        put_ratios(j, s, &s->results[i]);
        replay_json_real(j, s, &s->results[i]);
        put_placement(j, s);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}
