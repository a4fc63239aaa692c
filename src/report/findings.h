// Findings are sentences that point out something unusual in a recording or in results. The text,
// the JSON and the HTML report show the same findings.
#pragma once

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/json/json_value.h"
#include "report/stat_figures.h"
#include "report/verdict.h"

// X(name, act, condition, advice) is called for each finding. `act` is true if a change may help.
// `advice` is NULL if there is no advice, or if the rule writes it. tools/generate copies the table
// into docs/reference/report.md. tests/commands/findings.bats has a positive and a negative case
// for each row.
// clang-format off
#define HT_FINDINGS(X) \
    X(verdict, true, "always first, for a recording: why the memory of the process is resident, see below; marked by its kind", NULL) \
    X(other_process_grows, true, "live bytes of another process than the verdict's grow linearly, by at least 1 MiB and a tenth of the peak of the verdict's process, and more blocks are live at the end than twice the blocks from before the recording that were freed", NULL) \
    X(faster_allocator, true, "an allocator has a ratio of wall times below 0.98, a 95 % interval without 1, and at most 1.10 times the first allocator's peak RSS", NULL) \
    X(fastest_uses_more, false, "the fastest allocator is faster, as above, but has more than 1.10 times the peak RSS", NULL) \
    X(none_faster, false, "several allocators have intervals, but no allocator is faster", NULL) \
    X(leanest, false, "the allocators differ in peak RSS", NULL) \
    X(fragmentation, false, "peak RSS divided by peak live bytes is at least 1.25", NULL) \
    X(below_live, false, "peak RSS divided by peak live bytes is below 0.95. This is not an error: live bytes are requested bytes, and pages that are never written to are not resident", NULL) \
    X(below_live_cleared, false, "together with below_live, if another allocator is not below 0.95", NULL) \
    X(below_live_agrees, false, "together with below_live, if the heap of the recorded program was below 0.95, too", NULL) \
    X(recorded_more, true, "together with below_live, if the heap of the recorded program, without its own mappings, was at least 0.95 of the live bytes at the peak", "The program wrote to more of its zeroed blocks than the replay does: replay with --touch all before you compare memory.") \
    X(recorded_more_unmapped, true, "the same, if the program had no own mappings or they were not recorded", "This peak includes the program's own mappings: record with --maps to subtract them. If it has none, replay with --touch all before you compare memory.") \
    X(kept, false, "RSS after all blocks are freed is at least half of the peak", NULL) \
    X(calls_matter, true, "the calls take at least 5 % of the program's CPU time, if that time is known", "Fewer calls or a faster allocator can make the program faster.") \
    X(calls_hardly_matter, false, "the calls take less than 5 % of the program's CPU time, by the upper bound of the times in the program", "A faster allocator can hardly make the program faster: compare memory instead.") \
    X(peak, false, "always, for a recording", NULL) \
    X(peak_of_a_site, false, "one call site has at least 20 % of the peak", NULL) \
    X(copied_growth, true, "at least 10 blocks of a call site, with at least 1 % of the requested bytes, are replaced at once by a block of the same site that is up to four times as large, and at most a fifth of its replaced blocks by another block; needs stacks. In a recording of at least a second, also at least 10 MB per second", "Reserve the final size first, or grow by a larger factor.") \
    X(realloc_moves, true, "at least half of the growing reallocs move the block, and they copy at least 1 % of the requested bytes and, in a recording of at least a second, 10 MB per second", "Grow by a factor of 1.5 or 2, or request the final size at once.") \
    X(remote_frees, true, "at least 5 % of the blocks are freed or resized by another thread, and all blocks were allocated during the recording", "Allocators differ most in remote frees: compare them, and see the table of frees between threads.") \
    X(remote_frees_of_a_site, true, "together with remote_frees, if one call site has at least 20 % of these blocks", NULL) \
    X(large_requests, true, "at least 1,000 requests are above 128 KiB and have at least half of the requested bytes", NULL) \
    X(hardly_used, true, "blocks of 16 KiB and more whose use was measured have at least a tenth of the requested bytes, and at least three quarters of their bytes were not used", "Request less: an allocator that clears or populates these blocks, or huge pages, would make them resident.") \
    X(hardly_used_of_a_site, true, "together with hardly_used, if one call site has at least 20 % of the unused bytes", NULL) \
    X(rounding_glibc, false, "internal fragmentation with glibc's chunks is at least 10 % of the requested bytes", NULL) \
    X(rounding_four, false, "the same with four size classes for each doubling", NULL) \
    X(above_class, true, "at least half of the requests of a call site are just above a size class, and lose at least 1 % of the requested bytes, and the call site has at least a tenth of the peak; needs stacks", "Request up to 16 bytes less.") \
    X(small_requests, false, "at least 30 % of the requests are for at most 16 bytes", "Embed such objects in the structures that point to them, or use arrays.") \
    X(zeroed, false, "calloc asks for at least a quarter of the bytes and, in a recording of at least a second, for 100 MB per second", "If the blocks are overwritten at once, malloc avoids clearing them.") \
    X(lost_records, true, "records were lost", "Record without --lossy, with less compression (-z lz4), or fewer processes (--follow).") \
    X(turned_off, true, "recording turned itself off in a process", "Later events are missing. Remove the cause and record again.") \
    X(missing_spools, true, "processes could not create a spool, or the recorder could not read one", NULL) \
    X(overwritten_session, true, "a program overwrote the memory that it shares with the recorder", "Events may be missing. Correct its wild pointer, and record again.") \
    X(stopped_early, true, "--max-size, a signal, or a detach ended the recording before the program exited", NULL) \
    X(clock, true, "timestamps of a process are ahead of the recorder's clock, or precede earlier ones", NULL) \
    X(code_names, true, "records of perf-PID.map or jit-PID.dump were skipped", NULL) \
    X(unrecorded_processes, true, "a process that ran below the recorder was not recorded", "The list gives the reason for each process; docs/guide/record.md has remedies.") \
    X(own_malloc, true, "an object before the library defines malloc, such as the executable: these calls are missing", "If the machine was busy, record again. Otherwise link the program without its own malloc, or preload that malloc as a library after libheaptape.so.") \
    X(bypassing_objects, true, "an object was opened with RTLD_DEEPBIND, and calls malloc past the library", "Open it without RTLD_DEEPBIND for the recording.") \
    X(unexplained_memory, true, "anonymous mappings without recorded blocks have more than 10 MiB and 10 % of the resident memory; or, together with bypassing_objects, malloc had at least 10 % more bytes in use at the end than recorded blocks explain", NULL) \
    X(short_stacks, true, "the stacks of at least 1 % of the allocated bytes end before the program's own code", "Build that object with unwind tables or frame pointers, or have the JIT compiler keep them.") \
    X(unnamed_code, true, "the stacks of at least half of the allocated bytes have functions of the interpreter of Python, Node.js or Java, and no stack has a function of the interpreted program", NULL) \
    X(ambiguous_order, false, "the order of more than 0.1 % of the events is ambiguous", "Record on a machine whose clock source is the TSC, or with fewer threads for each CPU.") \
    X(cut_off, true, "the file is cut off", NULL)
// clang-format on

enum finding_name {
#define HT_X(name, act, when, advice) FINDING_##name,
    HT_FINDINGS(HT_X)
#undef HT_X
        FINDING_NAMES
};

enum { FINDING_TEXT_BYTES = 1500, FINDING_ADVICE_BYTES = 700 };

struct findings_item {
    enum finding_name rule;
    const char *name;
    bool act;
    char text[FINDING_TEXT_BYTES];
    char advice[FINDING_ADVICE_BYTES]; // "" if there is no advice
};

// Findings of a file or of results. The size of the struct is about 100 KiB.
struct findings {
    // The verdict comes first, then the findings with `act`, then all others. Each group is in the
    // order of the table.
    struct findings_item items[FINDING_NAMES];
    size_t n;
    bool has_verdict;
    struct verdict verdict;
    struct verdict_facts facts;
};

// Derives the findings of a file, which must have been counted completely (FILE_STAT_ALL or
// FILE_STAT_REPORT) or be an aggregate.
void findings_of_file(struct findings *f, const struct file_stat *s);

// Reads the findings in an object of `stat --json`. Skips findings that this version does not know.
void findings_of_json(struct findings *f, const struct json_value *stat);

// Derives the findings of n results. A result is an object of `replay --json` or an allocator of
// `compare --json`. Skips rules whose figures are missing.
void findings_of_results(struct findings *f, const struct json_value *const *results, size_t n);

// Writes the name of an allocator of a result and its tunables, such as "glibc,MALLOC_ARENA_MAX=2".
// Returns the length of the whole name. If the length is `size` or more, the name is truncated.
size_t findings_allocator_name(const struct json_value *allocator, char *name, size_t size);

// Inserts the findings of `other`, keeping the order of f->items.
void findings_merge(struct findings *f, const struct findings *other);

// Writes the member "findings" and, if it is known, the member "verdict".
void findings_json(struct json *j, const struct findings *f);

// Prints a paragraph for each finding. An asterisk marks the findings for which a change may help.
void findings_print(const struct findings *f);

// Prints the first `n` paragraphs, without a heading.
void findings_print_some(const struct findings *f, size_t n);

// Returns the number of lines in the paragraph of item `i`.
unsigned findings_lines(const struct findings *f, size_t i);

// Input of the rules.
struct findings_input {
    const struct verdict *verdict;  // NULL if unknown
    const struct file_stat *file;   // NULL if the input has only results
    const union stat_figures *stat; // if the input has only results, all figures are unknown
    const struct json_value *const *results;
    size_t n_results;
};

// Private. The rule of each finding, findings_NAME. If its condition is true, appends the text to
// *f and returns true. The rules about results are in findings_results.c.
typedef bool findings_rule(const struct findings_input *in, struct findings_item *f);
#define HT_X(name, act, when, advice) findings_rule findings_##name;
HT_FINDINGS(HT_X)
#undef HT_X

// findings_say appends to the text of a finding, findings_advise appends to its advice.
#define findings_say(f, ...)    verdict_append((f)->text, sizeof(f)->text, __VA_ARGS__)
#define findings_advise(f, ...) verdict_append((f)->advice, sizeof(f)->advice, __VA_ARGS__)

// Returns a share such as "3.2 %" or "45 %". The result is in one of the buffers of cli/human.h.
const char *findings_percent(double share);
