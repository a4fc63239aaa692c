#include "report/findings.h"

#include "cli/human.h"
#include "report/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Thresholds.
#define MOVED_SHARE        0.5   // share of growing reallocs
#define COPIED_SHARE       0.01  // share of requested bytes
#define REGROWN_SHARE      0.8   // share of the replaced blocks of a call site
#define COPIED_PER_S       10e6  // copied bytes per second that take about 1 % of a CPU
#define CLEARED_PER_S      100e6 // cleared bytes per second that take about 1 % of a CPU
#define ROUNDING_SHARE     0.1   // share of requested bytes
#define ABOVE_CALLS_SHARE  0.5   // share of the requests of a call site
#define ABOVE_SHARE        0.01  // share of requested bytes
#define ABOVE_PEAK_SHARE   0.1   // share of the peak of live bytes
#define REMOTE_SHARE       0.05  // share of freed blocks
#define LARGE_SHARE        0.5   // share of requested bytes
#define BIG_SHARE          0.1   // share of requested bytes in big blocks whose use was measured
#define UNUSED_SHARE       0.75  // unused bytes as a share of the measured bytes
#define SMALL_SHARE        0.3   // share of requests
#define ZEROED_SHARE       0.25  // share of requested bytes
#define SITE_SHARE         0.2   // share of the peak, of short-lived blocks or of remote frees
#define AMBIGUOUS_SHARE    0.001 // share of events
#define UNNAMED_SHARE      0.5   // share of allocated bytes
#define SHORT_STACKS_SHARE 0.01  // share of allocated bytes
enum { REGROWN_BLOCKS = 10, LARGE_REQUESTS = 1000, LARGE_BYTES = 128 << 10, SMALL_BYTES = 16 };

static void append_args(char *text, size_t size, const char *fmt, va_list args)
{
    size_t n = strlen(text);
    vsnprintf(text + n, size - n, fmt, args);
}

void findings_say(struct findings_item *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_args(f->text, sizeof f->text, fmt, args);
    va_end(args);
}

void findings_advise(struct findings_item *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append_args(f->advice, sizeof f->advice, fmt, args);
    va_end(args);
}

const char *findings_percent(double share)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, share >= 0.0995 || !(share > 0) ? "%.0f %%" : "%.2g %%",
             100 * share);
    return text;
}

static const union stat_figures *figures_of(const struct findings_input *in)
{
    return &in->stat->figures;
}

// Value of the figure of `stat` with this name, or NAN if unknown.
#define FIGURE(in, name) stat_figures_value(figures_of(in), STAT_FIGURE_##name)

// Returns true if a recording of at least a second has fewer of these bytes per second. Then their
// cost does not matter.
static bool is_rare(const struct findings_input *in, double bytes, double per_s)
{
    double s = FIGURE(in, duration_ns) / 1e9;
    return s >= 1 && bytes < per_s * s;
}

static bool find_verdict(const struct findings_input *in, struct findings_item *f)
{
    const struct verdict *v = in->verdict;
    if (!v)
        return false;
    f->act = v->act;
    findings_say(f, "%s", v->text);
    findings_advise(f, "%s", v->remedy);
    if (v->because[0])
        findings_say(f, " %s", v->because);
    return true;
}

static bool find_peak(const struct findings_input *in, struct findings_item *f)
{
    if (!(FIGURE(in, peak_bytes) > 0 && in->stat->last_event > 0))
        return false;
    findings_say(f, "Live bytes peak at %s in %s blocks, after %s of the events",
                 human_size((uint64_t)FIGURE(in, peak_bytes)),
                 human_number((uint64_t)FIGURE(in, peak_live_blocks)),
                 findings_percent(FIGURE(in, peak_event) / in->stat->last_event));
    if (!isnan(FIGURE(in, peak_ns)))
        findings_say(f, ", %s after the start", human_time(FIGURE(in, peak_ns)));
    findings_say(f, ".");
    return true;
}

// Offset of a member in struct findings_stat_site.
#define SITE(member) offsetof(struct findings_stat_site, member)

static double value_of(const struct findings_stat_site *site, size_t value)
{
    return *(const double *)(const void *)((const char *)site + value);
}

// Returns the first site of a list if its `value` is at least `least_share` of `all`, else NULL.
static const struct findings_stat_site *first_site(const struct findings_input *in,
                                                   enum sites_json_list list, size_t value,
                                                   double all, double least_share)
{
    const struct findings_stat_site *site = &in->stat->first[list];
    return all > 0 && value_of(site, value) >= least_share * all && site->has_frame ? site : NULL;
}

static bool find_peak_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    double peak = FIGURE(in, sites_peak_live_bytes);
    const struct findings_stat_site *site =
        first_site(in, SITES_JSON_at_peak, SITE(peak_bytes), peak, SITE_SHARE);
    if (!site)
        return false;
    findings_say(f, "%s of the peak, %s, comes from one call site: %s.",
                 findings_percent(site->peak_bytes / peak), human_size((uint64_t)site->peak_bytes),
                 site->frame);
    return true;
}

static bool find_copied_growth(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_site *site = first_site(
        in, SITES_JSON_by_regrown, SITE(regrown_bytes), FIGURE(in, request_bytes), COPIED_SHARE);
    // If the replacements are as often smaller, the elements of a table are replaced.
    if (!site || !(site->regrown_blocks >= REGROWN_BLOCKS) ||
        site->regrown_blocks < REGROWN_SHARE * site->replaced_blocks ||
        is_rare(in, site->regrown_bytes, COPIED_PER_S))
        return false;
    findings_say(
        f,
        "%s blocks, %s in all, are replaced at once by a larger one of the same call site, as a std::vector or "
        "std::string does when it grows: %s.",
        human_number((uint64_t)site->regrown_blocks), human_size((uint64_t)site->regrown_bytes),
        site->frame);
    findings_advise(f, "Reserve the final size first, or grow by a larger factor.");
    return true;
}

static bool find_realloc_moves(const struct findings_input *in, struct findings_item *f)
{
    double moved = FIGURE(in, grown_moved_calls), bytes = FIGURE(in, grown_moved_bytes);
    double all = moved + FIGURE(in, grown_in_place_calls);
    if (!(all > 0 && moved >= MOVED_SHARE * all &&
          bytes >= COPIED_SHARE * FIGURE(in, requested_bytes)) ||
        is_rare(in, bytes, COPIED_PER_S))
        return false;
    double quarter = in->stat->growths[0] + in->stat->growths[1];
    findings_say(
        f,
        "%s of the growing reallocs moved the block and copied %s; %s of the growing reallocs grew it by a quarter "
        "or less.",
        findings_percent(moved / all), human_size((uint64_t)bytes),
        findings_percent(quarter / all));
    findings_advise(f, "Grow by a factor of 1.5 or 2, or request the final size at once.");
    return true;
}

// If a call site has at least SITE_SHARE of `all`, appends "90 % of BLOCKS are allocated in SITE.".
static bool find_part(const struct findings_input *in, struct findings_item *f,
                      enum sites_json_list list, size_t value, double all, const char *blocks)
{
    const struct findings_stat_site *site = first_site(in, list, value, all, SITE_SHARE);
    if (!site)
        return false;
    findings_say(f, "%s of %s are allocated in %s.",
                 findings_percent(fmin(1, value_of(site, value) / all)), blocks, site->frame);
    return true;
}

static bool find_remote_frees(const struct findings_input *in, struct findings_item *f)
{
    double part = FIGURE(in, remote_frees) / in->stat->freed_blocks;
    // The threads that allocated blocks before the recording are not known.
    if (!(part >= REMOTE_SHARE && isfinite(part)) || FIGURE(in, preexisting_blocks) > 0)
        return false;
    findings_say(
        f,
        "%s of the blocks are freed or resized by another thread than the one that allocated them.",
        findings_percent(part));
    findings_advise(
        f,
        "Allocators differ most in remote frees: compare them, and see the table of frees between threads.");
    return true;
}

static bool find_remote_frees_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    return find_remote_frees(in, &unused) &&
           find_part(in, f, SITES_JSON_by_remote_frees, SITE(remotely_freed_blocks),
                     FIGURE(in, remote_frees), "the blocks that another thread frees");
}

static bool find_large_requests(const struct findings_input *in, struct findings_item *f)
{
    double count = 0, bytes = 0;
    for (size_t i = 0; i < in->stat->n_sizes; i++) {
        if (in->stat->sizes[i].max_bytes <= LARGE_BYTES)
            continue;
        count += in->stat->sizes[i].count;
        bytes += in->stat->sizes[i].bytes;
    }
    double part = bytes / FIGURE(in, request_bytes);
    if (!(part >= LARGE_SHARE && count >= LARGE_REQUESTS))
        return false;
    findings_say(f, "%s requests over 128 KiB account for %s of the requested bytes.",
                 human_number((uint64_t)count), findings_percent(part));
    findings_advise(
        f,
        "Each may cost an mmap and page faults: raise the mmap threshold, or reuse the buffers.");
    return true;
}

static bool find_rounding(const struct findings_input *in, struct findings_item *f, double bytes,
                          const char *name)
{
    double part = bytes / FIGURE(in, request_bytes);
    if (!(part >= ROUNDING_SHARE))
        return false;
    findings_say(f, "Internal fragmentation with %s is %s of the requested bytes.", name,
                 findings_percent(part));
    findings_advise(
        f, "Look at the top sizes, and request sizes that are not just above a size class.");
    return true;
}

static bool find_rounding_glibc(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, FIGURE(in, glibc_fragmentation_bytes), "glibc's chunks");
}

static bool find_rounding_four(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, FIGURE(in, four_fragmentation_bytes),
                         "four size classes per doubling");
}

static bool find_above_class(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_site *site =
        first_site(in, SITES_JSON_by_above_class, SITE(above_class_lost_bytes),
                   FIGURE(in, request_bytes), ABOVE_SHARE);
    // If the sizes vary, some are just above a class by chance.
    if (!site || site->above_class_blocks < ABOVE_CALLS_SHARE * site->allocs ||
        site->peak_bytes < ABOVE_PEAK_SHARE * FIGURE(in, peak_bytes))
        return false;
    findings_say(
        f,
        "%s just above one of jemalloc's four size classes per doubling, which costs %s of internal "
        "fragmentation, in %s.",
        human_items((uint64_t)site->above_class_blocks, "request is", "requests are"),
        human_size((uint64_t)site->above_class_lost_bytes), site->frame);
    findings_advise(f, "Request up to 16 bytes less.");
    return true;
}

static bool find_hardly_used(const struct findings_input *in, struct findings_item *f)
{
    double measured = FIGURE(in, big_block_measured_bytes),
           part = FIGURE(in, big_block_unused_bytes) / measured;
    if (!(measured > 0 && measured >= BIG_SHARE * FIGURE(in, request_bytes) &&
          part >= UNUSED_SHARE))
        return false;
    findings_say(
        f,
        "%s of %s in blocks of 16 KiB and more was not used: its pages were never written, or held only zeros "
        "in blocks of calloc.",
        findings_percent(part), human_size((uint64_t)measured));
    findings_advise(
        f,
        "Request less: an allocator that clears or populates these blocks, or huge pages, would make "
        "them resident.");
    return true;
}

static bool find_hardly_used_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    return find_hardly_used(in, &unused) &&
           find_part(in, f, SITES_JSON_by_unused, SITE(big_block_unused_bytes),
                     FIGURE(in, big_block_unused_bytes), "the unused bytes");
}

static bool find_small_requests(const struct findings_input *in, struct findings_item *f)
{
    double count = 0;
    for (size_t i = 0; i < in->stat->n_sizes; i++)
        count += in->stat->sizes[i].max_bytes <= SMALL_BYTES ? in->stat->sizes[i].count : 0;
    double part = count / FIGURE(in, sized_requests);
    if (!(part >= SMALL_SHARE))
        return false;
    findings_say(f, "%s of the requests are for 16 bytes or less, for which headers cost most.",
                 findings_percent(part));
    findings_advise(f, "Embed such objects in the structures that point to them, or use arrays.");
    return true;
}

static bool find_zeroed(const struct findings_input *in, struct findings_item *f)
{
    double bytes = FIGURE(in, calloc_zeroed_bytes), part = bytes / FIGURE(in, request_bytes);
    if (!(part >= ZEROED_SHARE) || is_rare(in, bytes, CLEARED_PER_S))
        return false;
    findings_say(f, "calloc allocates %s of the requested bytes.", findings_percent(part));
    findings_advise(f, "If the blocks are overwritten at once, malloc avoids clearing them.");
    return true;
}

static bool find_lost_records(const struct findings_input *in, struct findings_item *f)
{
    if (!(FIGURE(in, lost_records) > 0))
        return false;
    findings_say(f, "%s records were lost while recording: counts are too low.",
                 human_number((uint64_t)FIGURE(in, lost_records)));
    findings_advise(
        f,
        "Record without --lossy, with less compression (-z lz4), or fewer processes (--follow).");
    return true;
}

// Appends "process 12 (/usr/bin/x)" and the number of other processes.
static void say_process(struct findings_item *f, const struct findings_stat_process *p)
{
    findings_say(f, "process %" PRIu64 " (%s)", p->pid, p->exe ? p->exe : "");
    if (p->n > 1)
        findings_say(f, " and %s", human_items(p->n - 1, "other process", "other processes"));
}

static bool find_turned_off(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_process *p = &in->stat->turned_off;
    if (!p->n)
        return false;
    findings_say(f, "Recording turned itself off in ");
    say_process(f, p);
    findings_say(f, ": %s.", p->text);
    findings_advise(f, "Later events are missing. Remove the cause and record again.");
    return true;
}

static bool find_missing_spools(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = &in->stat->balance;
    if (b->without_spool)
        findings_say(f,
                     "%s not recorded: no space, memory or file descriptor was left for a spool.",
                     human_items(b->without_spool, "process was", "processes were"));
    if (b->unreadable_spools)
        findings_say(f, "%s%s could not be read: a program truncated or overwrote it.",
                     f->text[0] ? " " : "", human_items(b->unreadable_spools, "spool", "spools"));
    if (b->unopened_spools)
        findings_say(
            f, "%s%s could not be opened: the recorder had no memory or file descriptor left.",
            f->text[0] ? " " : "", human_items(b->unopened_spools, "spool", "spools"));
    findings_advise(f, b->unreadable_spools
                           ? "Leave that program out with --follow."
                           : "Make room in /dev/shm, or raise the limits of ulimit -n or -v.");
    return f->text[0];
}

static bool find_overwritten_session(const struct findings_input *in, struct findings_item *f)
{
    if (!in->stat->balance.overwritten_session)
        return false;
    findings_say(f, "A program overwrote the memory that it shares with the recorder.");
    findings_advise(f, "Events may be missing. Correct its wild pointer, and record again.");
    return true;
}

static bool find_stopped_early(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = &in->stat->balance;
    if (b->size_limit)
        findings_say(f, "The recording stopped at --max-size.");
    else if (b->stop_signal)
        findings_say(f, "Signal %" PRIu64 " stopped the recording before its processes exited.",
                     b->stop_signal);
    else if (b->ended_early && b->ended_by)
        findings_say(f,
                     "Process %" PRIu64 " ended the recording, as 'heaptape ctl PID detach' does.",
                     b->ended_by);
    else if (b->ended_early)
        findings_say(f, "The recording ended early.");
    findings_advise(f, b->size_limit ? "Later events are missing: use --flight or --segment."
                                     : "Later events are missing: record again.");
    return f->text[0];
}

static bool find_clock(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = &in->stat->balance;
    bool is_ahead = b->clock_ahead_ns >= b->clock_behind_ns;
    bool is_wrong = b->clock_ahead_ns || b->clock_behind_ns;
    if (b->clock_distrusted && !is_wrong) {
        findings_say(f, "The kernel stopped using the processor's counter as its clock: times and "
                        "the order of events may be wrong.");
        findings_advise(f, "Record with HEAPTAPE_CLOCK=monotonic.");
    }
    if (!is_wrong)
        return b->clock_distrusted;
    findings_say(f,
                 "The clock of process %" PRIu64
                 " is %s %s the recorder's: times and the order of its events are wrong.",
                 b->clock_pid,
                 human_time((double)(is_ahead ? b->clock_ahead_ns : b->clock_behind_ns)),
                 is_ahead ? "ahead of" : "behind");
    findings_advise(
        f,
        "Record without a time namespace; if the CPUs' counters differ, with HEAPTAPE_CLOCK=monotonic.");
    return true;
}

static bool find_code_names(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = &in->stat->balance;
    if (b->bad_code_names)
        findings_say(f, "%s invalid.",
                     human_items(b->bad_code_names, "record of perf-PID.map or jit-PID.dump is",
                                 "records of perf-PID.map or jit-PID.dump are"));
    if (b->cut_code_names)
        findings_say(f,
                     "%sOnly the first 64 MiB of perf-PID.map and jit-PID.dump were read, of %s.",
                     f->text[0] ? " " : "", human_items(b->cut_code_names, "process", "processes"));
    findings_advise(f,
                    b->bad_code_names
                        ? "Correct the program that writes the file: these functions have no names."
                        : "Record a shorter run: later functions have no names.");
    return f->text[0];
}

static bool find_unrecorded_processes(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_process *first = &in->stat->unrecorded;
    double n = FIGURE(in, unrecorded_processes);
    if (!(n > 0))
        return false;
    findings_say(f, "%s not recorded", human_items((uint64_t)n, "process was", "processes were"));
    if (first->exe && first->text)
        findings_say(f, ", the first of them process %" PRIu64 " (%s): %s", first->pid, first->exe,
                     first->text);
    findings_say(f, ".");
    findings_advise(
        f, "The list gives the reason for each process; docs/guide/record.md has remedies.");
    return true;
}

static bool find_own_malloc(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_process *p = &in->stat->own_malloc;
    if (!p->n)
        return false;
    findings_say(f, "Calls of the malloc in %s were not recorded, in ", p->text);
    say_process(f, p);
    findings_say(f, ".");
    findings_advise(
        f,
        "Link the program without its own malloc, or preload that malloc as a library after libheaptape.so.");
    return true;
}

static bool find_bypassing_objects(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat_process *p = &in->stat->deepbound;
    if (!p->n)
        return false;
    findings_say(f,
                 "%s was opened with RTLD_DEEPBIND, and its calls of malloc were not recorded, in ",
                 p->text);
    say_process(f, p);
    findings_say(f, ".");
    findings_advise(f, "Open it without RTLD_DEEPBIND for the recording.");
    return true;
}

static bool find_unexplained_memory(const struct findings_input *in, struct findings_item *f)
{
    const struct findings_stat *s = in->stat;
    if (!s->unexplained.n)
        return false;
    findings_say(
        f, "Recorded blocks do not explain %s of the %s that malloc had in use at the end, in ",
        human_size((uint64_t)s->unexplained_bytes), human_size((uint64_t)s->in_use_bytes));
    say_process(f, &s->unexplained);
    findings_say(f, ".");
    findings_advise(
        f,
        "These bytes are blocks of objects that bypass the library, or free blocks in thread caches.");
    return true;
}

static bool find_short_stacks(const struct findings_input *in, struct findings_item *f)
{
    const char *object = in->stat->short_stack_object;
    double part = in->stat->short_stack_bytes / in->stat->covered_bytes;
    if (!(part >= SHORT_STACKS_SHARE) || !object)
        return false;
    findings_say(
        f,
        "The stacks of %s of the allocated bytes end before the program's own code, most of them in %s.",
        findings_percent(part), object);
    findings_advise(
        f,
        "Build that object with unwind tables or frame pointers, or have the JIT compiler keep them.");
    return true;
}

static bool find_unnamed_code(const struct findings_input *in, struct findings_item *f)
{
    static const struct {
        const char *program, *functions;
    } runtimes[] = {
        [COVERAGE_PYTHON] = {"python", "a function of the Python program"},
        [COVERAGE_NODE] = {"node", "a JavaScript function"},
        [COVERAGE_JAVA] = {"java", "a Java method"},
    };
    for (unsigned i = 0; i < COVERAGE_RUNTIMES; i++) {
        const struct software_runtime *of = software_runtime_of(runtimes[i].program);
        double part = in->stat->interpreted_bytes[i] / in->stat->covered_bytes;
        if (!(part >= UNNAMED_SHARE) || !(in->stat->named_bytes[i] == 0))
            continue;
        findings_say(f,
                     "%s of the allocated bytes are allocated below functions of %s, and no call "
                     "stack has %s.",
                     findings_percent(part), of->name, runtimes[i].functions);
        findings_advise(f, "To see these functions, %s.", of->names);
        return true;
    }
    return false;
}

static bool find_ambiguous_order(const struct findings_input *in, struct findings_item *f)
{
    if (!(FIGURE(in, order_ambiguous) > AMBIGUOUS_SHARE * FIGURE(in, events)))
        return false;
    findings_say(f, "The order of %s events is ambiguous.",
                 human_number((uint64_t)FIGURE(in, order_ambiguous)));
    findings_advise(
        f,
        "Record on a machine whose clock source is the TSC, or with fewer threads for each CPU.");
    return true;
}

static bool find_cut_off(const struct findings_input *in, struct findings_item *f)
{
    if (!in->stat->cut_off)
        return false;
    findings_say(f, "The file is cut off: the figures cover its beginning only.");
    return true;
}

// Names of the rules in findings_results.c, as the table spells them.
#define find_faster_allocator       findings_faster_allocator
#define find_fastest_uses_more      findings_fastest_uses_more
#define find_none_faster            findings_none_faster
#define find_leanest                findings_leanest
#define find_fragmentation          findings_fragmentation
#define find_below_live             findings_below_live
#define find_below_live_cleared     findings_below_live_cleared
#define find_below_live_agrees      findings_below_live_agrees
#define find_recorded_more          findings_recorded_more
#define find_recorded_more_unmapped findings_recorded_more_unmapped
#define find_kept                   findings_kept
#define find_calls_matter           findings_calls_matter
#define find_calls_hardly_matter    findings_calls_hardly_matter

static const struct {
    const char *name;
    bool act;
    findings_rule *rule;
} rules[FINDING_NAMES] = {
#define HT_X(name, act, when) {#name, act, find_##name},
    HT_FINDINGS(HT_X)
#undef HT_X
};

// Applies the rules with `act` first, then the other rules.
static void apply_rules(struct findings *f, const struct findings_input *in)
{
    f->n = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < FINDING_NAMES; i++) {
            struct findings_item item = {.rule = i, .name = rules[i].name, .act = rules[i].act};
            if (rules[i].act == (pass == 0) && rules[i].rule(in, &item))
                f->items[f->n++] = item;
        }
    }
}

void findings_of_file(struct findings *f, const struct file_stat *s)
{
    struct findings_stat stat;
    findings_stat_of_file(&stat, s);
    verdict_facts_of_file(&f->facts, s);
    verdict_find(&f->verdict, &f->facts);
    f->has_verdict = s->n_processes > 0;
    apply_rules(f, &(struct findings_input){f->has_verdict ? &f->verdict : NULL, &stat, NULL, 0});
}

static void read_text(char *to, size_t size, const struct json_value *item, const char *key)
{
    const char *text = json_value_string(json_value_get(item, key));
    snprintf(to, size, "%s", text ? text : "");
}

void findings_of_json(struct findings *f, const struct json_value *stat)
{
    const struct json_value *all = json_value_get(stat, "findings");
    f->n = 0;
    f->has_verdict = false;
    for (size_t i = 0; i < json_value_length(all) && f->n < FINDING_NAMES; i++) {
        const struct json_value *item = json_value_at(all, i);
        const char *name = json_value_string(json_value_get(item, "name"));
        struct findings_item *to = &f->items[f->n];
        unsigned rule = 0;
        while (rule < FINDING_NAMES && (!name || strcmp(rules[rule].name, name) != 0))
            rule++;
        if (rule == FINDING_NAMES) // written by another version
            continue;
        *to = (struct findings_item){.rule = rule, .name = rules[rule].name};
        to->act = json_value_bool(json_value_get(item, "act"));
        read_text(to->text, sizeof to->text, item, "text");
        read_text(to->advice, sizeof to->advice, item, "advice");
        f->n++;
    }
}

void findings_of_results(struct findings *f, const struct json_value *const *results, size_t n)
{
    struct findings_stat unknown;
    findings_stat_init(&unknown);
    f->has_verdict = false;
    apply_rules(f, &(struct findings_input){NULL, &unknown, results, n});
}

static bool comes_first(const struct findings_item *a, const struct findings_item *b)
{
    if ((a->rule == FINDING_verdict) != (b->rule == FINDING_verdict))
        return a->rule == FINDING_verdict;
    return a->act != b->act ? a->act : a->rule < b->rule;
}

void findings_merge(struct findings *f, const struct findings *other)
{
    for (size_t i = 0; i < other->n && f->n < FINDING_NAMES; i++) {
        size_t at = f->n;
        while (at > 0 && comes_first(&other->items[i], &f->items[at - 1]))
            at--;
        memmove(&f->items[at + 1], &f->items[at], (f->n++ - at) * sizeof *f->items);
        f->items[at] = other->items[i];
    }
}

void findings_json(struct json *j, const struct findings *f)
{
    if (f->has_verdict)
        verdict_json(j, &f->verdict, &f->facts);
    json_put_array(j, "findings");
    for (size_t i = 0; i < f->n; i++) {
        json_begin_object(j);
        json_put_string(j, "name", f->items[i].name);
        json_put_bool(j, "act", f->items[i].act);
        json_put_string(j, "text", f->items[i].text);
        json_put_string(j, "advice", f->items[i].advice[0] ? f->items[i].advice : NULL);
        json_end_object(j);
    }
    json_end_array(j);
}
