// The numbers of a trace or workload.
#ifndef HEAPTAPE_CLI_STAT_H
#define HEAPTAPE_CLI_STAT_H

#include "base/err.h"
#include "report/stats.h"

struct process_stat {
    uint32_t pid;
    char *argv; // each argument ended by NUL; owned
    uint32_t argv_bytes;
    char *exe; // owned, may be NULL
    struct workload_summary summary;
    struct counter *counter; // while it is counted; owned
};

struct file_stat {
    const char *name; // borrowed
    bool is_trace;
    struct process_stat *processes; // those of a trace that have events; one of a workload
    size_t n_processes, capacity;
    struct workload_summary total;
    uint64_t duration_ns, file_bytes;
    struct err cut; // where the file is cut off; empty when it is not
};

// Reads the file; `path` must outlive *s. 0 or a negative errno with the text set; *s is released then.
int file_stat(struct file_stat *s, const char *path, struct err *e);
void file_stat_release(struct file_stat *s);

void print_stat_json(const struct file_stat *s);
void print_stat_text(const struct file_stat *s);

#endif
