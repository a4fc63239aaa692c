// Records a program and its descendants in a trace: starts the program with the capture library,
// drains the spools of its processes, and writes frames until the last process has ended.
//
// A pass drains the published words of all spools once. A batch is the part of the trace that one
// or more passes have drained. Its watermark is a stamp read before the last of these passes: all
// events that were published before the watermark are in this batch or an earlier one.
#pragma once

#include "base/err.h"
#include "base/fio.h"
#include "base/frame.h"
#include "capture/spool/attach.h"
#include "capture/spool/spool.h"
#include "record/attach/attach.h"
#include "record/entries/answer.h"
#include "trace/losses.h"
#include "trace/trace.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A program that is already running.
struct record_attach {
    pid_t pid; // 0 if the recorder starts the program
    // If the program has started the recorder: the pipe on which to report the session. Otherwise
    // -1.
    int report;
    // If `pid` is set and `report` is -1: the duration of the recording, or 0 if the recording ends
    // on request.
    uint64_t duration_ns;
    bool list_blocks; // record the program's live blocks at the start
};

struct record_settings {
    struct record_attach attach;
    char *const *argv;      // program and its arguments, terminated by NULL
    const char *library;    // absolute path of libheaptape.so
    const char *allocator;  // absolute path of an allocator to preload after the library, or NULL
    char *const *variables; // NAME=VALUE settings for the program's environment
    size_t n_variables;
    // Codec of the trace. While the recorder is behind, it does not compress.
    enum frame_codec codec;
    int level;
    uint64_t max_bytes; // recording ends at this output size; 0 if there is no limit
    // Children to record: "all", "none", or a glob for the names of their executables.
    const char *follow;
    const struct spool_wrap *wrap; // names of additional functions to wrap, or NULL
    bool paused;                   // recording starts on request (ctl start)
    struct spool_stacks stacks;
    bool usable;    // record the usable size of each block
    bool maps;      // record the programs' own mappings
    bool residency; // record how many pages of big blocks are resident
    bool pages;     // record the processes' page maps, read from /proc
    // The output is read while being written, so events are not delayed until the next batch.
    bool live;
    // If `live` is set, the maximum time between two batches, even if there are no events. If 0,
    // batches are written only for events.
    uint64_t beat_ns;
    // If the recorder falls behind, drop and count events instead of blocking the program.
    bool lossy;
    bool exact_clock; // read the counter at every event
};

struct record_result {
    // errno of the failed start; the other members are then invalid. 0 if the program was started.
    int start_errno;
    bool exited;     // the program has ended
    int wait_status; // if `exited`: status as from wait(2)
    bool full;       // recording ended at max_bytes, and the program continued
    int stopped_by;  // signal that ended the recording, or 0
    // the signal arrived while the output accepted no data, so the trace is incomplete
    bool cut_off;
    // Number of requests to end the recording; after the second, nothing waits for output.
    int end_requests;
    uint32_t processes;
    uint64_t events, waits, wait_ns;
    uint64_t cpu_ns; // CPU time of the recorder
    uint64_t batches;
    struct trace_losses losses;         // losses in all processes
    struct trace_balance balance;       // only some of the sums; unrecorded.balance has all sums
    struct trace_unrecorded unrecorded; // missed processes, and the losses in the trace; owned
    struct attach_result visit;         // result of attaching to a running program
    // Report on the redirection of functions in started programs.
    struct entries_report entries;
    char not_left[600]; // why the library is still active in an attached process, or ""
    bool ended_early; // the recording of an attached process ended early, and the process continues
    uint32_t ended_by; // if ended_early: PID of the heaptape that ended it, or 0 for another cause
};

// Runs the program, and waits for it and all its descendants. Borrows `out`. The caller must
// release result->unrecorded. Returns 0, or a negative errno if heaptape failed. After a failure, a
// program that was already started runs untraced until it exits, and result->wait_status is valid.
//
// On return, the signals that would end heaptape are blocked and heaptape's handlers are installed,
// so that the caller can complete and report the output. After record_unblock_signals, these
// signals only interrupt blocking calls. record_restore_signals restores the actions from before
// record_run.
int record_run(const struct record_settings *settings, struct output *out,
               struct record_result *result, struct err *e);

void record_unblock_signals(void);
void record_restore_signals(void);

// Writes a trace of a session that was recorded without a recorder. `dir` is the session directory,
// which is not changed. Uses only `codec` and `level` from the settings. Returns 0, -EBUSY if a
// process of the session is still running and recording has not been stopped, or another negative
// errno.
int record_collect(const char *dir, const struct record_settings *settings, struct output *out,
                   struct record_result *result, struct err *e);

// Returns why the program cannot be recorded, such as "is statically linked", or NULL. Inspects the
// file that execvp(3) would find. The string is static.
const char *record_explain(const char *program);

// Finds the first file in PATH that access(2) permits with `mode`. If `mode` is X_OK, execvp(3)
// would run this file. Returns false if there is no such file.
bool record_find_program(const char *program, int mode, char path[PATH_MAX]);
