// Statistics of a file, which is a trace or a workload: totals, and how the heap is used.
#ifndef HEAPTAPE_ANALYSIS_FILE_STAT_H
#define HEAPTAPE_ANALYSIS_FILE_STAT_H

#include "analysis/big_blocks.h"
#include "analysis/by_site.h"
#include "analysis/coverage.h"
#include "analysis/symbols/symbols.h"
#include "analysis/usage.h"
#include "convert/process.h"

enum file_stat_part {
    FILE_STAT_ALL,
    FILE_STAT_BRIEF,  // the totals alone; of a workload only its end is read, where it can be
    FILE_STAT_REPORT, // all, and the flows and parts of call sites
    FILE_STAT_SITES, // the totals, and the call sites of the process with the highest peak of live bytes
    FILE_STAT_POOLS, // the same, with the call sites of blocks of the program's pools
};

enum file_stat_kind { FILE_STAT_WORKLOAD, FILE_STAT_TRACE, FILE_STAT_AGGREGATE };

struct file_stat_process {
    uint32_t pid;
    char *argv; // each argument ended by NUL; owned
    uint32_t argv_bytes;
    char *exe; // owned, may be NULL
    struct workload_summary summary;
    struct trace_process facts;        // of a trace or an aggregate
    struct file_stat_counter *counter; // while it is counted; owned
};

// Of what was allocated from one point to the other, and is live there.
struct file_stat_points {
    struct slice_point from, to;
};

// What an aggregate holds of the process that is kept: its live bytes at the ends of periods of equal length.
struct file_stat_periods {
    uint64_t period_ns;
    size_t n;
    uint64_t live_bytes[BY_SITE_BINS];
};

struct file_stat {
    const char *name; // borrowed
    enum file_stat_kind kind;
    struct file_stat_process *processes; // those of a trace that have events; one of a workload
    size_t n_processes, capacity;
    struct trace_session session;       // of a trace or an aggregate
    struct trace_unrecorded unrecorded; // the same
    bool under_way;  // an aggregate: the recording was not over when it was written
    uint64_t others; // further processes of an aggregate, which are in the totals alone
    struct file_stat_periods periods; // of an aggregate
    struct workload_summary total;
    uint64_t duration_ns, file_bytes;
    struct err cut; // where the file is cut off; empty when it is not
    bool
        partial; // not the whole life of each process: what is live at the end may have been freed later
    bool
        summary_only; // the totals are those of the file's summary, which was not compared with its ops
    // Requested in blocks of HT_BIG_BYTES and more, and of that where it was measured how much was used; FILE_STAT_ALL alone.
    struct big_blocks_use big;
    // How the heap is used.
    struct usage_sums *sums;         // of all processes; NULL unless FILE_STAT_ALL
    struct usage usage;              // of the process with the highest peak of live bytes …
    size_t of_usage;                 // … which is this one
    bool kept;                       // there is one
    struct workload_sample *samples; // of its memory
    size_t n_samples;
    struct by_site by_site; // of that process; empty when no call sites were recorded
    uint64_t
        stack_sample_bytes; // call sites are those of one allocation per so many bytes; 0: of all, or none
    struct workload_sites sites;  // the same
    struct symbols *symbols;      // of them; NULL: none
    struct coverage coverage;     // of the stacks of all processes
    struct big_blocks big_blocks; // of a workload
    // While it is read.
    enum file_stat_part part;
    double ns_per_stamp;
    uint64_t clock_hz; // of a trace
    unsigned stamp_shift;
    const struct file_stat_points *span; // NULL: none
    const struct input *in;
    struct progress *progress; // NULL: none
};

// Reads the file; `path` must outlive *s. `watch` shows progress, and where the file is cut off; NULL: nothing. 0 or a
// negative errno with the text set; *s is released then.
int file_stat(struct file_stat *s, const char *path, enum file_stat_part part,
              const struct convert_watch *watch, struct err *e);

// The same, with the span of FILE_STAT_SITES counted, which must outlive the call.
int file_stat_span(struct file_stat *s, const char *path, enum file_stat_part part,
                   const struct file_stat_points *span, const struct convert_watch *watch,
                   struct err *e);
// The same of an input that stands at its first byte, which is moved or closed; its name becomes that of *s.
int file_stat_input(struct file_stat *s, struct input *in, enum file_stat_part part,
                    const struct file_stat_points *span, const struct convert_watch *watch,
                    struct err *e);
void file_stat_release(struct file_stat *s);

// The name of the kind of file.
const char *file_stat_kind_name(const struct file_stat *s);

// The steps, for readers of files whose figures were counted before. Each has 0 or -ENOMEM.
//
// Adds a process; *facts becomes that of *s.
int file_stat_add_process(struct file_stat *s, struct trace_process *facts);

// Sets what the trace says itself of a process in its summary.
void file_stat_set_facts(struct workload_summary *s, const struct trace_process *facts,
                         uint64_t clock_hz);

// The summary of the last process that was added is set: finishes its call sites, counts what their stacks cover, and, if
// the process is the one to be kept, moves them to *s. The caller releases what is left. *kept says whether it is.
int file_stat_keep_sites(struct file_stat *s, struct by_site *b, struct workload_sites *sites,
                         bool *kept);

// All processes are there: adds up the totals.
int file_stat_finish(struct file_stat *s);

#endif
