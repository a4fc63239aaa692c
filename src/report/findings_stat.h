// Input of the findings about a recording.
#ifndef HEAPTAPE_REPORT_FINDINGS_STAT_H
#define HEAPTAPE_REPORT_FINDINGS_STAT_H

#include "report/json/sites_json.h"
#include "report/stat_figures.h"

enum {
    FINDINGS_STAT_FRAME_BYTES = 200,
    FINDINGS_STAT_FUNCTION_BYTES = 101,
    FINDINGS_STAT_GROWTHS = 2,
};

// A size class. max_bytes is NAN for the last size class.
struct findings_stat_size {
    double max_bytes, count, bytes;
};

// A call site. The shown function of its stack is its name (stack_shown). Unknown values are NAN.
struct findings_stat_site {
    bool has_frame;
    char frame[FINDINGS_STAT_FRAME_BYTES]; // "render (server.cpp:44)"
    char function[FINDINGS_STAT_FUNCTION_BYTES];
    double allocs, peak_bytes;
#define HT_X(key, member) double key;
    SITES_JSON_USES(HT_X)
#undef HT_X
};

// The first process of a list, and `n`, the length of the list. Strings are borrowed from the file
// and may be NULL.
struct findings_stat_process {
    size_t n;
    uint64_t pid;
    const char *exe, *text; // `text` is a reason or the path of an object
};

struct findings_stat {
    union stat_figures figures;
    bool partial, cut_off;
    size_t n_processes;
    double last_event; // number of the event at the end of the timeline
    double freed_blocks;
    struct findings_stat_size sizes[USAGE_CLASSES];
    size_t n_sizes;
    // Number of growing reallocs in each of the first factor classes.
    double growths[FINDINGS_STAT_GROWTHS];
    struct findings_stat_site first[SITES_JSON_LIST_COUNT]; // the first site in each list
    struct findings_stat_process turned_off, own_malloc, deepbound;
    // The process with the most unexplained bytes, which are bytes in use in malloc that do not
    // belong to recorded blocks.
    struct findings_stat_process unexplained;
    double unexplained_bytes, in_use_bytes;
    struct findings_stat_process unrecorded; // the first process in the list; `exe` is its name
    struct trace_balance balance;
    double covered_bytes;           // allocated bytes of all stacks
    double short_stack_bytes;       // allocated bytes of stacks that end too early
    const char *short_stack_object; // object where most of these stacks end, or NULL if unknown
    // Allocated bytes of the stacks that contain a function of each interpreter. named_bytes counts
    // only the stacks that also contain a function of the interpreted program.
    double interpreted_bytes[COVERAGE_RUNTIMES], named_bytes[COVERAGE_RUNTIMES];
};

// Sets all values to unknown.
void findings_stat_init(struct findings_stat *f);

void findings_stat_of_file(struct findings_stat *f, const struct file_stat *s);

#endif
