// The numbers of a trace or workload.
#ifndef HEAPTAPE_COMMANDS_STAT_GATHER_H
#define HEAPTAPE_COMMANDS_STAT_GATHER_H

#include "analysis/sites.h"
#include "analysis/symbols.h"
#include "analysis/usage.h"
#include "base/err.h"
#include "base/fio.h"
#include "base/json.h"
#include "base/progress.h"
#include "trace/trace.h"
#include "workload/summary.h"

struct process_stat {
    uint32_t pid;
    char *argv; // each argument ended by NUL; owned
    uint32_t argv_bytes;
    char *exe; // owned, may be NULL
    struct workload_summary summary;
    struct trace_process facts; // of a trace
    struct counter *counter;    // while it is counted; owned
};

struct file_stat {
    const char *name; // borrowed
    bool is_trace;
    struct process_stat *processes; // those of a trace that have events; one of a workload
    size_t n_processes, capacity;
    struct trace_session session; // of a trace
    struct workload_summary total;
    uint64_t duration_ns, file_bytes;
    struct err cut; // where the file is cut off; empty when it is not
    // How the heap is used: NULL when only what the summary says was asked for.
    struct usage_sums *sums;         // of all processes
    struct usage usage;              // of the process with most events …
    size_t of_usage;                 // … which is this one
    struct workload_sample *samples; // of its memory
    size_t n_samples;
    struct by_site by_site;      // of that process; empty when no call sites were recorded
    struct workload_sites sites; // the same
    struct symbols *symbols;     // of them; NULL: none
    // While it is read.
    double ns_per_stamp;
    const struct input *in;
    struct progress progress;
};

// Reads the file; `path` must outlive *s. With `brief` of a workload only its end, where it can be. 0 or a negative errno
// with the text set; *s is released then.
int file_stat(struct file_stat *s, const char *path, bool brief, struct err *e);
void file_stat_release(struct file_stat *s);

void print_stat_json(const struct file_stat *s);
void print_stat_object(struct json *j, const struct file_stat *s); // the same to anywhere
void print_stat_text(const struct file_stat *s);

// What else a trace knows: of its recording, as an object of its own, and of a process, as keys of the one that is open; and
// the lines of the text about it.
struct json;
void print_stat_session(struct json *j, const struct trace_session *s);
void print_stat_facts(struct json *j, const struct trace_process *p);
void print_stat_recording(const struct trace_session *s);

// The part of the text behind the totals; nothing when only those were asked for.
void print_stat_usage(const struct file_stat *s);

#endif
