// Records a program and all its descendants into a trace: starts it under the capture library, drains the spools of its
// processes, and writes frames until the last of them has ended.
#ifndef HEAPTAPE_RECORD_RECORD_H
#define HEAPTAPE_RECORD_RECORD_H

#include "base/err.h"
#include "base/fio.h"
#include "base/frame.h"
#include "capture/spool/attach.h"
#include "capture/spool/spool.h"
#include "record/attach/attach.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A program that runs already.
struct record_attach {
    pid_t pid; // 0: there is none, and the recorder starts the program
    int report; // descriptor at which it waits, since it has started the recorder itself; -1: it has not
    uint64_t
        duration_ns; // then: after which the recording ends and the program goes on; 0: when it is asked to
    bool list_blocks;               // then: record its live blocks at the start
    const struct spool_wrap *names; // then: wrap these functions, too; NULL: none
};

struct record_settings {
    struct record_attach attach;
    char *const *argv;      // of the program, ended by NULL
    const char *library;    // libheaptape.so, absolute
    const char *allocator;  // absolute path of an allocator to be preloaded behind it; NULL: none
    char *const *variables; // NAME=VALUE each, to be set for the program
    size_t n_variables;
    enum frame_codec
        codec; // the best; a recorder that falls behind steps down from it and up again
    int level;
    uint64_t max_bytes; // the recording ends when the output has as many; 0: never
    const char *
        follow; // "all", "none" or a glob: children to be recorded, by the name of their executable
    bool paused; // recording starts on request (ctl start)
    struct spool_stacks stacks;
    bool usable;    // the usable size of each block is recorded
    bool maps;      // so are the programs' own mappings
    bool residency; // … how many pages of their big blocks they use
    bool pages;     // which pages of the processes are resident, from outside
    bool
        live; // somebody reads the output as it is written: what is recorded must not wait for what comes next
    uint64_t
        beat_ns; // … and wants a batch at least so often, although nothing is recorded; 0: it does not
    bool
        lossy; // the program does not wait for a recorder that falls behind; what is dropped is counted
};

// A fact that holds for some processes.
struct record_fact {
    uint32_t processes; // for which it holds; 0: none, and the rest is not set
    uint32_t pid;       // of the first of them …
    char program[64];   // … and the name of its executable
    char text[200];     // what is known of it
};

struct record_result {
    int start_errno; // the program could not be started (0: it was), and nothing else here is valid
    bool exited;     // the program has ended …
    int wait_status; // … as wait(2) says
    bool full;       // it ended at max_bytes, and the program went on
    int stopped_by;  // signal that ended the recording; 0: none
    bool cut_off;    // … while the output accepted no data: the trace has no end
    uint32_t processes;
    uint32_t
        left; // processes that went on unrecorded: by exec, as programs that drop the library or cannot find it
    uint32_t
        untraced; // processes that could not be recorded: under limits that leave no room for a spool
    uint32_t unreadable; // spools that were truncated or overwritten before the recorder saw them
    uint32_t
        unopened; // spools that the recorder could not open to the end: no memory or file descriptor was left
    bool session_broken; // a program has written to what is the recorder's in the session
    uint64_t events, waits, wait_ns;
    uint64_t lost_words; // calls, or words of the trace, that are not in it …
    bool lost_is_bound;  // … and there may be more
    bool lossy;          // programs did not wait for the recorder
    uint64_t cpu_ns;     // of the recorder itself
    uint64_t batches;    // written
    uint64_t steps_down; // times the recorder fell behind and changed to a cheaper codec
    struct trace_unrecorded
        unrecorded;          // processes that are known to have been missed, except `left`; owned
    uint64_t bad_code_names; // records of perf-PID.map and jit-PID.dump that were skipped
    uint32_t cut_code_names; // processes whose names of code were too many to be read whole
    struct record_fact
        bypassed; // processes that call another malloc than the library's: the object that defines it
    char deepbound[2048];       // objects that call malloc past the library, each ended by NUL …
    uint32_t deepbound_bytes;   // … of all processes, each once, as far as there is room
    struct attach_result visit; // of a program that ran already
    char not_left
        [600]; // why such a process still has the library between itself and its allocator; ""
    bool ended_early;       // the recording of a process that goes on: before its time …
    uint32_t ended_by;      // … by heaptape of this PID; 0: by something else
    struct record_fact off; // processes in which recording turned itself off: the reason
};

// Runs the program to its end and everything that it started, too. `out` is borrowed. result->unrecorded is to be released. 0, or a negative errno when
// heaptape failed: if the program had been started, it ran on to its end untraced and result->wait_status is valid.
int record_run(const struct record_settings *settings, struct output *out,
               struct record_result *result, struct err *e);

// Makes the trace of what was recorded without a recorder in the session directory `dir`, which stays as it is. Of the
// settings `codec` and `level` are looked at. -EBUSY when a process of it still runs and is not stopped.
int record_collect(const char *dir, const struct record_settings *settings, struct output *out,
                   struct record_result *result, struct err *e);

// Why the program cannot be recorded ("is statically linked", …), judged by its file as execvp(3) finds it. The text is
// static; NULL when nothing speaks against it.
const char *record_explain(const char *program);

#endif
