// The spool, recorder's half: makes the session, finds the spools of its processes, drains their chunks and notices
// their ends. One thread. Whatever a traced program scribbles over its spool may spoil its own trace and nothing else.
#ifndef HEAPTAPE_RECORD_DRAIN_H
#define HEAPTAPE_RECORD_DRAIN_H

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
    uint32_t drained;         // words taken since the chunk was last FREE
    bool broken;              // holds words that are no record: the rest is lost
    struct codec_state state; // after those words
};

// Where a stream stands.
struct drain_stream {
    uint32_t thread, stream;
    uint64_t next;     // word due
    uint64_t deferred; // word that came in its stead in the last batch, when `waits`
    bool used, waits;
    bool over;        // its last chunk was given up half full: the thread has ended
    bool dropping;    // its last record came while recording was paused
    uint8_t resizing; // enum drain_resizing
    uint64_t change;  // changes before its last record
    uint64_t dropped; // words left out so far: the sink's numbers of words are without them
};

// One process image's spool.
struct drain_spool {
    struct spool_header *header; // shared: every value read from it is to be checked
    struct spool_chunk *chunks;
    struct guard guard;     // of that mapping
    uint32_t mapped_chunks; // of max_chunks
    uint32_t max_chunks;
    uint32_t fresh_chunks; // that have been in use
    bool unmapped;    // chunks from mapped_chunks on could not be mapped, and are not counted yet
    bool cut;         // they were there: the process was not recorded to its end
    char name[64];    // of the file
    unsigned reserve; // of a user's that it is in, counted from 1; 0: it has a file of its own
    uint32_t number;
    uint64_t start_stamp;           // the images of a process are in its order
    uint32_t pid;                   // as the process sees it
    pid_t visible_pid;              // as /proc names it; 0: it is not known which process it is
    int pidfd;                      // of that; else -1
    bool proven;                    // visible_pid has the spool mapped: it is no other process
    int fd;                         // of the file, where the process is not known; else -1
    uint64_t exe_device, exe_inode; // of its executable
    unsigned other_exe; // looks, one after the other, at which it was another: see drain_check_left
    bool left;          // heaptape was detached from the process, or that was tried
    bool dead;          // nothing is written to it any more; the next drain takes all there is
    const char
        *broken; // why nothing more is taken from it: no producer writes what stands there; or NULL
    uint64_t
        stuck_ns; // since when its threads wait for chunks although there is nothing to take; 0: they do not
    uint64_t words;      // drained
    uint64_t lost_words; // missing in a stream, or no records
    uint64_t events;     // recorded, for the sink to count
    uint64_t
        said_lost; // records that PROCESS_END says are lost, of a process that goes on unrecorded
    uint64_t *changes; // changes of the recording's state: stamp << 2 | state
    size_t n_changes, changes_capacity;
    uint64_t changes_taken;     // from the ring
    uint64_t changes_forgotten; // before those
    uint32_t first_state;       // before all of them
    bool began_late;            // recording was off when the process began
    uint64_t
        recorded_from; // stamps: of the first change that began recording, and of the last one if that ended
    uint64_t recorded_to;              // it; else 0
    uint32_t asked[SPOOL_REQUESTS];    // requests that the last drain has seen
    uint32_t answered[SPOOL_REQUESTS]; // and those that are answered
    uint64_t drain_words;              // drained by the last drain_drain
    uint32_t drain_done;               // chunks that it found full
    struct drain_chunk *marks;
    size_t marks_capacity;
    struct drain_stream *streams; // open hash, a power of two
    size_t streams_capacity, streams_used;
    uint64_t sampled_ns,
        named_ns; // the recorder's: when its memory was last looked at, and the names of its threads
    uint64_t sampled_cpu_ns;   // its CPU time then
    struct buf thread_names;   // these, as TRACE_F_THREAD_NAMES holds them
    struct proc_due pages_due; // the recorder's: of its maps of pages
    struct code_names code;    // the recorder's: of code that the process compiles
};

// A file of a user's reserves.
struct drain_reserves {
    char name[32];
    struct spool_reserves *shared; // mapped: every value read from it is to be checked
    struct guard guard;
    uint64_t seen; // a bit for each that was opened and not given back
};

// A spool that could not be mapped, whose process has been told so.
struct drain_refused {
    char name[64];
    unsigned reserve;
};

enum { DRAIN_SPARE_FDS = 2, DRAIN_REFUSED = 64 };

struct drain {
    char *outer; // directory to be removed at the end
    char *dir;   // the session directory, for SPOOL_ENV_DIR …
    size_t
        root_bytes; // … of which so many are not for the processes, whose root directory is another one
    int dir_fd;    // -1: closed
    int lock_fd;   // of the session's file, whose lock says that the recorder lives; -1: closed
    bool attached; // a session that was recorded without a recorder: nothing of it is changed
    struct spool_session *session;
    struct spool_session kept; // what stands there
    struct guard *guard;       // of that mapping
    uint32_t flags;            // of the session, as made
    uint32_t owner;            // the recorder's, in session->recorder
    bool session_broken;       // a program has written to what is the recorder's
    bool stopped;
    bool pending;                // a file was not ready
    uint64_t pending_ns;         // when it was looked at last
    uint32_t unopened;           // spools that could not be opened in that look
    struct drain_spool **spools; // the open ones, in order of discovery
    size_t n_spools, spools_capacity;
    struct drain_reserves **reserves;
    size_t n_reserves, reserves_capacity;
    uint32_t n_made; // numbers given
    struct drain_candidate *candidates;
    size_t candidates_capacity;
    uint64_t *copy;        // words of the chunk under work
    uint32_t gone_wakeups; // of spools that were dropped
    uint32_t chunks_done;  // chunks that the last drain found full: how far the recorder is behind
    uint32_t n_refused;    // processes whose spools could not be mapped …
    struct drain_refused *refused; // … those of them that are not counted yet
    size_t refused_kept, refused_capacity;
    uint32_t refused_pids[DRAIN_REFUSED]; // the last of them, as they see themselves
    uint64_t refused_lost;                // calls of those that are
    bool refused_unknown;                 // some could not be counted, or not to their end
    uint32_t n_unreadable;          // files with a spool's name that nobody has and that hold none
    int spare_fds[DRAIN_SPARE_FDS]; // kept for when no descriptor is left
    uint32_t n_left;                // processes that go on as programs which are not recorded
    uint32_t streams_waiting;       // streams with unread data; the watermark must not pass them
};

// Makes the session directory and file: on /dev/shm when there is room, else in $TMPDIR or /tmp. `flags` of enum
// spool_session_flags. `root`: where the processes' root directory is seen from here; "" when it is the same.
int drain_open(struct drain *c, uint32_t flags, enum clock_kind clock, const char *root,
               struct err *e);

// Tells the producers that the recorder has ended: threads that wait for chunks continue, untraced.
void drain_stop(struct drain *c);

// Stops, drops all spools and removes the directory.
void drain_close(struct drain *c);

// Opens spools that have appeared. Returns how many (they stand at the end of c->spools), or a negative errno.
int drain_discover(struct drain *c, struct err *e);

// Marks the spools whose processes have ended. A process that has called exec has ended as far as its old spool goes.
// Returns how many were marked.
int drain_check_ends(struct drain *c);

// Keeps c->n_left: processes that go on unrecorded, since by exec they have become programs that drop the library or
// cannot find it. Call every DRAIN_LEFT_NS; a process that ends before the second check is not counted.
#define DRAIN_LEFT_NS 200000000u
void drain_check_left(struct drain *c);

// Processes that say beside their user's reserves that they are not recorded; the first of them are described there. 0 where
// that was overwritten.
uint32_t drain_untraced(const struct drain_reserves *r);

// Was the spool of that process refused, one of the last?
bool drain_has_refused(const struct drain *c, uint32_t pid);

// Counts what the processes have written that were refused and have ended; `at_end`: those that live, too, which is then too
// little. Call it now and then.
void drain_check_refused(struct drain *c, bool at_end);

// Adds to the spool's lost_words the events in chunks that could not be mapped; at the end of its process.
void drain_count_unmapped(struct drain *c, struct drain_spool *s);

// Grows with each wake-up of the recorder.
uint32_t drain_wakeups(const struct drain *c);

// Requests of which everything that they are about has been drained: the recorder does what they ask for and answers.
bool drain_is_asked(const struct drain *c, enum spool_request what);

// `error` is an errno, for SPOOL_RESET.
void drain_answer(struct drain *c, enum spool_request what, int error);

// The trace begins anew: processes, words and losses are counted from 0 again.
void drain_restart(struct drain *c);

// Takes what has been published. Events of times when recording was paused are left out. `segment` is called for each
// run of words, in order within a stream. It fills in n_words (what it took), epoch_end and base_end as trace_batch_add
// does, and returns 0 or a negative errno, which ends the drain. Its words are a copy that the program cannot reach:
// where `room` said, which is asked before (NULL: out of memory), or without `room` valid during the call.
struct drain_sink {
    void *ctx;
    uint64_t *(*room)(void *ctx, uint32_t n_words, struct err *e);
    int (*segment)(void *ctx, struct drain_spool *s, struct trace_segment *segment, struct err *e);
};
int drain_drain(struct drain *c, const struct drain_sink *sink, struct err *e);

// Opens a session that was recorded without a recorder, and all its spools. -EBUSY when a process of it lives and has
// not been stopped.
int drain_open_finished(struct drain *c, const char *dir, struct err *e);

// Drains all of a finished session, in slices of time: `batch` is called after each with a stamp below which nothing is
// left.
int drain_finished(struct drain *c, const struct drain_sink *sink,
                   int (*batch)(void *ctx, uint64_t watermark, struct err *e), struct err *e);

// Unmaps and removes spool number i of c->spools; the later ones move up.
void drain_drop(struct drain *c, size_t i);

// Events that were published and not drained.
uint64_t drain_undrained(const struct drain_spool *s);

// Sleeps until SPOOL_CHUNKS_A_WAKE chunks of a process are full, a spool appears or closes, a signal comes, or the time is
// over. `seen` is a value of drain_wakeups read before the last drain.
void drain_sleep(struct drain *c, uint32_t seen, uint64_t timeout_ns);

#endif
