// Imports foreign formats. An importer reads its format and adds the events in file order. The sink
// receives the events as batches of a trace.
#pragma once

#include "base/map.h"
#include "formats/formats.h"
#include "formats/import_source.h"
#include "trace/codec.h"
#include "trace/names.h"
#include "trace/trace.h"

// Receiver of the trace. Each function returns 0, or a negative errno, which ends the import.
struct import_sink {
    void *context;
    // Called once, before the other functions. If has_times is false, stamps merely number the
    // events; otherwise they are in ns.
    int (*begin)(void *context, const struct trace_session *s, bool has_times);
    int (*process)(void *context, const struct trace_process *p);
    // Segments are borrowed until the call returns. All events up to the watermark are in this
    // batch or an earlier batch.
    int (*batch)(void *context, struct trace_segment *segments, size_t n, uint64_t watermark);
    // Called last, with the code address names of process image 0. May be NULL.
    int (*names)(void *context, const struct names *names);
};

struct import_thread;
struct import_process;

struct import {
    // For use by importers.
    const struct format *format;
    struct import_source source;
    struct err *e;
    bool keep_going;
    // The importer sets these before its first event. If has_times is set, event.stamp is in ns;
    // otherwise event.stamp is ignored. If from_start is set, times count from the start of the
    // recording; otherwise they count from an arbitrary time.
    bool has_times;
    bool from_start;
    // True if, in the file, every free follows the allocation of its block. The free of an unknown
    // block then frees a block from before the recording. The format sets the initial value.
    bool no_early_frees;
    void *state;         // format->import.state_bytes bytes
    size_t record_bytes; // initially from the format; `begin` may change it
    // Owned data about the process. The importer sets each member that its format contains, before
    // the first event of the process.
    char *exe, *argv;
    uint32_t argv_bytes;            // size of `argv`, a list of NUL-terminated words
    struct names names;             // names of code addresses, for formats that hold one process
    void (*note)(const char *text); // called for each skipped record; may be NULL

    // Results.
    uint64_t events;
    uint64_t paths[HT_PATHS]; // events by malloc path, if the format has paths
    // Invalid records skipped under keep_going. `note` is called for the first IMPORT_NAMED
    // records.
    uint64_t skipped;
    struct err first_skipped; // message about the first skipped record

    // Private to import.c.
    struct import_sink sink;
    struct map by_tid, by_pid;
    struct import_process *processes;
    size_t n_processes, processes_capacity;
    struct import_thread **threads;
    size_t n_threads, threads_capacity;
    struct import_thread **filled; // threads with words in this batch
    size_t n_filled;
    struct trace_segment *segments; // has room for threads_capacity elements
    uint32_t last_pid;
    uint64_t last_tid;
    struct import_thread *last; // the thread of the last event, or NULL
    uint64_t words;             // words in this batch
    uint64_t kept;              // bytes of memory; see import_keep
    uint64_t live, peak_live;   // numbers of live blocks
    uint64_t stamp;             // stamp of the last event
    bool begun;
};

enum {
    IMPORT_NAMED = 20,
    IMPORT_TID_BITS = 40, // maximum number of bits in a tid
    IMPORT_NO_TID = 0xffffffff,
};

// Imports all of `in`. Before the call, set format, keep_going, note and sink; the rest of *im must
// be zero. Returns 0, or a negative errno; the message is set unless the sink returned the error.
// The results are valid in either case. Call import_release afterwards.
int import_run(struct import *im, struct input *in, struct err *e);
void import_release(struct import *im);

// Adds an event of this process and thread, which are created on first use. Called by importers.
// The fields have the same meaning as in struct event, except:
//   - A realloc is one event with `ptr` (0 for NULL) and `result`.
//   - If `result` and `error` are 0, the error is filled in, unless the call freed a block.
//   - The value of THREAD_CREATE is the tid of the new thread. After THREAD_END, the tid names a
//     new thread.
//
// `text` is copied. Returns 0, or a negative errno.
int import_put(struct import *im, uint32_t pid, uint64_t tid, const struct event *ev);

// Called by importers that pass import_put a key other than the system's tid. The trace then
// contains `tid` for the thread with this `key`. Call before the thread's first event. Returns 0,
// or a negative errno.
int import_name_thread(struct import *im, uint32_t pid, uint64_t key, uint32_t tid);

// Accounts for memory that stays allocated until the end of the import. Called by importers.
// If the total exceeds a limit that depends on the file size, returns a negative errno, else 0.
// Without the limit, a small compressed file could define any number of objects.
int import_keep(struct import *im, uint64_t bytes);

// Pass to import_bad as the offset to report the last line that import_source_line returned.
#define IMPORT_LINE UINT64_MAX

// Reports invalid input at this offset. Called by importers. With keep_going, counts the error and
// returns 0. Otherwise, sets the message and returns -EBADMSG.
int import_bad(struct import *im, uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Reports that the input ends inside a record that begins at `offset`. Returns the same values as
// import_bad.
int import_cut_off(struct import *im, uint64_t offset, const char *what);

// Sets the error "out of memory" and returns -ENOMEM.
int import_no_memory(struct import *im);

// Like import_source_line, but reports lines that are too long or contain a NUL byte. With
// keep_going, skips those lines. Returns 1, 0 at the end, or a negative errno.
int import_line(struct import *im, const char **line, size_t *n);
