// Findings about replays: the choice of an allocator, and the memory of allocators.
#include "report/findings.h"

#include "cli/human.h"

#include <math.h>
#include <stdlib.h>

#define SAME_TIME     0.02 // smaller differences in wall time are ignored
#define MORE_MEMORY   1.1  // max. ratio of a recommendation's peak RSS to the first allocator's
#define FRAGMENTATION 1.25 // ratio of peak RSS to peak live bytes
#define BELOW         0.95 // ratio of peak RSS to peak live bytes
#define KEPT_SHARE    0.5  // share of the peak RSS that remains after all blocks were freed
#define CALLS_SHARE   0.05 // share of the program's CPU time

enum { NAME_BYTES = 160 };

static double figure(const struct json_value *result, const char *path)
{
    return json_value_number_at(result, path);
}

size_t findings_allocator_name(const struct json_value *allocator, char *name, size_t size)
{
    const struct json_value *tunables = json_value_get(allocator, "tunables");
    const char *text = json_value_string(json_value_get(allocator, "name"));
    size_t n = (size_t)snprintf(name, size, "%s", text ? text : "?");
    for (size_t i = 0; i < json_value_length(tunables) && n < size; i++) {
        text = json_value_string(json_value_at(tunables, i));
        n += (size_t)snprintf(name + n, size - n, ",%s", text ? text : "?");
    }
    return n;
}

// Writes a name such as "glibc,MALLOC_ARENA_MAX=1" to `text`. Returns `text`.
static char *name_of(char text[NAME_BYTES], const struct json_value *result)
{
    findings_allocator_name(json_value_get(result, "allocator"), text, NAME_BYTES);
    return text;
}

static const struct json_value *interval_of(const struct json_value *result)
{
    const struct json_value *ci = json_value_get(result, "wall_ratio_ci95");
    return json_value_length(ci) == 2 ? ci : NULL;
}

// Returns true if the results have intervals. A difference without an interval is not reported.
static bool has_intervals(const struct findings_input *in)
{
    for (size_t i = 1; i < in->n_results; i++) {
        if (!interval_of(in->results[i]) || isnan(figure(in->results[i], "wall_ns")))
            return false;
    }
    return in->n_results > 1;
}

static bool is_faster(const struct json_value *result)
{
    const struct json_value *ci = interval_of(result);
    return figure(result, "wall_ratio") < 1 - SAME_TIME &&
           (json_value_number(json_value_at(ci, 0)) > 1 ||
            json_value_number(json_value_at(ci, 1)) < 1);
}

static bool is_lean(const struct findings_input *in, const struct json_value *result)
{
    return figure(result, "peak_rss_bytes") <=
           MORE_MEMORY * figure(in->results[0], "peak_rss_bytes");
}

// Returns the fastest allocator that is faster than the first allocator, or NULL. If `lean` is set,
// ignores allocators whose peak RSS exceeds MORE_MEMORY times the peak RSS of the first allocator.
static const struct json_value *fastest_result(const struct findings_input *in, bool lean)
{
    const struct json_value *best = NULL;
    for (size_t i = 1; i < in->n_results && has_intervals(in); i++) {
        const struct json_value *r = in->results[i];
        if (is_faster(r) && (!lean || is_lean(in, r)) &&
            (!best || figure(r, "wall_ns") < figure(best, "wall_ns")))
            best = r;
    }
    return best;
}

bool findings_faster_allocator(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *best = fastest_result(in, true), *ci = interval_of(best);
    char name[2][NAME_BYTES];
    if (!best)
        return false;
    findings_say(f,
                 "%s replays the workload in %.2f × the time of %s (95 %% interval %.2f to %.2f) "
                 "with %.2f × its peak RSS.",
                 name_of(name[0], best), figure(best, "wall_ratio"),
                 name_of(name[1], in->results[0]), json_value_number(json_value_at(ci, 0)),
                 json_value_number(json_value_at(ci, 1)), figure(best, "rss_ratio"));
    findings_advise(f, "Try the program itself with %s preloaded.", name[0]);
    return true;
}

bool findings_fastest_uses_more(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *best = fastest_result(in, false);
    char name[2][NAME_BYTES];
    if (!best || is_lean(in, best))
        return false;
    findings_say(f, "%s is the fastest, %.2f × the time of %s, but has %.2f × its peak RSS.",
                 name_of(name[0], best), figure(best, "wall_ratio"),
                 name_of(name[1], in->results[0]), figure(best, "rss_ratio"));
    return true;
}

bool findings_none_faster(const struct findings_input *in, struct findings_item *f)
{
    char name[NAME_BYTES];
    if (!has_intervals(in) || fastest_result(in, false))
        return false;
    findings_say(f, "No allocator tried is measurably faster than %s on this workload.",
                 name_of(name, in->results[0]));
    return true;
}

bool findings_leanest(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *least = NULL, *most = NULL;
    char name[2][NAME_BYTES];
    for (size_t i = 0; i < in->n_results; i++) {
        const struct json_value *r = in->results[i];
        double rss = figure(r, "peak_rss_bytes");
        if (!(rss > 0))
            continue;
        least = !least || rss < figure(least, "peak_rss_bytes") ? r : least;
        most = !most || rss > figure(most, "peak_rss_bytes") ? r : most;
    }
    if (!least || !(figure(most, "peak_rss_bytes") > figure(least, "peak_rss_bytes")))
        return false;
    findings_say(f, "%s has the lowest peak RSS, %s; %s has the highest, %s.",
                 name_of(name[0], least), human_size((uint64_t)figure(least, "peak_rss_bytes")),
                 name_of(name[1], most), human_size((uint64_t)figure(most, "peak_rss_bytes")));
    return true;
}

// Selects the results that a sentence lists.
typedef bool condition(const struct json_value *result);

static bool is_fragmented(const struct json_value *r)
{
    return figure(r, "peak_fragmentation") >= FRAGMENTATION;
}

static bool is_below(const struct json_value *r)
{
    return figure(r, "peak_fragmentation") < BELOW;
}

static bool is_not_below(const struct json_value *r)
{
    return figure(r, "peak_fragmentation") >= BELOW;
}

static bool is_kept(const struct json_value *r)
{
    double peak = figure(r, "peak_rss_bytes");
    return peak > 0 && figure(r, "rss_after_free_bytes") >= KEPT_SHARE * peak;
}

static const struct json_value *find_result(const struct findings_input *in, condition *is_listed)
{
    for (size_t i = 0; i < in->n_results; i++) {
        if (is_listed(in->results[i]))
            return in->results[i];
    }
    return NULL;
}

// Appends the selected results, for example "glibc 1.40, jemalloc 1.30".
static void say_each(const struct findings_input *in, struct findings_item *f, condition *is_listed,
                     void (*say)(struct findings_item *f, const struct json_value *result))
{
    bool begun = false;
    for (size_t i = 0; i < in->n_results; i++) {
        char name[NAME_BYTES];
        if (!is_listed(in->results[i]))
            continue;
        findings_say(f, "%s%s ", begun ? ", " : "", name_of(name, in->results[i]));
        say(f, in->results[i]);
        begun = true;
    }
}

static void say_ratio(struct findings_item *f, const struct json_value *r)
{
    findings_say(f, "%.2f ×", figure(r, "peak_fragmentation"));
}

static void say_peak(struct findings_item *f, const struct json_value *r)
{
    findings_say(f, "has %s, %.2f × the live bytes",
                 human_size((uint64_t)figure(r, "peak_rss_bytes")),
                 figure(r, "peak_fragmentation"));
}

static void say_kept(struct findings_item *f, const struct json_value *r)
{
    findings_say(f, "%s",
                 findings_percent(figure(r, "rss_after_free_bytes") / figure(r, "peak_rss_bytes")));
}

bool findings_fragmentation(const struct findings_input *in, struct findings_item *f)
{
    if (!find_result(in, is_fragmented))
        return false;
    findings_say(f, "Peak RSS divided by peak live bytes: ");
    say_each(in, f, is_fragmented, say_ratio);
    findings_say(f, ". The part above 1 is headers, rounding, caches and holes.");
    return true;
}

bool findings_below_live(const struct findings_input *in, struct findings_item *f)
{
    if (!find_result(in, is_below))
        return false;
    findings_say(f, "RSS is below live bytes, because pages that the program never writes to are "
                    "not resident: at the peak ");
    say_each(in, f, is_below, say_peak);
    findings_say(f, ".");
    return true;
}

bool findings_below_live_cleared(const struct findings_input *in, struct findings_item *f)
{
    if (!find_result(in, is_below) || !find_result(in, is_not_below))
        return false;
    findings_say(f, "An allocator whose calloc clears blocks by writing makes all their pages "
                    "resident: at the peak ");
    say_each(in, f, is_not_below, say_peak);
    findings_say(f, ".");
    return true;
}

// Returns true if the result's RSS is below the live bytes, and the recorded program's heap is
// known.
static bool shows_recorded(const struct json_value *r)
{
    return is_below(r) && !isnan(figure(r, "fidelity.rss.recorded_peak_bytes"));
}

// Returns the first result for which shows_recorded returns true. If `more` is set, the recorded
// heap must be at least BELOW times the live bytes; otherwise, it must be smaller. Returns NULL if
// there is no such result.
static const struct json_value *recorded_result(const struct findings_input *in, bool more)
{
    const struct json_value *r = find_result(in, shows_recorded);
    double live = figure(r, "peak_rss_bytes") / figure(r, "peak_fragmentation");
    return r && (figure(r, "fidelity.rss.recorded_peak_bytes") >= BELOW * live) == more ? r : NULL;
}

bool findings_below_live_agrees(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *r = recorded_result(in, false);
    if (!r)
        return false;
    findings_say(f,
                 "The recorded program also had less memory resident than its live bytes: its heap "
                 "peaked at %s.",
                 human_size((uint64_t)figure(r, "fidelity.rss.recorded_peak_bytes")));
    return true;
}

static bool find_recorded_more(const struct findings_input *in, struct findings_item *f,
                               bool mapped)
{
    const struct json_value *r = recorded_result(in, true);
    char name[NAME_BYTES];
    if (!r || (figure(r, "fidelity.rss.recorded_mappings_bytes") > 0) != mapped)
        return false;
    findings_say(f, "The recorded program peaked at %s, its replay on %s at only %s.",
                 human_size((uint64_t)figure(r, "fidelity.rss.recorded_peak_bytes")),
                 name_of(name, r),
                 human_size((uint64_t)figure(r, "fidelity.rss.replayed_peak_bytes")));
    return true;
}

bool findings_recorded_more(const struct findings_input *in, struct findings_item *f)
{
    return find_recorded_more(in, f, true);
}

bool findings_recorded_more_unmapped(const struct findings_input *in, struct findings_item *f)
{
    return find_recorded_more(in, f, false);
}

bool findings_kept(const struct findings_input *in, struct findings_item *f)
{
    if (!find_result(in, is_kept))
        return false;
    findings_say(f, "Share of the peak RSS that remains after all blocks are freed: ");
    say_each(in, f, is_kept, say_kept);
    findings_say(f, ".");
    return true;
}

static bool knows_program(const struct json_value *r)
{
    return !isnan(figure(r, "fidelity.program.calls_share"));
}

// Uses the lower bound of the time in calls.
bool findings_calls_matter(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *r = find_result(in, knows_program);
    double part = figure(r, "fidelity.program.calls_share");
    if (!r || part < CALLS_SHARE)
        return false;
    findings_say(f, "The calls take at least %s of the program's CPU time: %s of %s.",
                 findings_percent(part),
                 human_time(figure(r, "fidelity.program.recorded_calls_cpu_ns")),
                 human_time(figure(r, "fidelity.program.cpu_ns")));
    return true;
}

// Uses the upper bound of the time in calls. Only a recording has this bound, because the caches
// are warm in a replay.
bool findings_calls_hardly_matter(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *r = find_result(in, knows_program);
    double part = figure(r, "fidelity.program.calls_max_share");
    if (!r || !(part < CALLS_SHARE))
        return false;
    findings_say(f, "The calls take at most %s of the program's CPU time, %s.",
                 findings_percent(part), human_time(figure(r, "fidelity.program.cpu_ns")));
    return true;
}

const char *findings_percent(double share)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, share >= 0.0995 || !(share > 0) ? "%.0f %%" : "%.2g %%",
             100 * share);
    return text;
}
