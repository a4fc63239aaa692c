// Internals of libheaptape-trace. include/heaptape/trace.h defines the public interface.
#pragma once

#include "analysis/symbols/symbols.h"
#include "heaptape/trace.h"
#include "tables/stream.h"
#include "workload/file.h"

enum library_use { LIBRARY_UNUSED, LIBRARY_EVENTS, LIBRARY_COLUMNS, LIBRARY_OPS };

enum { LIBRARY_COLUMNS_N = HEAPTAPE_COLUMN_KNOWN + 1 };

// A process, filled in from its facts and from its row in the table of processes.
struct library_process {
    heaptape_process of; // strings are owned
    bool has_row;
    struct workload_sites sites;
    heaptape_thread *threads; // owned
    size_t n_threads;
    struct symbols *symbols; // NULL if not loaded
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
    bool open, once; // `once`: the input is a pipe, which can be read only once
    enum library_use use;
    bool over;  // all events have been returned
    int failed; // error of the last event or op; later calls return the same error
    struct err failure, cut;
    struct tables_stream *stream;
    uint32_t columns; // bit set of the columns to read, indexed by heaptape_column_id
    struct library_facts facts;
    // Facts that the current scan collects. The scanning thread owns them until it emits rows of
    // processes.
    struct library_facts coming;
    heaptape_event event;
    heaptape_op op;
    heaptape_frame frame;
    uint64_t *op_numbers; // indexed by thread
    size_t n_threads, threads_capacity;
    heaptape_dependency *dependencies;
    size_t dependencies_capacity;
    struct buf text;
};

// Begins an API call by clearing the last error.
static inline struct err *library_begin(heaptape_trace *t)
{
    t->e.text[0] = 0;
    return &t->e;
}

// Opens the file unless it is already open. Returns 0, or a negative errno with the message set.
int library_open(heaptape_trace *t, struct err *e);

// Prepares a scan that stores the facts and rows of processes in *to.
void library_facts_scan(struct tables_scan *scan, struct library_facts *to);
int library_facts_row(struct library_facts *f, const struct tables_row *row);
void library_facts_release(struct library_facts *f);

// Marks the facts in *from as complete. Unless *f is already complete, moves the facts to *f.
void library_facts_move(struct library_facts *f, struct library_facts *from);
