// Imports: an importer reads its format and puts events, in the order of the file; they leave as the batches of a trace.
#ifndef HEAPTAPE_FORMATS_IMPORT_H
#define HEAPTAPE_FORMATS_IMPORT_H

#include "base/map.h"
#include "formats/formats.h"
#include "formats/import_source.h"
#include "trace/codec.h"
#include "trace/names.h"
#include "trace/trace.h"

// Where the trace goes. Each returns 0 or a negative errno, which ends the import.
struct import_sink {
    void *context;
    // Once, before all else, with the session's facts; has_times: its stamps are true, in ns. Else they only number the
    // events.
    int (*begin)(void *context, const struct trace_session *s, bool has_times);
    int (*process)(void *context, const struct trace_process *p);
    // Segments are borrowed until it returns. All events up to the watermark are in it or were before.
    int (*batch)(void *context, struct trace_segment *segments, size_t n, uint64_t watermark);
    // Last: names of code addresses of process image 0. NULL: not wanted.
    int (*names)(void *context, const struct names *names);
};

struct import_thread;
struct import_process;

struct import {
    // For importers.
    const struct format *format;
    struct import_source source;
    struct err *e;
    bool keep_going;
    bool
        has_times; // set by the importer before its first event: event.stamp is in ns; else it need not be set
    bool
        from_start; // likewise: times count from the start of the recording, not from any time before it
    void *state;         // of format->import.state_bytes
    size_t record_bytes; // that of the format, unless its `begin` sets another
    // Facts of the process, set by the importer before its first event, where the format has them; owned by this.
    char *exe, *argv;
    uint32_t argv_bytes;            // of `argv`, whose words end in NUL
    struct names names;             // likewise of code addresses, for formats of one process
    void (*note)(const char *text); // gets each invalid record that is skipped; NULL: not wanted

    // Results.
    uint64_t events;
    uint64_t paths[HT_PATHS]; // events by path of malloc, where the format has it
    uint64_t skipped; // invalid records, under keep_going; note gets the first IMPORT_NAMED of them
    struct err first_skipped; // what the first of them was

    // Inside import.c.
    struct import_sink sink;
    struct map by_tid, by_pid;
    struct import_process *processes;
    size_t n_processes, processes_capacity;
    struct import_thread **threads;
    size_t n_threads, threads_capacity;
    struct import_thread **filled; // those with words of this batch
    size_t n_filled;
    struct trace_segment *segments; // as many as threads
    uint32_t last_pid;
    uint64_t last_tid;
    struct import_thread *last; // NULL: none
    uint64_t words;             // of this batch
    uint64_t kept;              // bytes of memory, see import_keep
    uint64_t live, peak_live;   // blocks
    uint64_t stamp;             // of the last event
    bool begun;
};

enum {
    IMPORT_NAMED = 20,
    IMPORT_TID_BITS = 40, // a tid may have so many
    IMPORT_NO_TID = 0xffffffff,
};

// Imports all of `in`. `im` is all zero but for format, keep_going and sink. 0, or a negative errno with the text set
// unless the sink returned it. Its results are valid in either case; release it afterwards.
int import_run(struct import *im, struct input *in, struct err *e);
void import_release(struct import *im);

// For importers: an event of this process and thread, which are made when they are new. Fields as in struct event, but:
// a realloc is one event, with `ptr` (0: none) and `result`; where `result` is 0 and `error` too, it is filled in unless the
// call freed; the value of THREAD_CREATE is the child's tid. After THREAD_END the tid is that of a new thread.
// `text` is copied. 0 or a negative errno.
int import_put(struct import *im, uint32_t pid, uint64_t tid, const struct event *ev);

// For importers which go by other numbers of threads than the system's: import_put gets `key` for what the trace calls `tid`.
// To be called before the first event of that thread. 0 or a negative errno.
int import_name_thread(struct import *im, uint32_t pid, uint64_t key, uint32_t tid);

// For importers: counts bytes of memory that are kept until the end of the import. Returns 0, or a negative errno if their
// sum is more than the size of the file explains: a small compressed file can name any number of things.
int import_keep(struct import *im, uint64_t bytes);

// For importers: something is wrong at this byte of the input. Under keep_going it is counted, and 0 returned; else the
// text is set and -EBADMSG returned.
int import_bad(struct import *im, uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// The same for the last line of import_source_line.
int import_bad_line(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// The input ended inside a record that began at `offset`: always an error, as what is missing cannot be skipped; under
// keep_going it is counted and 0 returned.
int import_cut_off(struct import *im, uint64_t offset, const char *what);

// Sets the error "out of memory" and returns -ENOMEM.
int import_no_memory(struct import *im);

// For importers of lines: as import_source_line, with a line that is too long or holds a NUL byte reported or, under keep_going,
// skipped. 1, 0 at the end, or a negative errno.
int import_line(struct import *im, const char **line, size_t *n);

#endif
