// The table of the figures of `stat`, which are numbers that describe a recording or one of its
// processes.
//
// A new figure needs only its row here. The row determines its value, its place in `stat`'s text,
// JSON and schema, and its use in the findings, `report --diff` and the HTML report. usage_json.c
// and sites_json.c write lists (sizes, lifetimes, threads, call sites).
#pragma once

#include "analysis/file_stat.h"
#include "base/json.h"
#include "replay/figures.h"
#include "report/json/json_value.h"

// Groups of figures: X(group, keys). `keys` is the path of the JSON object that contains the
// figures: its keys, each followed by a dot. stat_json.c, usage_json.c and
// sites_json.c write each group where it belongs.
// clang-format off
#define STAT_FIGURES_GROUPS(X) \
    X(EVENTS, "") \
    X(THREADS, "") \
    X(OTHERS, "") \
    X(UNRECORDED, "unrecorded.") \
    X(TIME, "") \
    X(LIVE, "") \
    X(UNMATCHED, "") \
    X(START_BLOCKS, "") \
    X(START_BYTES, "") \
    X(ORDER, "order.") \
    X(DEPENDENCIES, "") \
    X(LOST, "") \
    X(FILE, "") \
    X(BIG, "") \
    X(REQUESTS, "requests.") \
    X(NULL_FREES, "") \
    X(GLIBC, "size_classes.glibc.") \
    X(FOUR, "size_classes.four_per_doubling.") \
    X(TOP_SIZES, "top_sizes.") \
    X(NEVER_FREED, "never_freed.") \
    X(CALLOC, "calloc.") \
    X(REALLOC, "realloc.") \
    X(GROWN_IN_PLACE, "realloc.grown_in_place.") \
    X(GROWN_MOVED, "realloc.grown_moved.") \
    X(SHRUNK_IN_PLACE, "realloc.shrunk_in_place.") \
    X(SHRUNK_MOVED, "realloc.shrunk_moved.") \
    X(ALIGNMENT, "alignment.") \
    X(PEAK, "peak.") \
    X(CALL_SITES, "call_sites.")

// X(name, key, unit, form, group, shown, when, better, label, text, source, value, meaning) is
// called for each figure, in the order of the text and of --diff:
//
//   name     member of union stat_figures
//   key      in the JSON object of its group
//   unit     COUNT, BYTES, NS, RATIO
//   form     INTEGER; OPTIONAL: an integer that the JSON omits if unknown; NUMBER: a floating-point
//            number; NULLABLE: a number that is null in the JSON if unknown
//   group    of STAT_FIGURES_GROUPS
//   shown    in addition to text and JSON: DIFF (report --diff), PAGE (totals of the HTML report)
//   when     name of a figure: the text omits this row if that figure is 0. ALWAYS: no condition
//   better   for DIFF: LESS, NEITHER
//   label    in report --diff and the HTML report
//   text     label in the text of `stat`; NULL if the text omits the figure
//   source   variable of compute() in stat_figures.c. If it is NULL, the figure is unknown
//   value    expression with these variables, without commas
//   meaning  a sentence without a full stop, for the schema and the reference
#define STAT_FIGURES_TABLE(X) \
    X(events, "events", COUNT, INTEGER, EVENTS, DIFF | PAGE, ALWAYS, LESS, "events", "events", \
      total, total->events, "recorded events") \
    X(threads, "threads", COUNT, INTEGER, THREADS, DIFF | PAGE, ALWAYS, NEITHER, "threads", "threads", \
      total, total->threads, "threads with events") \
    X(other_processes, "other_processes", COUNT, INTEGER, OTHERS, 0, other_processes, NEITHER, \
      "processes not listed", "  not listed", aggregate, aggregate->others, \
      "further processes, which are in the totals alone; only of an aggregate") \
    X(unrecorded_processes, "processes", COUNT, INTEGER, UNRECORDED, 0, ALWAYS, NEITHER, \
      "processes not recorded", NULL, unrecorded, unrecorded->processes, \
      "processes that were not recorded, with those that are not in the list") \
    X(duration_ns, "duration_ns", NS, INTEGER, TIME, PAGE, ALWAYS, NEITHER, "duration", "duration", \
      file, file->duration_ns, \
      "duration of the recording, or of the process of a workload; 0 without timestamps") \
    X(cpu_ns, "cpu_ns", NS, NULLABLE, TIME, PAGE, ALWAYS, NEITHER, "CPU time", "CPU time", \
      total, known(total->cpu_ns), \
      "CPU time of the processes from their first event to their end; null if unknown") \
    X(recording_cpu_ns, "recording_cpu_ns", NS, NULLABLE, TIME, PAGE, ALWAYS, NEITHER, \
      "CPU time of recording, about", "  of recording, about", \
      total, total->cpu_ns ? (double)total->recording_ns : NAN, \
      "part of cpu_ns that recording took, an estimate; null if cpu_ns is") \
    X(calls_min_cpu_ns, "calls_min_cpu_ns", NS, NULLABLE, TIME, PAGE, ALWAYS, NEITHER, \
      "CPU time of the calls, at least", "  of the calls", \
      total, total->calls_max_ns ? (double)total->calls_min_ns : NAN, \
      "lower bound of the part of cpu_ns that the allocator's functions took, from the calls that were timed, less the time of reading the clock; null if too few calls were timed") \
    X(calls_max_cpu_ns, "calls_max_cpu_ns", NS, NULLABLE, TIME, PAGE, ALWAYS, NEITHER, \
      "CPU time of the calls, at most", NULL, total, known(total->calls_max_ns), \
      "upper bound of the same, with the time of reading the clock") \
    X(requested_bytes, "requested_bytes", BYTES, INTEGER, LIVE, DIFF | PAGE, ALWAYS, LESS, \
      "requested", "requested", total, total->requested_bytes, \
      "sum of the requested sizes; calloc and reallocarray: the product") \
    X(usable_bytes, "usable_bytes", BYTES, OPTIONAL, LIVE, PAGE, usable_bytes, LESS, \
      "usable size", "  usable size", \
      total, total->usable_bytes ? total->usable_bytes : STAT_FIGURES_UNKNOWN, \
      "sum of malloc_usable_size of the blocks for which it was recorded; absent when it was recorded for none") \
    X(usable_requested_bytes, "usable_requested_bytes", BYTES, OPTIONAL, LIVE, 0, ALWAYS, LESS, \
      "requested, of blocks with a usable size", NULL, \
      total, total->usable_bytes ? total->usable_requested_bytes : STAT_FIGURES_UNKNOWN, \
      "requested bytes of the blocks that usable_bytes counts; absent when usable_bytes is") \
    X(big_block_bytes, "big_block_bytes", BYTES, INTEGER, BIG, PAGE, big_block_bytes, LESS, \
      "requested in blocks from 16 KiB", "  blocks from 16 KiB", big, big->bytes, \
      "bytes that allocations and reallocs of 16 KiB or more requested; absent with --brief") \
    X(big_block_measured_bytes, "big_block_measured_bytes", BYTES, INTEGER, BIG, PAGE, ALWAYS, NEITHER, \
      "of these, with their use measured", NULL, big, big->measured, \
      "part of big_block_bytes in blocks whose use by the program was measured; absent with --brief") \
    X(big_block_unused_bytes, "big_block_unused_bytes", BYTES, INTEGER, BIG, PAGE, \
      big_block_measured_bytes, LESS, "of these, not used", "    not used", big, big->unused, \
      "part of big_block_measured_bytes that the program did not use, without the pages at both ends of a block; absent with --brief") \
    X(sized_requests, "sized", COUNT, INTEGER, REQUESTS, 0, ALWAYS, LESS, "requests", NULL, \
      sums, requests.n, "calls that requested a size and succeeded") \
    X(request_bytes, "bytes", BYTES, INTEGER, REQUESTS, 0, ALWAYS, LESS, "bytes of requests", NULL, \
      sums, requests.bytes, "sum of the requested sizes") \
    X(request_min_bytes, "min_bytes", BYTES, INTEGER, REQUESTS, 0, ALWAYS, NEITHER, \
      "min requested size", NULL, sums, requests.min_bytes, \
      "minimum of the requested sizes") \
    X(request_mean_bytes, "mean_bytes", BYTES, NULLABLE, REQUESTS, DIFF | PAGE, ALWAYS, NEITHER, \
      "mean requested size", NULL, \
      sums, requests.n ? (double)requests.bytes / (double)requests.n : NAN, \
      "mean of the requested sizes; null without requests") \
    X(request_max_bytes, "max_bytes", BYTES, INTEGER, REQUESTS, DIFF | PAGE, ALWAYS, NEITHER, \
      "max requested size", NULL, sums, requests.max_bytes, \
      "maximum of the requested sizes") \
    X(peak_live_bytes, "peak_live_bytes", BYTES, INTEGER, LIVE, DIFF | PAGE, ALWAYS, LESS, \
      "peak live", "peak live", total, total->peak_live_bytes, \
      "maximum of the live bytes, which are the requested sizes of live blocks; of several processes the sum of their maxima") \
    X(peak_pid, "pid", COUNT, INTEGER, PEAK, 0, ALWAYS, NEITHER, "process of the peak", NULL, \
      process, process->pid, \
      "process with the highest peak of live bytes; the figures apply to this process") \
    X(peak_event, "event", COUNT, INTEGER, PEAK, 0, ALWAYS, NEITHER, "event of the peak", NULL, \
      usage, usage->peak.event, \
      "number of the first event after which live bytes are at their maximum") \
    X(peak_ns, "ns", NS, NULLABLE, PEAK, 0, ALWAYS, NEITHER, "time of the peak", NULL, \
      usage, usage->ns_per_stamp > 0 ? round((double)usage->peak.stamp * usage->ns_per_stamp) : NAN, \
      "time of this event since the start of the process; null without timestamps") \
    X(peak_bytes, "bytes", BYTES, INTEGER, PEAK, 0, ALWAYS, LESS, "bytes at peak", NULL, \
      usage, usage->peak.bytes, "live bytes after this event") \
    X(peak_live_blocks, "blocks", COUNT, INTEGER, PEAK, DIFF | PAGE, ALWAYS, LESS, \
      "blocks at peak", NULL, usage, usage->peak.blocks, \
      "live blocks after this event") \
    X(peak_blocks, "peak_blocks", COUNT, INTEGER, PEAK, 0, ALWAYS, LESS, "max live blocks", NULL, \
      usage, usage->max_blocks, "maximum of the live blocks at any time") \
    X(peak_rss_bytes, "rss_bytes", BYTES, NULLABLE, PEAK, 0, ALWAYS, LESS, "peak RSS", NULL, \
      process, known(process->summary.peak_rss_bytes), \
      "highest RSS of the process by the kernel's count, with heaptape's own mappings; null if unknown, because only part of the process was recorded or the recording is older") \
    X(recording_rss_bytes, "recording_rss_bytes", BYTES, NULLABLE, PEAK, 0, ALWAYS, NEITHER, \
      "resident memory of heaptape", NULL, process, known(process->summary.recording_rss_bytes), \
      "resident memory of heaptape's own mappings in this process, which all samples of RSS include; null if unknown, because the recording has no map of pages of the process") \
    X(preexisting_bytes, "preexisting_bytes", BYTES, INTEGER, START_BYTES, PAGE, preexisting_blocks, \
      LESS, "live at start", "live at start", total, total->preexisting_bytes, \
      "requested bytes of the preexisting blocks") \
    X(preexisting_blocks, "preexisting_blocks", COUNT, INTEGER, START_BLOCKS, PAGE, \
      preexisting_blocks, LESS, "blocks at start", "  blocks", total, total->preexisting_blocks, \
      "blocks that were live at the start and whose allocation is known: blocks that a fork child inherited, or that were live at the start of a slice") \
    X(live_at_end_bytes, "live_at_end_bytes", BYTES, INTEGER, LIVE, DIFF | PAGE, ALWAYS, LESS, \
      "live at end", "live at end", total, total->live_at_end_bytes, \
      "live bytes at the end") \
    X(live_at_end_blocks, "live_at_end_blocks", COUNT, INTEGER, LIVE, DIFF | PAGE, ALWAYS, LESS, \
      "blocks at end", "  blocks", total, total->live_at_end_blocks, \
      "live blocks at the end") \
    X(never_freed_blocks, "count", COUNT, INTEGER, NEVER_FREED, 0, ALWAYS, LESS, \
      "blocks never freed", NULL, sums, never_freed.blocks, \
      "blocks live at the end") \
    X(never_freed_bytes, "bytes", BYTES, INTEGER, NEVER_FREED, 0, ALWAYS, LESS, \
      "bytes never freed", NULL, sums, never_freed.bytes, \
      "requested bytes of these") \
    X(null_frees, "null_frees", COUNT, INTEGER, NULL_FREES, PAGE, ALWAYS, LESS, "frees of NULL", NULL, \
      sums, sums->null_frees, "frees of NULL") \
    X(calloc_calls, "count", COUNT, INTEGER, CALLOC, 0, ALWAYS, LESS, "callocs", NULL, \
      sums, sums->kinds[HT_CALLOC].calls, "calls of calloc") \
    X(calloc_zeroed_bytes, "zeroed_bytes", BYTES, INTEGER, CALLOC, PAGE, ALWAYS, LESS, \
      "zeroed by calloc", NULL, sums, sums->kinds[HT_CALLOC].bytes, \
      "bytes that calloc had to zero") \
    X(calloc_max_elements, "max_elements", COUNT, INTEGER, CALLOC, 0, ALWAYS, LESS, \
      "max elements of calloc", NULL, sums, sums->calloc_elements_max, \
      "maximum of the number of elements") \
    X(realloc_from_null, "from_null", COUNT, INTEGER, REALLOC, 0, ALWAYS, LESS, \
      "reallocs of NULL", NULL, sums, sums->resizes.from_null, \
      "calls with a NULL pointer") \
    X(realloc_to_zero, "to_zero", COUNT, INTEGER, REALLOC, 0, ALWAYS, LESS, \
      "reallocs to size 0", NULL, sums, sums->resizes.freed, \
      "calls with size 0 that freed the block") \
    X(realloc_failed, "failed", COUNT, INTEGER, REALLOC, 0, ALWAYS, LESS, "failed reallocs", NULL, \
      sums, sums->resizes.failed, "calls that returned an error") \
    X(realloc_same_size, "same_size", COUNT, INTEGER, REALLOC, 0, ALWAYS, LESS, \
      "reallocs to the same size", NULL, sums, sums->resizes.same, \
      "calls with the size that the block had") \
    X(grown_in_place_calls, "count", COUNT, INTEGER, GROWN_IN_PLACE, 0, ALWAYS, LESS, \
      "reallocs that grew in place", NULL, sums, sums->resizes.grown_in_place.blocks, \
      "calls") \
    X(grown_in_place_bytes, "bytes", BYTES, INTEGER, GROWN_IN_PLACE, 0, ALWAYS, LESS, \
      "bytes they kept", NULL, sums, sums->resizes.grown_in_place.bytes, \
      "sum of the smaller of the old and the new size, which is the size of the copy") \
    X(grown_moved_calls, "count", COUNT, INTEGER, GROWN_MOVED, DIFF, ALWAYS, LESS, \
      "reallocs that grew and moved", NULL, sums, sums->resizes.grown_moved.blocks, \
      "calls") \
    X(grown_moved_bytes, "bytes", BYTES, INTEGER, GROWN_MOVED, DIFF, ALWAYS, LESS, \
      "bytes they copied", NULL, sums, sums->resizes.grown_moved.bytes, \
      "sum of the smaller of the old and the new size, which is the size of the copy") \
    X(shrunk_in_place_calls, "count", COUNT, INTEGER, SHRUNK_IN_PLACE, 0, ALWAYS, LESS, \
      "reallocs that shrank in place", NULL, sums, sums->resizes.shrunk_in_place.blocks, \
      "calls") \
    X(shrunk_in_place_bytes, "bytes", BYTES, INTEGER, SHRUNK_IN_PLACE, 0, ALWAYS, LESS, \
      "bytes they kept", NULL, sums, sums->resizes.shrunk_in_place.bytes, \
      "sum of the smaller of the old and the new size, which is the size of the copy") \
    X(shrunk_moved_calls, "count", COUNT, INTEGER, SHRUNK_MOVED, 0, ALWAYS, LESS, \
      "reallocs that shrank and moved", NULL, sums, sums->resizes.shrunk_moved.blocks, \
      "calls") \
    X(shrunk_moved_bytes, "bytes", BYTES, INTEGER, SHRUNK_MOVED, 0, ALWAYS, LESS, \
      "bytes they copied", NULL, sums, sums->resizes.shrunk_moved.bytes, \
      "sum of the smaller of the old and the new size, which is the size of the copy") \
    X(remote_frees, "remote_frees", COUNT, INTEGER, LIVE, DIFF | PAGE, ALWAYS, LESS, \
      "remote frees", "remote frees", total, total->remote_frees, \
      "blocks that another thread freed or resized than the one that allocated them") \
    X(dependencies, "dependencies", COUNT, INTEGER, DEPENDENCIES, PAGE, ALWAYS, LESS, \
      "thread dependencies", "thread dependencies", total, total->dependencies, \
      "dependencies between threads that a workload stores") \
    X(dependencies_needed, "dependencies_needed", COUNT, INTEGER, DEPENDENCIES, 0, ALWAYS, LESS, \
      "dependencies before reduction", NULL, total, total->dependencies_needed, \
      "uses of a block by another thread than before, before implied dependencies are removed") \
    X(slots, "slots", COUNT, INTEGER, DEPENDENCIES, 0, ALWAYS, LESS, "slots", NULL, total, total->slots, \
      "slots: the largest number of blocks that the workload addresses at a time") \
    X(order_repaired, "repaired", COUNT, INTEGER, ORDER, PAGE, ALWAYS, LESS, \
      "events reordered", "events reordered", total, total->order_repaired, \
      "events whose order differs from the order of their timestamps") \
    X(order_ambiguous, "ambiguous", COUNT, INTEGER, ORDER, PAGE, ALWAYS, LESS, \
      "ambiguous order", "ambiguous order", total, total->order_ambiguous, \
      "events whose order could not be proved") \
    X(unmatched_frees, "unmatched_frees", COUNT, INTEGER, UNMATCHED, PAGE, ALWAYS, LESS, \
      "unmatched frees", "unmatched frees", total, total->unmatched_frees, \
      "frees and reallocs of blocks whose allocation was not recorded; the blocks count as preexisting") \
    X(lost_records, "lost_records", COUNT, INTEGER, LOST, PAGE, ALWAYS, LESS, \
      "lost records", "lost records", total, total->lost_records + lost_elsewhere, \
      "records that were dropped while recording") \
    X(glibc_fragmentation_bytes, "internal_fragmentation_bytes", BYTES, INTEGER, GLIBC, DIFF, ALWAYS, \
      LESS, "internal fragmentation, glibc", NULL, sums, glibc_bytes, \
      "bytes that rounding up to the classes adds to all requests") \
    X(four_fragmentation_bytes, "internal_fragmentation_bytes", BYTES, INTEGER, FOUR, DIFF, ALWAYS, \
      LESS, "internal fragmentation, 4/doubling", NULL, sums, four_bytes, \
      "bytes that rounding up to the classes adds to all requests") \
    X(alignment_padding_bytes, "padding_bytes", BYTES, INTEGER, ALIGNMENT, 0, ALWAYS, LESS, \
      "padding to multiples of the alignment", NULL, sums, sums->align_padding_bytes, \
      "bytes that would make each aligned request a multiple of its alignment") \
    X(exact_up_to_bytes, "exact_up_to_bytes", BYTES, INTEGER, TOP_SIZES, 0, ALWAYS, NEITHER, \
      "exact up to", NULL, sums, USAGE_EXACT, \
      "counts of sizes up to this one are exact") \
    X(missed_count_max, "missed_count_max", COUNT, INTEGER, TOP_SIZES, 0, ALWAYS, NEITHER, \
      "missed counts", NULL, sums, sums->frequent.missed, \
      "the count of a larger size can be too low by at most this") \
    X(used_sites, "sites", COUNT, INTEGER, CALL_SITES, 0, ALWAYS, NEITHER, "call sites", NULL, \
      sites, count_used(sites), "call sites that allocated") \
    X(sites_peak_live_bytes, "peak_live_bytes", BYTES, INTEGER, CALL_SITES, 0, ALWAYS, LESS, \
      "peak live, by call site", NULL, sites, sites->peak_bytes, \
      "peak of the live bytes of the process") \
    X(sites_live_at_end_bytes, "live_at_end_bytes", BYTES, INTEGER, CALL_SITES, 0, ALWAYS, LESS, \
      "live at end, by call site", NULL, sites, sites->live_bytes, \
      "live bytes of the process at the end") \
    X(file_bytes, "file_bytes", BYTES, INTEGER, FILE, PAGE, ALWAYS, NEITHER, "file", "file", \
      file, file->file_bytes, "size of the file") \
    X(bytes_per_event, "bytes_per_event", RATIO, NUMBER, FILE, 0, ALWAYS, NEITHER, \
      "bytes per event", "bytes per event", \
      file, total->events ? (double)file->file_bytes / (double)total->events : 0, \
      "size of the file divided by its events; 0 without events")
// clang-format on

enum {
#define HT_X(name, key, unit, form, group, shown, when, better, label, text, ...)                  \
    STAT_FIGURE_##name,
    STAT_FIGURES_TABLE(HT_X)
#undef HT_X
        STAT_FIGURES,
    STAT_FIGURE_ALWAYS = STAT_FIGURES,
};

enum stat_figures_group {
#define HT_X(group, object) STAT_FIGURES_##group,
    STAT_FIGURES_GROUPS(HT_X)
#undef HT_X
};

enum stat_figures_form {
    STAT_FIGURES_INTEGER,
    STAT_FIGURES_OPTIONAL,
    STAT_FIGURES_NUMBER,
    STAT_FIGURES_NULLABLE,
};

enum stat_figures_shown { STAT_FIGURES_IN_DIFF = 1, STAT_FIGURES_IN_PAGE = 2 };

struct stat_figures_info {
    const char *key;
    enum figure_unit unit;
    enum stat_figures_form form;
    enum stat_figures_group group;
    unsigned shown;
    unsigned when; // number of a figure, or STAT_FIGURE_ALWAYS
    enum figure_better better;
    const char *label, *text; // text may be NULL
};

extern const struct stat_figures_info stat_figures_infos[STAT_FIGURES];

// The figures of a file or of a process. `integers` overlaps the members of the forms INTEGER and
// OPTIONAL, `numbers` overlaps the other members. Unknown values are STAT_FIGURES_UNKNOWN or NAN.
#define STAT_FIGURES_UNKNOWN UINT64_MAX
union stat_figures {
    struct {
#define STAT_FIGURES_TYPE_INTEGER  uint64_t
#define STAT_FIGURES_TYPE_OPTIONAL uint64_t
#define STAT_FIGURES_TYPE_NUMBER   double
#define STAT_FIGURES_TYPE_NULLABLE double
#define HT_X(name, key, unit, form, group, shown, when, better, label, text, ...)                  \
    STAT_FIGURES_TYPE_##form name;
        STAT_FIGURES_TABLE(HT_X)
#undef HT_X
    };
    uint64_t integers[STAT_FIGURES];
    double numbers[STAT_FIGURES];
};

// Sets all figures to unknown.
void stat_figures_init(union stat_figures *f);

// Compute the figures of a file or of a process, or read the figures from an object of `stat
// --json`. The value of a figure that was not counted is unknown.
void stat_figures_of_file(union stat_figures *f, const struct file_stat *s);
void stat_figures_of(union stat_figures *f, const struct workload_summary *total,
                     const struct file_stat *file); // `file` may be NULL
void stat_figures_of_json(union stat_figures *f, const struct json_value *stat);

// Returns the value of the figure with this number, or NAN if the value is unknown.
double stat_figures_value(const union stat_figures *f, unsigned figure);

// Writes the members of a group into the open object.
void stat_figures_put(struct json *j, const union stat_figures *f, enum stat_figures_group group);

// Writes the path of the figure in the JSON of `stat`, such as "peak.bytes", to a buffer and
// returns the buffer.
enum { STAT_FIGURES_PATH_BYTES = 80 };
char *stat_figures_path(unsigned figure, char path[STAT_FIGURES_PATH_BYTES]);
