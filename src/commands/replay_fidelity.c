// The fidelity of a replay: as JSON and as lines.
#include "cli/command.h"
#include "commands/replay_print.h"
#include "replay/fidelity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_same_allocator(const struct replay_session *s, const struct replay_figures *f)
{
    return fidelity_same_allocator(s->recorded_allocator, f->runs[0].library);
}

// Why memory cannot be compared; NULL: it can.
static const char *why_no_memory(const struct replay_session *s, const struct replay_figures *f,
                                 const struct fidelity_memory *m)
{
    if (!s->recorded_allocator || !s->recorded_allocator[0])
        return "the allocator of the recording is not known";
    if (!is_same_allocator(s, f))
        return "the workload was recorded on another allocator";
    if (!s->has_samples)
        return "the workload has no samples of the program's memory";
    return m->samples < 2 ? "the recording is too short for samples of the program's memory" : NULL;
}

static double recorded_ns(const struct replay_session *s)
{
    return (double)plan_duration_stamps(s->plan) * s->ns_a_stamp;
}

// All calls of the timed run, without the player.
static double allocator_ns(const struct replay_session *s, const struct replay_figures *f)
{
    double ns = 0;
    for (unsigned kind = 0; f->latency.calls && kind < HT_KIND_LIMIT; kind++) {
        struct replay_call c = session_call(s, f, kind);
        ns += c.mean_ns * (double)c.count;
    }
    return ns;
}

static void put_share(struct json *j, const char *key, double part, double whole)
{
    json_put_double(j, key, whole > 0 ? part / whole : NAN);
}

static void put_live(struct json *j, const struct fidelity_live *l)
{
    json_key(j, "live");
    json_begin_object(j);
    json_put_u64(j, "points", l->points);
    json_put_u64(j, "equal_points", l->equal);
    json_put_u64(j, "max_difference_bytes", l->most_bytes);
    json_put_double(j, "mean_difference_bytes", l->mean_bytes);
    json_end_object(j);
}

static void put_memory(struct json *j, const struct fidelity_memory *m, const char *why_not)
{
    json_put_string(j, "rss_missing_reason", why_not);
    json_key(j, "rss");
    if (why_not) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_u64(j, "samples", m->samples);
    json_put_u64(j, "recorded_peak_bytes", (uint64_t)m->recorded_peak_bytes);
    json_put_u64(j, "replayed_peak_bytes", (uint64_t)m->replayed_peak_bytes);
    put_share(j, "peak_ratio", m->replayed_peak_bytes, m->recorded_peak_bytes);
    json_put_double(j, "mean_error", m->mean_error);
    json_put_double(j, "mean_bias", m->mean_bias);
    json_put_u64(j, "recorded_baseline_bytes", m->baseline_bytes);
    json_put_u64(j, "recorded_mappings_bytes", m->mapped_bytes);
    json_end_object(j);
}

static void put_overlap(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    struct fidelity_overlap o;
    json_key(j, "overlap");
    if (plan_facts(s->plan)->threads < 2 || fidelity_overlap(s->plan, &f->runs[f->typical], &o) < 0) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_put_double(j, "recorded_time_share", s->ns_a_stamp > 0 ? o.recorded_time : NAN);
    json_put_double(j, "replayed_time_share", o.replayed_time);
    json_put_double(j, "recorded_event_share", o.recorded_events);
    json_put_double(j, "replayed_event_share", o.replayed_events);
    json_end_object(j);
}

static void put_time(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    double ns = allocator_ns(s, f), recorded = recorded_ns(s);
    json_key(j, "allocator_time");
    json_begin_object(j);
    json_put_string(j, "recorded_ns", NULL); // there is one stamp a call
    json_put_double(j, "replayed_ns", f->latency.calls ? ns : NAN);
    json_put_double(j, "recorded_duration_ns", recorded > 0 ? recorded : NAN);
    put_share(j, "share_of_recorded_duration", ns, f->latency.calls ? recorded : 0);
    json_end_object(j);
}

void replay_print_fidelity(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    const struct replay_run *run = &f->runs[f->typical];
    struct fidelity_live live = fidelity_live(s->plan, run);
    struct fidelity_memory memory = fidelity_memory(s->plan, run);
    json_key(j, "fidelity");
    json_begin_object(j);
    json_put_string(j, "recorded_allocator",
                    s->recorded_allocator && s->recorded_allocator[0] ? s->recorded_allocator : NULL);
    json_put_bool(j, "same_allocator", is_same_allocator(s, f));
    put_live(j, &live);
    put_memory(j, &memory, why_no_memory(s, f, &memory));
    put_overlap(j, s, f);
    put_time(j, s, f);
    json_end_object(j);
}

static void print_live(const struct fidelity_live *l)
{
    char points[32], most[32];
    if (l->equal == l->points)
        printf("%-12s live bytes equal the recorded ones at all %s points\n", "fidelity",
               human_count(points, l->points));
    else
        printf("%-12s live bytes equal the recorded ones at %s of %s points, max difference %s: threads interleaved "
               "differently\n",
               "fidelity", human_count(most, l->equal), human_count(points, l->points),
               human_bytes(points, l->most_bytes));
}

static void print_memory(const struct fidelity_memory *m, const char *why_not)
{
    char t[4][32];
    if (why_not) {
        printf("%-12s memory not compared: %s\n", "", why_not);
        return;
    }
    printf("%-12s peak RSS %.2f × recorded (%s of %s), mean error %.1f %%; recorded memory is private memory minus %s "
           "at the start",
           "", m->replayed_peak_bytes / m->recorded_peak_bytes, human_bytes(t[0], (uint64_t)m->replayed_peak_bytes),
           human_bytes(t[1], (uint64_t)m->recorded_peak_bytes), 100 * m->mean_error,
           human_bytes(t[2], m->baseline_bytes));
    if (m->mapped_bytes)
        printf(" and up to %s of the program's own mappings\n", human_bytes(t[3], m->mapped_bytes));
    else
        printf("; it includes the program's own mappings and stacks (record --maps)\n");
}

static void print_overlap(const struct replay_session *s, const struct replay_figures *f)
{
    struct fidelity_overlap o;
    if (plan_facts(s->plan)->threads < 2 || fidelity_overlap(s->plan, &f->runs[f->typical], &o) < 0)
        return;
    printf("%-12s two or more threads active for %.0f %% of the time (recorded %.0f %%) and %.0f %% of the calls (%.0f "
           "%%)\n",
           "", 100 * o.replayed_time, 100 * o.recorded_time, 100 * o.replayed_events, 100 * o.recorded_events);
}

static void print_time(const struct replay_session *s, const struct replay_figures *f)
{
    double ns = allocator_ns(s, f), recorded = recorded_ns(s);
    char t[2][32];
    if (f->latency.calls && recorded > 0)
        printf("%-12s %s in the allocator, %.1f %% of the recorded duration of %s\n", "", human_ns(t[0], ns),
               100 * ns / recorded, human_ns(t[1], recorded));
}

void replay_print_fidelity_text(const struct replay_session *s, const struct replay_figures *f)
{
    const struct replay_run *run = &f->runs[f->typical];
    struct fidelity_live live = fidelity_live(s->plan, run);
    struct fidelity_memory memory = fidelity_memory(s->plan, run);
    print_live(&live);
    print_memory(&memory, why_no_memory(s, f, &memory));
    print_overlap(s, f);
    print_time(s, f);
}

void replay_print_fidelity_line(const struct replay_session *s)
{
    for (size_t i = 0; i < s->n_figures; i++) {
        const struct replay_figures *f = &s->figures[i];
        struct fidelity_memory m = fidelity_memory(s->plan, &f->runs[f->typical]);
        if (why_no_memory(s, f, &m))
            continue;
        printf("recorded on %s: peak RSS %.2f × recorded, mean error %.1f %%\n", f->allocator.name,
               m.replayed_peak_bytes / m.recorded_peak_bytes, 100 * m.mean_error);
        return;
    }
}
