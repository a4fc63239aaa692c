// Imports. An importer reads its format and puts events in the order of the file. Events leave as
// batches of a trace.
#ifndef HEAPTAPE_FORMATS_IMPORT_H
#define HEAPTAPE_FORMATS_IMPORT_H

#include "base/map.h"
#include "formats/formats.h"
#include "formats/import_source.h"
#include "trace/codec.h"
#include "trace/names.h"
#include "trace/trace.h"

// Receiver of the trace. Each function returns 0, or a negative errno that ends the import.
struct import_sink {
    void *context;
    // Called once, first. If has_times is false, stamps only number the events; else they are in
    // ns.
    int (*begin)(void *context, const struct trace_session *s, bool has_times);
    int (*process)(void *context, const struct trace_process *p);
    // Segments are borrowed until the call returns. All events up to the watermark are in this
    // batch or in earlier ones.
    int (*batch)(void *context, struct trace_segment *segments, size_t n, uint64_t watermark);
    // Called last with the names of code addresses of process image 0. May be NULL.
    int (*names)(void *context, const struct names *names);
};

struct import_thread;
struct import_process;

struct import {
    // Used by importers.
    const struct format *format;
    struct import_source source;
    struct err *e;
    bool keep_going;
    // Set by the importer before its first event. If has_times, event.stamp is in ns; else it is
    // ignored. If from_start, times count from the start of the recording, not from an arbitrary
    // time.
    bool has_times;
    bool from_start;
    void *state;         // has format->import.state_bytes bytes
    size_t record_bytes; // set from the format; `begin` may change it
    // Facts of the process. The importer sets those that the format has before its first event.
    // Owned by this struct.
    char *exe, *argv;
    uint32_t argv_bytes;            // size of `argv`, a list of NUL-terminated words
    struct names names;             // names of code addresses, for formats of one process
    void (*note)(const char *text); // gets each skipped record; may be NULL

    // Results.
    uint64_t events;
    uint64_t paths[HT_PATHS]; // events by path of malloc, if the format has it
    // Invalid records skipped under keep_going. `note` gets the first IMPORT_NAMED of them.
    uint64_t skipped;
    struct err first_skipped; // text of the first skipped record

    // Private to import.c.
    struct import_sink sink;
    struct map by_tid, by_pid;
    struct import_process *processes;
    size_t n_processes, processes_capacity;
    struct import_thread **threads;
    size_t n_threads, threads_capacity;
    struct import_thread **filled; // threads with words in this batch
    size_t n_filled;
    struct trace_segment *segments; // has threads_capacity elements
    uint32_t last_pid;
    uint64_t last_tid;
    struct import_thread *last; // NULL: no thread
    uint64_t words;             // words in this batch
    uint64_t kept;              // bytes of memory, see import_keep
    uint64_t live, peak_live;   // numbers of blocks
    uint64_t stamp;             // stamp of the last event
    bool begun;
};

enum {
    IMPORT_NAMED = 20,
    IMPORT_TID_BITS = 40, // maximum number of bits of a tid
    IMPORT_NO_TID = 0xffffffff,
};

// Imports all of `in`. `im` is all zero except for format, keep_going, note and sink. Returns 0, or
// a negative errno; the text is set unless the sink returned the error. The results are valid in
// both cases. Call import_release afterwards.
int import_run(struct import *im, struct input *in, struct err *e);
void import_release(struct import *im);

// For importers: adds an event of this process and thread, which are created on first use. The
// fields have the same meaning as in struct event, except:
//   - A realloc is one event with `ptr` (0 for NULL) and `result`.
//   - If `result` and `error` are 0, the error is filled in, unless the call freed a block.
//   - The value of THREAD_CREATE is the tid of the new thread. After THREAD_END, the tid names a
//     new thread.
//
// `text` is copied. Returns 0, or a negative errno.
int import_put(struct import *im, uint32_t pid, uint64_t tid, const struct event *ev);

// For importers whose thread keys differ from the tids of the system: import_put gets `key`, the
// trace shows `tid`. Call before the first event of the thread. Returns 0, or a negative errno.
int import_name_thread(struct import *im, uint32_t pid, uint64_t key, uint32_t tid);

// For importers: counts bytes of memory that stay allocated until the end of the import. Returns 0,
// or a negative errno if their sum exceeds a limit that depends on the size of the file. The limit
// is needed because a small compressed file can define any number of objects.
int import_keep(struct import *im, uint64_t bytes);

// For importers: reports invalid input at this byte. Under keep_going, counts it and returns 0.
// Else sets the text and returns -EBADMSG.
int import_bad(struct import *im, uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// The same, for the last line of import_source_line.
int import_bad_line(struct import *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Reports an input that ends inside a record that begins at `offset`. Returns as import_bad.
int import_cut_off(struct import *im, uint64_t offset, const char *what);

// Sets the error "out of memory" and returns -ENOMEM.
int import_no_memory(struct import *im);

// The same as import_source_line, but reports lines that are too long or contain a NUL byte, and
// skips them under keep_going. Returns 1, 0 at the end, or a negative errno.
int import_line(struct import *im, const char **line, size_t *n);

#endif
