// Statistics of a trace or workload: totals and heap usage.
#pragma once

#include "analysis/big_blocks.h"
#include "analysis/by_site.h"
#include "analysis/coverage.h"
#include "analysis/growth.h"
#include "analysis/memory/rss_history.h"
#include "analysis/memory/unexplained.h"
#include "analysis/symbols/symbols.h"
#include "analysis/usage.h"
#include "convert/process.h"

enum file_stat_part {
    FILE_STAT_ALL,
    FILE_STAT_BRIEF,  // only totals; reads only the end of a workload if possible
    FILE_STAT_REPORT, // everything, and the flows and parts of call sites
    FILE_STAT_SITES,  // totals, and call sites of the process with the highest peak
    FILE_STAT_POOLS,  // like SITES, but for blocks in the program's pools
};

enum file_stat_kind { FILE_STAT_WORKLOAD, FILE_STAT_TRACE, FILE_STAT_AGGREGATE };

struct file_stat_process {
    uint32_t pid;
    char *argv; // arguments, each terminated by NUL; owned
    uint32_t argv_bytes;
    char *exe; // owned, may be NULL
    struct workload_summary summary;
    struct trace_process facts; // from a trace or aggregate; of a workload, only the allocator
    struct growth live_growth;  // growth of live bytes over time, in a trace, if `sums` is set
    struct file_stat_counter *counter; // set only while reading; owned
};

// Two points of a run. They select the blocks that were allocated between the points and are live
// at the second point.
struct file_stat_points {
    struct slice_point from, to;
};

struct file_stat_settings {
    enum file_stat_part part;
    const struct file_stat_points *span; // must outlive the result; may be NULL
    const struct convert_watch *watch;   // may be NULL
};

// Live bytes of the kept process at the end of each period, from an aggregate. All periods have the
// same length.
struct file_stat_periods {
    uint64_t period_ns;
    size_t n;
    uint64_t live_bytes[BY_SITE_BINS];
};

struct file_stat {
    const char *name; // borrowed
    enum file_stat_kind kind;
    // In a trace, the processes with events; in a workload, one process.
    struct file_stat_process *processes;
    size_t n_processes, capacity;
    struct trace_session session;       // from a trace or aggregate
    struct trace_unrecorded unrecorded; // from a trace or aggregate
    // The aggregate was written while the recording was still running.
    bool under_way;
    uint64_t others; // number of other processes in an aggregate, included only in the totals
    struct file_stat_periods periods; // from an aggregate
    struct workload_summary total;
    uint64_t duration_ns, file_bytes;
    struct err cut; // where the file is truncated; the message is empty if the file is complete
    // Only part of the run was recorded. Blocks that are live at the end may have been freed later.
    bool partial;
    // The totals were copied from the summary of the file and have not been verified.
    bool summary_only;
    // Use of blocks of HT_BIG_BYTES or more. Only for FILE_STAT_ALL.
    struct big_blocks_use big;
    // Heap usage.
    struct usage_sums *sums;         // sums over all processes; NULL unless FILE_STAT_ALL
    struct usage usage;              // usage of the kept process (highest peak of live bytes)
    size_t of_usage;                 // index of the kept process
    bool kept;                       // of_usage is valid
    struct workload_sample *samples; // memory samples of the kept process
    size_t n_samples;
    // Call sites of the kept process; empty if no call sites were recorded.
    struct by_site by_site;
    uint64_t stack_sample_bytes;  // mean number of bytes per sampled allocation; 0 if not sampled
    struct workload_sites sites;  // stacks of the sites of the kept process
    struct symbols *symbols;      // names for `sites`, or NULL
    struct coverage coverage;     // coverage of all processes
    struct big_blocks big_blocks; // from a workload
    // History of the kept process in a trace, if `sums` is set. history.n is 0 if the trace has no
    // page maps.
    struct rss_history history;
    // Memory that no recorded block explains, in a trace, if `sums` is set. Its process numbers are
    // facts.number.
    struct unexplained unexplained;
    // State while reading.
    enum file_stat_part part;
    double ns_per_stamp;
    uint64_t clock_hz; // from a trace
    unsigned stamp_shift;
    const struct file_stat_points *span; // may be NULL
    const struct input *in;
    struct progress *progress;   // may be NULL
    struct rss_reading *reading; // reads `history`; NULL if the trace has no page maps
};

// Reads the file. `path` must outlive *s. `watch` receives the progress and the location at which a
// truncated file ends; it may be NULL. Returns 0, or a negative errno with *e set and *s released.
int file_stat(struct file_stat *s, const char *path, enum file_stat_part part,
              const struct convert_watch *watch, struct err *e);

// Like file_stat, but for an input positioned at its first byte. Closes or moves the input. s->name
// is the name of the input. For FILE_STAT_SITES, also counts the blocks in how->span.
int file_stat_input(struct file_stat *s, struct input *in, const struct file_stat_settings *how,
                    struct err *e);
void file_stat_release(struct file_stat *s);

// Returns the name of the file type.
const char *file_stat_kind_name(const struct file_stat *s);

// The following functions are steps of file_stat, for files that already contain finished figures.
// Each returns 0 or -ENOMEM.
//
// Adds a process and moves *facts to it.
int file_stat_add_process(struct file_stat *s, struct trace_process *facts);

// Copies a trace's data about a process to the process's summary.
void file_stat_set_facts(struct workload_summary *s, const struct trace_process *facts,
                         uint64_t clock_hz);

// Finishes the call sites of the process that was added last, and counts the coverage of their
// stacks. The summary of the process must be set. If the process has the highest peak so far, moves
// the call sites to *s and sets *kept. The caller must release *b and *sites.
int file_stat_keep_sites(struct file_stat *s, struct by_site *b, struct workload_sites *sites,
                         bool *kept);

// Computes the totals after the last process.
int file_stat_finish(struct file_stat *s);
