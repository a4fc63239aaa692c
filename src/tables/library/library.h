// Inside of libheaptape-trace: the handle behind include/heaptape/trace.h, which is the contract.
#ifndef HEAPTAPE_LIBRARY_LIBRARY_H
#define HEAPTAPE_LIBRARY_LIBRARY_H

#include "analysis/symbols/symbols.h"
#include "heaptape/trace.h"
#include "tables/stream.h"
#include "workload/file.h"

enum library_use { LIBRARY_UNUSED, LIBRARY_EVENTS, LIBRARY_COLUMNS, LIBRARY_OPS };

enum { LIBRARY_COLUMNS_N = HEAPTAPE_COLUMN_KNOWN + 1 };

// A process, from its facts and its row.
struct library_process {
    heaptape_process of; // texts are owned
    bool has_row;
    struct workload_sites sites;
    heaptape_thread *threads; // owned
    size_t n_threads;
    struct symbols *symbols; // NULL: not asked for yet
};

struct library_facts {
    struct library_process **processes; // owned
    size_t n, capacity;
    bool complete;
};

struct heaptape_trace {
    struct err e;
    char *path;
    struct file file;
    bool open, once; // once: it is a pipe
    enum library_use use;
    bool over;  // the end of the events has been handed on
    int failed; // what ended them: every further call returns it
    struct err failure, cut;
    struct tables_stream *stream;
    uint32_t columns; // a bit for each that is read, by heaptape_column_id
    struct library_facts facts;
    struct library_facts
        coming; // of the events that are being read; the scanning thread's until its rows come
    heaptape_event event;
    heaptape_op op;
    heaptape_frame frame;
    uint64_t *op_numbers; // by thread
    size_t n_threads, threads_capacity;
    heaptape_dependency *dependencies;
    size_t dependencies_capacity;
    struct buf text;
};

// Begins a call: forgets the text of the last error.
static inline struct err *library_begin(heaptape_trace *t)
{
    t->e.text[0] = 0;
    return &t->e;
}

// Opens the file for use, again if it was read before. 0 or a negative errno with the text set.
int library_open(heaptape_trace *t, struct err *e);

// Prepares a scan: facts and rows of processes go to *to.
void library_facts_scan(struct tables_scan *scan, struct library_facts *to);
int library_facts_row(struct library_facts *f, const struct tables_row *row);
void library_facts_release(struct library_facts *f);

// They are complete, and become *f unless that is complete already.
void library_facts_move(struct library_facts *f, struct library_facts *from);

#endif
