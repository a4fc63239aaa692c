#include "report/findings.h"

#include "analysis/size_classes.h"
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"
#include "cli/human.h"
#include "record/processes/software.h"
#include "report/json/sites_json.h"
#include "report/text/balance.h"
#include "report/verdict.h"

#include <inttypes.h>
#include <math.h>
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
#define UNEXPLAINED_SHARE  0.1   // share of the bytes in use in malloc
enum { REGROWN_BLOCKS = 10, LARGE_REQUESTS = 1000, LARGE_BYTES = 128 << 10, SMALL_BYTES = 16 };

// Value of the figure of `stat` with this name, or NAN if unknown.
#define FIGURE(in, name) stat_figures_value((in)->stat, STAT_FIGURE_##name)

// Returns true if the cost of `bytes` does not matter: the recording lasts at least a second and
// has fewer than `per_s` such bytes per second.
static bool is_rare(const struct findings_input *in, double bytes, double per_s)
{
    double s = FIGURE(in, duration_ns) / 1e9;
    return s >= 1 && bytes < per_s * s;
}

bool findings_verdict(const struct findings_input *in, struct findings_item *f)
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

bool findings_peak(const struct findings_input *in, struct findings_item *f)
{
    const struct timeline *t = in->file ? &in->file->usage.by_event : NULL;
    double last_event = t && t->n ? (double)t->bins[t->n - 1].end_event : 0;
    if (!(FIGURE(in, peak_bytes) > 0 && last_event > 0))
        return false;
    findings_say(f, "Live bytes peak at %s in %s, after %s of the events",
                 human_size((uint64_t)FIGURE(in, peak_bytes)),
                 human_items((uint64_t)FIGURE(in, peak_live_blocks), "block", "blocks"),
                 findings_percent(FIGURE(in, peak_event) / last_event));
    if (!isnan(FIGURE(in, peak_ns)))
        findings_say(f, ", %s after the start", human_time(FIGURE(in, peak_ns)));
    findings_say(f, ".");
    return true;
}

// The first call site of a list.
struct first_site {
    double value; // the figure by which the list is sorted
    const struct by_site_totals *totals;
    const struct site_use *use; // NULL if unknown
    char frame[200];            // "render (server.cpp:44)"
};

static void set_frame(struct first_site *s, const struct symbol *f)
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
}

// Finds the first site of a list. Returns false if its figure is less than `least_share` of `all`,
// or if it has no stack.
static bool find_first(const struct findings_input *in, enum sites_json_list list, double all,
                       double least_share, struct first_site *s)
{
    const struct file_stat *file = in->file;
    uint32_t top[SITES_JSON_TOP];
    struct symbol shown;
    if (!file || !file->symbols || !sites_json_list(&file->by_site, list, top))
        return false;
    const struct site_uses *uses = &file->by_site.uses;
    s->value = (double)sites_json_weight(&file->by_site, list, top[0]);
    s->totals = &file->by_site.sites[top[0]];
    s->use = top[0] < uses->n_sites ? &uses->sites[top[0]] : NULL;
    if (!(all > 0 && s->value >= least_share * all) || !stack_site(file->symbols, top[0], &shown))
        return false;
    set_frame(s, &shown);
    return true;
}

// Finds the line with the highest figure in a list. Call sites with the same function and line,
// such as the callers of a function that was inlined twice, count as one. Returns false if the
// figure is less than SITE_SHARE of `all`.
static bool find_line(const struct findings_input *in, enum sites_json_list list, double all,
                      struct first_site *most)
{
    const struct file_stat *file = in->file;
    struct first_site lines[SITES_JSON_TOP];
    uint32_t top[SITES_JSON_TOP];
    size_t n = file && file->symbols ? sites_json_list(&file->by_site, list, top) : 0, n_lines = 0;
    most->value = 0;
    for (size_t i = 0; i < n; i++) {
        struct first_site *line = &lines[n_lines];
        struct symbol shown;
        size_t at = 0;
        if (!stack_site(file->symbols, top[i], &shown) || !shown.function[0])
            continue;
        *line = (struct first_site){.value = 0};
        set_frame(line, &shown);
        while (strcmp(lines[at].frame, line->frame) != 0)
            at++;
        n_lines += at == n_lines;
        lines[at].value += (double)sites_json_weight(&file->by_site, list, top[i]);
        if (lines[at].value > most->value)
            *most = lines[at];
    }
    return all > 0 && most->value >= SITE_SHARE * all;
}

bool findings_peak_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    double peak = FIGURE(in, sites_peak_live_bytes);
    struct first_site site;
    if (!find_line(in, SITES_JSON_at_peak, peak, &site))
        return false;
    findings_say(f, "%s of the peak, %s, comes from one call site: %s.",
                 findings_percent(fmin(1, site.value / peak)), human_size((uint64_t)site.value),
                 site.frame);
    return true;
}

bool findings_copied_growth(const struct findings_input *in, struct findings_item *f)
{
    struct first_site site;
    // If new blocks are smaller as often as they are larger, the program is replacing the elements
    // of a table rather than growing a block.
    if (!find_first(in, SITES_JSON_by_regrown, FIGURE(in, request_bytes), COPIED_SHARE, &site) ||
        site.use->regrown.blocks < REGROWN_BLOCKS ||
        (double)site.use->regrown.blocks < REGROWN_SHARE * (double)site.use->replaced ||
        is_rare(in, (double)site.use->regrown.bytes, COPIED_PER_S))
        return false;
    findings_say(f,
                 "%s blocks, %s in all, are replaced at once by a larger one of the same call "
                 "site, as a std::vector or std::string does when it grows: %s.",
                 human_number(site.use->regrown.blocks), human_size(site.use->regrown.bytes),
                 site.frame);
    return true;
}

bool findings_realloc_moves(const struct findings_input *in, struct findings_item *f)
{
    double moved = FIGURE(in, grown_moved_calls), bytes = FIGURE(in, grown_moved_bytes);
    double all = moved + FIGURE(in, grown_in_place_calls);
    if (!(all > 0 && moved >= MOVED_SHARE * all &&
          bytes >= COPIED_SHARE * FIGURE(in, requested_bytes)) ||
        is_rare(in, bytes, COPIED_PER_S))
        return false;
    // The first two classes are the reallocs that grow a block by up to a quarter.
    const uint64_t *growths = in->file->sums->resizes.growths;
    double quarter = (double)(growths[0] + growths[1]);
    findings_say(f,
                 "%s of the growing reallocs moved the block and copied %s; %s of the growing "
                 "reallocs grew it by a quarter or less.",
                 findings_percent(moved / all), human_size((uint64_t)bytes),
                 findings_percent(quarter / all));
    return true;
}

// If a call site has at least SITE_SHARE of `all`, appends "90 % of BLOCKS are allocated in SITE.".
static bool find_part(const struct findings_input *in, struct findings_item *f,
                      enum sites_json_list list, double all, const char *blocks)
{
    struct first_site site;
    if (!find_line(in, list, all, &site))
        return false;
    findings_say(f, "%s of %s are allocated in %s.", findings_percent(fmin(1, site.value / all)),
                 blocks, site.frame);
    return true;
}

bool findings_remote_frees(const struct findings_input *in, struct findings_item *f)
{
    double freed = 0;
    for (unsigned span = 0; in->file && in->file->sums && span < USAGE_SPANS; span++)
        freed += (double)usage_freed_after(in->file->sums, span);
    double part = FIGURE(in, remote_frees) / freed;
    // The threads that allocated blocks before the recording are not known.
    if (!(part >= REMOTE_SHARE && isfinite(part)) || FIGURE(in, preexisting_blocks) > 0)
        return false;
    findings_say(
        f,
        "%s of the blocks are freed or resized by another thread than the one that allocated them.",
        findings_percent(part));
    return true;
}

bool findings_remote_frees_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    return findings_remote_frees(in, &unused) &&
           find_part(in, f, SITES_JSON_by_remote_frees, FIGURE(in, remote_frees),
                     "the blocks that another thread frees");
}

static struct usage_count sum_sizes(const struct findings_input *in, unsigned from, unsigned to)
{
    struct usage_count counts[USAGE_CLASSES], sum = {0};
    if (!in->file || !in->file->sums)
        return sum;
    size_classes_two(in->file->sums, counts);
    for (unsigned i = from; i < to; i++) {
        sum.blocks += counts[i].blocks;
        sum.bytes += counts[i].bytes;
    }
    return sum;
}

// Returns the allocator that all processes of the file use, and sets *name to its name. If the
// allocator is unknown or differs between processes, returns SOFTWARE_UNKNOWN_ALLOCATOR.
static enum software_allocator find_recorded(const struct findings_input *in, const char **name)
{
    const struct file_stat *file = in->file;
    const char *path = file && file->n_processes ? file->processes[0].facts.allocator : NULL;
    if (!path || !path[0])
        return SOFTWARE_UNKNOWN_ALLOCATOR;
    for (size_t i = 1; i < file->n_processes; i++) {
        const char *other = file->processes[i].facts.allocator;
        if (!other || strcmp(other, path) != 0)
            return SOFTWARE_UNKNOWN_ALLOCATOR;
    }
    return software_allocator_of(path, name);
}

bool findings_large_requests(const struct findings_input *in, struct findings_item *f)
{
    struct usage_count large = sum_sizes(in, usage_size_class(LARGE_BYTES) + 1, USAGE_CLASSES);
    double part = (double)large.bytes / FIGURE(in, request_bytes);
    if (!(part >= LARGE_SHARE && large.blocks >= LARGE_REQUESTS))
        return false;
    const char *name;
    enum software_allocator used = find_recorded(in, &name);
    findings_say(f, "%s requests over 128 KiB account for %s of the requested bytes.",
                 human_number(large.blocks), findings_percent(part));
    // musl's threshold is fixed.
    findings_advise(f, "Each may cost an mmap and page faults: %sreuse the buffers.",
                    used == SOFTWARE_MUSL ? "" : "raise the mmap threshold, or ");
    return true;
}

// `known` is the allocator with these size classes. If the program used another allocator, the
// figure only says what the classes would cost.
static bool find_rounding(const struct findings_input *in, struct findings_item *f, double bytes,
                          enum software_allocator known, const char *classes)
{
    double part = bytes / FIGURE(in, request_bytes);
    const char *name = NULL;
    enum software_allocator used = find_recorded(in, &name);
    if (!(part >= ROUNDING_SHARE))
        return false;
    bool is_other = used != known && used != SOFTWARE_UNKNOWN_ALLOCATOR;
    findings_say(f, "Internal fragmentation with %s %s %s of the requested bytes", classes,
                 is_other ? "would be" : "is", findings_percent(part));
    if (is_other)
        findings_say(f, " (the program used %s)", name);
    findings_say(f, ".");
    findings_advise(
        f, "Look at the top sizes, and request sizes that are not just above a size class.");
    return true;
}

bool findings_rounding_glibc(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, FIGURE(in, glibc_fragmentation_bytes), SOFTWARE_GLIBC,
                         "glibc's chunks");
}

bool findings_rounding_four(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, FIGURE(in, four_fragmentation_bytes), SOFTWARE_JEMALLOC,
                         "four size classes per doubling");
}

bool findings_above_class(const struct findings_input *in, struct findings_item *f)
{
    struct first_site site;
    // If the sizes of a call site vary, some of them are just above a class by chance.
    if (!find_first(in, SITES_JSON_by_above_class, FIGURE(in, request_bytes), ABOVE_SHARE, &site) ||
        (double)site.use->above.blocks < ABOVE_CALLS_SHARE * (double)site.totals->calls ||
        (double)site.totals->peak_bytes < ABOVE_PEAK_SHARE * FIGURE(in, peak_bytes))
        return false;
    findings_say(f,
                 "%s just above one of jemalloc's four size classes per doubling, which costs %s "
                 "of internal fragmentation, in %s.",
                 human_items(site.use->above.blocks, "request is", "requests are"),
                 human_size(site.use->above.bytes), site.frame);
    return true;
}

bool findings_hardly_used(const struct findings_input *in, struct findings_item *f)
{
    double measured = FIGURE(in, big_block_measured_bytes),
           part = FIGURE(in, big_block_unused_bytes) / measured;
    if (!(measured > 0 && measured >= BIG_SHARE * FIGURE(in, request_bytes) &&
          part >= UNUSED_SHARE))
        return false;
    findings_say(f,
                 "%s of %s in blocks of 16 KiB and more was not used: its pages were never "
                 "written, or held only zeros in blocks of calloc.",
                 findings_percent(part), human_size((uint64_t)measured));
    return true;
}

bool findings_hardly_used_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    return findings_hardly_used(in, &unused) &&
           find_part(in, f, SITES_JSON_by_unused, FIGURE(in, big_block_unused_bytes),
                     "the unused bytes");
}

bool findings_small_requests(const struct findings_input *in, struct findings_item *f)
{
    struct usage_count small = sum_sizes(in, 0, usage_size_class(SMALL_BYTES) + 1);
    double part = (double)small.blocks / FIGURE(in, sized_requests);
    if (!(part >= SMALL_SHARE))
        return false;
    findings_say(f, "%s of the requests are for 16 bytes or less, for which headers cost most.",
                 findings_percent(part));
    return true;
}

bool findings_zeroed(const struct findings_input *in, struct findings_item *f)
{
    double bytes = FIGURE(in, calloc_zeroed_bytes), part = bytes / FIGURE(in, request_bytes);
    if (!(part >= ZEROED_SHARE) || is_rare(in, bytes, CLEARED_PER_S))
        return false;
    findings_say(f, "calloc allocates %s of the requested bytes.", findings_percent(part));
    return true;
}

// Returns the number of calls of the processes that were not recorded. The finding
// unrecorded_processes is about them.
static double unrecorded_calls(const struct findings_input *in)
{
    const struct trace_unrecorded *u = in->file ? &in->file->unrecorded : NULL;
    double calls = 0;
    for (size_t i = 0; u && i < u->n; i++)
        calls += u->items[i].calls == UINT64_MAX ? 0 : (double)u->items[i].calls;
    return calls;
}

bool findings_lost_records(const struct findings_input *in, struct findings_item *f)
{
    double lost = FIGURE(in, lost_records) - unrecorded_calls(in);
    if (!(lost > 0))
        return false;
    findings_say(f, "%s lost while recording: counts are too low.",
                 human_items((uint64_t)lost, "record was", "records were"));
    return true;
}

// Writes "process 12 (/usr/bin/x)" and the number of other processes.
static void name_process(char name[FINDING_TEXT_BYTES], const struct file_stat_process *p,
                         size_t others)
{
    snprintf(name, FINDING_TEXT_BYTES, "process %u (%s)%s%s", p->pid, p->exe ? p->exe : "",
             others ? " and " : "",
             others ? human_items(others, "other process", "other processes") : "");
}

static size_t count_processes(const struct findings_input *in)
{
    return in->file && in->file->kind != FILE_STAT_WORKLOAD ? in->file->n_processes : 0;
}

// Finds the first process whose facts contain a text at `offset`, and counts the other processes
// with such a text. Returns the text and sets `name`, or returns NULL if there is no such process.
static const char *find_process(const struct findings_input *in, size_t offset,
                                char name[FINDING_TEXT_BYTES])
{
    const struct file_stat_process *first = NULL;
    const char *text = NULL;
    size_t others = 0;
    for (size_t i = 0; i < count_processes(in); i++) {
        const struct file_stat_process *p = &in->file->processes[i];
        const char *at;
        memcpy(&at, (const char *)&p->facts + offset, sizeof at);
        others += at && first;
        text = first ? text : at;
        first = first || !at ? first : p;
    }
    if (first)
        name_process(name, first, others);
    return text;
}

bool findings_other_process_grows(const struct findings_input *in, struct findings_item *f)
{
    const struct file_stat *file = in->file;
    size_t growing = 0;
    const struct file_stat_process *most = file ? verdict_other_growing(file, &growing) : NULL;
    if (!most)
        return false;
    char name[FINDING_TEXT_BYTES];
    name_process(name, most, 0);
    findings_say(f, "Live bytes of %s grow linearly, by %s in %s%s.", name,
                 human_size((uint64_t)most->live_growth.grown_bytes),
                 human_time(most->live_growth.span_ns),
                 most->facts.ended ? ", until the process ends" : "");
    if (growing > 1)
        findings_say(f, " %s too.",
                     human_items(growing - 1, "other process grows", "other processes grow"));
    findings_advise(f,
                    "To see the call paths, run 'heaptape convert --pid %u -o %u.htw %s', then "
                    "'heaptape stat %u.htw'.",
                    most->pid, most->pid, file->name, most->pid);
    return true;
}

bool findings_turned_off(const struct findings_input *in, struct findings_item *f)
{
    char name[FINDING_TEXT_BYTES];
    const char *why = find_process(in, offsetof(struct trace_process, off_reason), name);
    if (why)
        findings_say(f, "Recording turned itself off in %s: %s.", name, why);
    return why;
}

static const struct trace_balance *balance_of(const struct findings_input *in)
{
    static const struct trace_balance none;
    return in->file && in->file->kind != FILE_STAT_WORKLOAD ? &in->file->unrecorded.balance : &none;
}

bool findings_missing_spools(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = balance_of(in);
    if (b->without_spool)
        findings_say(f,
                     "%s not recorded: no space, memory or file descriptor was left for a spool.",
                     human_items(b->without_spool, "process was", "processes were"));
    if (b->unreadable_spools)
        findings_say(f, " %s could not be read: a program truncated or overwrote it.",
                     human_items(b->unreadable_spools, "spool", "spools"));
    if (b->unopened_spools)
        findings_say(f,
                     " %s could not be opened: the recorder had no memory or file descriptor left.",
                     human_items(b->unopened_spools, "spool", "spools"));
    findings_advise(f, b->unreadable_spools
                           ? "Leave that program out with --follow."
                           : "Make room in /dev/shm, or raise the limits of ulimit -n or -v.");
    return f->text[0];
}

bool findings_overwritten_session(const struct findings_input *in, struct findings_item *f)
{
    if (!balance_of(in)->overwritten_session)
        return false;
    findings_say(f, "A program overwrote the memory that it shares with the recorder.");
    return true;
}

bool findings_stopped_early(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = balance_of(in);
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

bool findings_clock(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = balance_of(in);
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
    findings_advise(f, "Record without a time namespace; if the CPUs' counters differ, with "
                       "HEAPTAPE_CLOCK=monotonic.");
    return true;
}

bool findings_code_names(const struct findings_input *in, struct findings_item *f)
{
    const struct trace_balance *b = balance_of(in);
    if (b->bad_code_names)
        findings_say(f, "%s invalid.",
                     human_items(b->bad_code_names, "record of perf-PID.map or jit-PID.dump is",
                                 "records of perf-PID.map or jit-PID.dump are"));
    if (b->cut_code_names)
        findings_say(f, " Only the first 64 MiB of perf-PID.map and jit-PID.dump were read, of %s.",
                     human_items(b->cut_code_names, "process", "processes"));
    findings_advise(f,
                    b->bad_code_names
                        ? "Correct the program that writes the file: these functions have no names."
                        : "Record a shorter run: later functions have no names.");
    return f->text[0];
}

bool findings_unrecorded_processes(const struct findings_input *in, struct findings_item *f)
{
    double n = FIGURE(in, unrecorded_processes);
    if (!(n > 0))
        return false;
    const struct trace_unrecorded *u = &in->file->unrecorded;
    findings_say(f, "%s not recorded", human_items((uint64_t)n, "process was", "processes were"));
    if (u->n && u->items[0].name && u->items[0].why)
        findings_say(f, ", the first of them process %u (%s): %s", u->items[0].pid,
                     u->items[0].name, u->items[0].why);
    findings_say(f, ".");
    return true;
}

bool findings_own_malloc(const struct findings_input *in, struct findings_item *f)
{
    char name[FINDING_TEXT_BYTES];
    const char *object = find_process(in, offsetof(struct trace_process, bypassed_by), name);
    if (object)
        findings_say(f, "Calls of the malloc in %s were not recorded, in %s.", object, name);
    return object;
}

bool findings_bypassing_objects(const struct findings_input *in, struct findings_item *f)
{
    char name[FINDING_TEXT_BYTES];
    const char *object = find_process(in, offsetof(struct trace_process, deepbound), name);
    if (object)
        findings_say(
            f,
            "%s was opened with RTLD_DEEPBIND, and its calls of malloc were not recorded, in %s.",
            object, name);
    return object;
}

// Copies the note on the process with the most memory that no recorded block explains. Returns
// false if there is no such process.
static bool copy_note(const struct findings_input *in, struct findings_item *f)
{
    const struct unexplained *u = in->file ? &in->file->unexplained : NULL;
    char line[BALANCE_LINE_BYTES];
    for (size_t i = 0; u && u->n && i < count_processes(in); i++) {
        const struct trace_process *p = &in->file->processes[i].facts;
        if (p->number != u->items[0].process)
            continue;
        balance_unexplained(line, p, &u->items[0]);
        findings_say(f, "%s%s%s.", line, u->n > 1 ? "; the same applies to " : "",
                     u->n > 1 ? human_items(u->n - 1, "other process", "other processes") : "");
        return true;
    }
    return false;
}

// Returns the bytes in use in malloc that do not belong to recorded blocks, or 0 if there are only
// a few. In glibc's malloc, a block occupies up to 16 bytes more than its requested size.
static double unexplained_bytes(const struct file_stat_process *p)
{
    enum { EXTRA_BYTES = 16 };
    double in_use = p->facts.malloc_system_bytes ? (double)p->facts.malloc_in_use_bytes : 0;
    double missing = in_use - (double)p->summary.live_at_end_bytes -
                     EXTRA_BYTES * (double)p->summary.live_at_end_blocks;
    return missing > UNEXPLAINED_SHARE * in_use ? missing : 0;
}

bool findings_unexplained_memory(const struct findings_input *in, struct findings_item *f)
{
    const struct file_stat_process *most = NULL;
    char name[FINDING_TEXT_BYTES];
    for (size_t i = 0; i < count_processes(in); i++) {
        const struct file_stat_process *p = &in->file->processes[i];
        if (unexplained_bytes(p) > (most ? unexplained_bytes(most) : 0))
            most = p;
    }
    if (!most)
        return copy_note(in, f);
    name_process(name, most, 0);
    findings_advise(f, "These bytes are blocks of objects that bypass the library, or free blocks "
                       "in thread caches.");
    findings_say(
        f, "Recorded blocks do not explain %s of the %s that malloc had in use at the end, in %s.",
        human_size((uint64_t)unexplained_bytes(most)), human_size(most->facts.malloc_in_use_bytes),
        name);
    return true;
}

bool findings_short_stacks(const struct findings_input *in, struct findings_item *f)
{
    const struct coverage *c = in->file ? &in->file->coverage : NULL;
    uint64_t bytes = 0;
    if (!c || !c->known || !c->n_objects)
        return false;
    for (size_t i = 0; i < c->n_objects && i < SITES_JSON_TOP; i++)
        bytes += c->objects[i].bytes.allocated;
    double part = (double)bytes / (double)c->all.allocated;
    if (!(part >= SHORT_STACKS_SHARE))
        return false;
    findings_say(f,
                 "The stacks of %s of the allocated bytes end before the program's own code, most "
                 "of them in %s.",
                 findings_percent(part), c->objects[0].path);
    return true;
}

bool findings_unnamed_code(const struct findings_input *in, struct findings_item *f)
{
    static const struct {
        const char *program, *functions;
    } runtimes[] = {
        [COVERAGE_PYTHON] = {"python", "a function of the Python program"},
        [COVERAGE_NODE] = {"node", "a JavaScript function"},
        [COVERAGE_JAVA] = {"java", "a Java method"},
    };
    const struct coverage *c = in->file ? &in->file->coverage : NULL;
    for (unsigned i = 0; c && c->known && i < COVERAGE_RUNTIMES; i++) {
        const struct software_runtime *of = software_runtime_of(runtimes[i].program);
        double part = (double)c->interpreted[i].allocated / (double)c->all.allocated;
        if (!(part >= UNNAMED_SHARE) || c->interpreted[i].named)
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

bool findings_ambiguous_order(const struct findings_input *in, struct findings_item *f)
{
    if (!(FIGURE(in, order_ambiguous) > AMBIGUOUS_SHARE * FIGURE(in, events)))
        return false;
    findings_say(f, "The order of %s is ambiguous.",
                 human_items((uint64_t)FIGURE(in, order_ambiguous), "event", "events"));
    return true;
}

bool findings_cut_off(const struct findings_input *in, struct findings_item *f)
{
    if (!in->file || !in->file->cut.text[0])
        return false;
    findings_say(f, "The file is cut off: the figures cover its beginning only.");
    return true;
}

static const struct {
    const char *name;
    const char *advice;
    bool act;
    findings_rule *rule;
} rules[FINDING_NAMES] = {
#define HT_X(name, act, when, advice) {#name, advice, act, findings_##name},
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
            if (rules[i].act != (pass == 0) || !rules[i].rule(in, &item))
                continue;
            if (rules[i].advice)
                findings_advise(&item, "%s", rules[i].advice);
            f->items[f->n++] = item;
        }
    }
}

void findings_of_file(struct findings *f, const struct file_stat *s)
{
    union stat_figures stat;
    stat_figures_of_file(&stat, s);
    verdict_facts_of_file(&f->facts, s);
    verdict_find(&f->verdict, &f->facts);
    f->has_verdict = s->n_processes > 0;
    apply_rules(f,
                &(struct findings_input){f->has_verdict ? &f->verdict : NULL, s, &stat, NULL, 0});
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
    union stat_figures unknown;
    stat_figures_init(&unknown);
    f->has_verdict = false;
    apply_rules(f, &(struct findings_input){NULL, NULL, &unknown, results, n});
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
