// The recorder's side of the spool: creates the session, finds and drains the spools of the
// session's processes, and detects when processes end. Not thread-safe. A program that overwrites
// its spool can damage only its own trace.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "capture/spool/spool.h"
#include "record/processes/code_names.h"
#include "record/processes/guard.h"
#include "record/processes/watch.h"
#include "trace/codec.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// The recorder's private view of a chunk.
struct drain_chunk {
    uint32_t drained;         // words drained since the chunk was last FREE
    bool broken;              // the chunk contains invalid words, so the rest of it is lost
    struct codec_state state; // state after `drained` words
};

// A thread's stream.
struct drain_stream {
    uint32_t thread, stream;
    uint64_t next;     // first word not drained yet
    uint64_t deferred; // if `waits`: position of the gap that the last batch found
    bool used, waits;
    bool over;        // the thread has ended: its last chunk was DONE but not full
    bool dropping;    // recording was paused at the last record
    uint8_t resizing; // enum drain_resizing
    uint64_t change;  // number of state changes before the stream's last record
    uint64_t dropped; // number of words dropped so far; the sink's word numbers do not count them
};

// The spool of one process image.
struct drain_spool {
    struct spool_header *header; // shared memory: validate every value read from it
    struct spool_chunk *chunks;
    struct guard guard;
    uint32_t mapped_chunks; // <= max_chunks
    uint32_t max_chunks;
    uint32_t fresh_chunks; // number of chunks that have ever been in use
    // The chunks from mapped_chunks on cannot be mapped, and their events have not been counted
    // yet.
    bool unmapped;
    bool cut; // some chunks could not be mapped, so the recording of the process is incomplete
    char name[64];
    // Name of the executable; a copy, because the program may overwrite the name in the header.
    char program[64];
    // Number, from 1, of the reserve that contains the spool; 0 if the spool is a file.
    unsigned reserve;
    uint32_t number;
    uint64_t start_stamp; // orders the images of a process
    uint32_t pid;         // pid in the process's own pid namespace
    pid_t visible_pid;    // pid in the recorder's /proc, or 0 if unknown
    int pidfd;            // pidfd of visible_pid, or -1
    bool proven;          // visible_pid is known to have the spool mapped
    int fd;               // descriptor of the spool until its process is known, then -1
    uint64_t exe_device, exe_inode;
    unsigned plans;     // number of requests for plans
    bool left;          // heaptape tried to detach from the process
    bool dead;          // the process no longer writes, so the next drain reads everything
    const char *broken; // why the contents are corrupt, or NULL
    // Time since which threads have waited for chunks although no chunk could be drained, or 0.
    uint64_t stuck_ns;
    uint64_t words;
    uint64_t lost_words; // number of words that are missing in a stream or invalid
    uint64_t events;     // number of recorded events, counted by the sink
    uint64_t said_lost;  // number of lost records already reported in PROCESS_END
    uint64_t *changes;   // state changes; each is stamp << 2 | state
    size_t n_changes, changes_capacity;
    uint64_t changes_taken;         // number of changes read from the ring
    uint64_t changes_forgotten;     // number of changes dropped from the front of `changes`
    uint32_t first_state;           // state before the first change
    bool began_late;                // recording was off when the process started
    uint64_t recorded_from;         // stamp of the first change that started recording, or 0
    uint64_t recorded_to;           // stamp of the last change if it ended recording, else 0
    uint32_t asked[SPOOL_REQUESTS]; // requests seen by the last drain
    uint32_t answered[SPOOL_REQUESTS];
    uint64_t requested_ticks; // time of the last request for a reading of the counter
    uint64_t early_ticks;     // maximum time between two requests
    uint64_t drain_words;     // words drained by the last drain_drain
    uint32_t drain_done;      // chunks found DONE by the last drain_drain
    struct drain_chunk *marks;
    size_t marks_capacity;
    struct drain_stream *streams; // open-addressing hash table
    size_t streams_capacity, streams_used;
    uint64_t sampled_ns, named_ns; // when memory and thread names were last read
    // Number of words, and CPU time of the process, at sampled_ns.
    uint64_t sampled_words, sampled_cpu_ns;
    // CPU time at the last reading, time of the next reading, and time of the last change.
    uint64_t seen_cpu_ns, cpu_due_ns, active_ns;
    uint64_t peak_rss_bytes; // highest RSS up to sampled_ns, or 0 if unknown
    // drain_resident_bytes() at the time of peak_rss_bytes, at the start of the last page map, and
    // at the start of the last complete page map. 0 before these times.
    uint64_t peak_spool_bytes, begun_spool_bytes, mapped_spool_bytes;
    uint64_t libraries;      // libraries mapped before the first page map, as in libraries.h
    struct buf thread_names; // payload of TRACE_F_THREAD_NAMES
    struct proc_due pages_due;
    struct code_names code; // names of JIT-compiled code
};

// A user's file of reserves.
struct drain_reserves {
    char name[32];
    struct spool_reserves *shared; // mapping: validate every value read from it
    struct guard guard;
    uint64_t seen; // one bit per reserve; set while the reserve is open and not yet freed
};

// A spool that could not be mapped and whose `refused` flag is set.
struct drain_refused {
    char name[64];
    unsigned reserve;
};

enum { DRAIN_SPARE_FDS = 2, DRAIN_REFUSED = 64 };

struct drain {
    char *outer;       // directory that drain_close removes, or NULL
    char *dir;         // session directory as the recorder sees it
    size_t root_bytes; // length of the part of `dir` outside the processes' root directory
    int dir_fd;        // -1 if closed
    int lock_fd;       // session file, locked while the recorder is alive; -1 if closed
    bool attached;     // opened by record_collect, so the session is only read
    struct spool_session *session;
    struct spool_session kept; // copy of *session, to restore it
    struct guard *guard;
    uint32_t flags;      // as passed to drain_open
    uint32_t owner;      // value of session->recorder.owner
    bool session_broken; // a program overwrote the recorder's fields
    bool stopped;
    bool pending;                // a file was not complete at the last scan
    uint64_t pending_ns;         // time of the last scan of the directory
    uint32_t unopened;           // number of spools that the last scan could not open
    struct drain_spool **spools; // open spools, in order of discovery
    size_t n_spools, spools_capacity;
    struct drain_reserves **reserves;
    size_t n_reserves, reserves_capacity;
    uint32_t n_made; // number of spool numbers assigned
    struct drain_candidate *candidates;
    size_t candidates_capacity;
    uint64_t *copy;
    uint32_t gone_wakeups; // number of wake-ups counted in dropped spools
    // Number of chunks that the last drain found DONE. A high number means that the recorder lags
    // behind.
    uint32_t chunks_done;
    uint32_t n_refused;            // number of processes whose spools could not be mapped
    struct drain_refused *refused; // refused spools that have not been counted yet
    size_t refused_kept, refused_capacity;
    // Ring of the last refused pids. Each pid is in its process's own namespace.
    uint32_t refused_pids[DRAIN_REFUSED];
    uint64_t refused_lost; // number of calls in refused spools
    bool refused_unknown;  // the calls in some refused spools could not be counted completely
    uint32_t n_unreadable; // number of invalid, unused files that are named like a spool
    int spare_fds[DRAIN_SPARE_FDS]; // closed when descriptors run out, to open another file
    // Number of streams with unread data; the watermark must not pass them.
    uint32_t streams_waiting;
};

// Creates the session directory and file in /dev/shm if there is space, else in $TMPDIR or /tmp.
// `flags` are enum spool_session_flags. `root` is the processes' root directory as the recorder
// sees it, or "" if the recorder has the same root directory. Returns 0, or a negative errno.
int drain_open(struct drain *c, uint32_t flags, enum clock_kind clock, const char *root,
               struct err *e);

// Marks the recorder as stopped. Threads that are waiting for chunks continue untraced.
void drain_stop(struct drain *c);

// Stops the recorder, drops all spools and removes the directory.
void drain_close(struct drain *c);

// Opens new spools and appends them to c->spools. Returns the number of new spools, or a negative
// errno.
int drain_discover(struct drain *c, struct err *e);

// Marks as dead the spools of processes that have ended, called exec, or were detached. Returns the
// number of spools that it marked.
int drain_check_ends(struct drain *c);

// Returns the number of processes that registered themselves as not recorded, or 0 if that number
// was overwritten. The file describes the first SPOOL_UNTRACED of these processes.
uint32_t drain_untraced(const struct drain_reserves *r);

// Returns true if `pid` is among the last DRAIN_REFUSED processes that were refused.
bool drain_has_refused(const struct drain *c, uint32_t pid);

// Counts the calls of refused processes that have ended. If at_end is set, also counts the calls
// that live refused processes have made so far. Call periodically.
void drain_check_refused(struct drain *c, bool at_end);

// Adds the events in unmapped chunks to lost_words. Call when the process has ended.
void drain_count_unmapped(struct drain *c, struct drain_spool *s);

// Returns the number of wake-ups that processes have requested.
uint32_t drain_wakeups(const struct drain *c);

// Returns true if a process has requested `what`, and all records published before the request have
// been drained.
bool drain_has_request(const struct drain *c, enum spool_request what);

// Answers all requests for `what`. `error` is the errno of a SPOOL_RESET.
void drain_answer(struct drain *c, enum spool_request what, int error);

// Starts the trace over. Process numbers, words and losses restart at 0.
void drain_restart(struct drain *c);

// Drains published words, except words that were recorded during a pause. Calls `segment` for each
// run of words, in order within a stream. `segment` sets n_words (the number of words accepted),
// epoch_end and base_end like trace_batch_add. If `segment` returns a negative errno instead of 0,
// the drain ends. The words are a private copy. If `room` is set, the copy is in the buffer that
// `room` has just returned (NULL if out of memory). Otherwise the copy is valid only during the
// call.
struct drain_sink {
    void *ctx;
    uint64_t *(*room)(void *ctx, uint32_t n_words, struct err *e);
    int (*segment)(void *ctx, struct drain_spool *s, struct trace_segment *segment, struct err *e);
};
int drain_drain(struct drain *c, const struct drain_sink *sink, struct err *e);

// Raises early_ticks to the time from the last request to `now`, if that time is longer.
void drain_count_early(struct drain_spool *s, uint64_t now);

// Drops spool i: unmaps it and removes its file or frees its reserve. Moves later spools down by
// one.
void drain_drop(struct drain *c, size_t i);

// Returns the number of events that were published but not drained.
uint64_t drain_undrained(const struct drain_spool *s);

// Returns the bytes of the spool's resident pages, which are also in the RSS of the process.
uint64_t drain_resident_bytes(const struct drain_spool *s);

// Sleeps until SPOOL_CHUNKS_A_WAKE chunks are full, a spool appears or closes, a signal arrives, or
// the timeout expires. `seen` is the value of drain_wakeups before the last drain.
void drain_sleep(struct drain *c, uint32_t seen, uint64_t timeout_ns);
