// The spool: shared memory between a traced process (producer: src/capture/producer/producer.h) and the recorder
// (consumer). Both sides of an ABI within one build: the magic carries a layout version. Malloc-free.
//
// A session is a directory, on tmpfs by default, with
// - `session` (struct spool_session), which the recorder alone writes to. Processes read it once, and map it only for system
//   calls on the futexes in it: these fail where a program has truncated the file, and do not raise SIGBUS;
// - `<pid>-<n>.spool` per process image, made by the process itself under another name until it is complete: struct
//   spool_header, then chunks of 64 KiB. The file is sparse. The process maps it bit by bit, each from the bit before, so that
//   no file descriptor or path is needed later;
// - `reserves-<uid>` (struct spool_reserves) per user, for processes that cannot make a file.
// No file is shared by processes of different users, unless they have inherited its mapping.
//
// Life of a chunk: FREE → (a thread pops it or takes a fresh one) → OWNED → (full, or the thread ends) → DONE
// → (drained by the recorder) → FREE. A thread writes words and publishes them, so whatever
// was published survives any death of the process. The recorder drains OWNED chunks too, up to what is
// published, once a batch.
#ifndef HEAPTAPE_SPOOL_SPOOL_H
#define HEAPTAPE_SPOOL_SPOOL_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SPOOL_SESSION_MAGIC  0x3573736573735448ull // "HTssess5"
#define SPOOL_MAGIC          0x436c6f6f70735448ull // "HTspoolC"
#define SPOOL_RESERVES_MAGIC 0x3576726573655448ull // "HTeserv5"
#define SPOOL_SESSION_FILE   "session"
#define SPOOL_FILE_SUFFIX    ".spool"
#define SPOOL_RESERVES_FILE  "reserves-" // and the user's number, as its processes see it

// Environment of a traced process.
#define SPOOL_ENV_DIR "HEAPTAPE_SPOOL" // the session directory
#define SPOOL_ENV_STACKS                                                                           \
    "HEAPTAPE_STACKS" // which stacks a session without a recorder records, as record's --stacks

// Environment of a recorder that a process has started itself: PID:FD, of that process, and of the descriptor that the
// session directory is to be reported to, with a NUL behind it.
#define SPOOL_ENV_ATTACH "HEAPTAPE_ATTACH"

enum {
    // 64 KiB: 1 MiB chunks cost twice as much an event, because the bytes leave the L2 cache
    // (docs/design/capture.md).
    SPOOL_CHUNK_BYTES = 65536,
    SPOOL_CHUNK_HEADER_BYTES = 64,
    SPOOL_PIECE_BYTES =
        16384, // of a chunk, that get their memory at once: most processes and threads need no more
    SPOOL_CHUNK_WORDS = (SPOOL_CHUNK_BYTES - SPOOL_CHUNK_HEADER_BYTES) / 8,

    SPOOL_HEADER_BYTES =
        65536, // struct spool_header with its texts; keeps chunks aligned to their size
    SPOOL_MAX_CHUNKS = 16384,         // 1 GiB; tmpfs gives pages only to what was touched
    SPOOL_MAX_CHUNKS_ALONE = 1 << 18, // 16 GiB, without a recorder
    SPOOL_BASE_CHUNKS =
        24, // a process may hold this many chunks before its threads wait for the recorder …
    SPOOL_CHUNKS_A_THREAD = 2, // … and this many more for each live thread
    SPOOL_CHUNKS_A_WAKE =
        10, // full chunks that end the recorder's sleep: each of its turns costs the program time
    SPOOL_NO_CHUNK = 0xffffffff,
    SPOOL_MAX_FOLLOW = 256,
    SPOOL_MAX_DEPTH = 128, // frames of a call site
};

// Room for spools in a file of the user's, after struct spool_reserves: for fork children that cannot make a file, in a
// changed root or under limits. They have its start mapped, and from that they map these.
enum {
    SPOOL_RESERVES = 64,
    SPOOL_RESERVE_CHUNKS = 64,
    SPOOL_RESERVE_BYTES = SPOOL_HEADER_BYTES + SPOOL_RESERVE_CHUNKS * SPOOL_CHUNK_BYTES,
    SPOOL_RESERVES_BYTES = 65536,
};

// Where reserve `slot` begins in the file. A file that is too small, because of a limit of file sizes, holds fewer.
static inline uint64_t spool_reserve_offset(unsigned slot)
{
    return SPOOL_RESERVES_BYTES + (uint64_t)slot * SPOOL_RESERVE_BYTES;
}

enum {
    SPOOL_OPEN_MODE =
        01733, // of the folder of root's session, which nobody can list: see session.c
    SPOOL_UNMAPPED_UID = 65534, // somebody outside of the user namespace
};

// May a session be in the folder? Another user who owns it, or may write to it, could read what is recorded there.
static inline bool spool_folder_is_safe(const struct stat *st, uid_t self)
{
    bool foreign = st->st_uid != self && st->st_uid != 0 && st->st_uid != SPOOL_UNMAPPED_UID;
    bool open = st->st_mode & (S_IWGRP | S_IWOTH);
    return S_ISDIR(st->st_mode) && !foreign && (!open || (st->st_mode & 07777) == SPOOL_OPEN_MODE);
}

enum spool_chunk_state { SPOOL_CHUNK_FREE = 0, SPOOL_CHUNK_OWNED = 1, SPOOL_CHUNK_DONE = 2 };

struct spool_chunk {
    // How far words are published: the lower half of the address, in the process, behind the last one. Written by the owner
    // alone: a release store after the words; the recorder loads it with acquire (spool_published).
    _Atomic uint32_t published;
    _Atomic uint32_t state; // enum spool_chunk_state
    // Filled in by the owner before state becomes OWNED (release), constant until it is FREE again.
    uint32_t thread; // number of the thread in its process, from 0, in order of their start
    uint32_t tid;    // the kernel's thread id
    uint32_t stream; // 0; 1 for events of a signal handler that interrupted the writing of a record
    uint32_t next_free;  // link of the free stack
    uint64_t first_word; // place of words[0] in the whole stream
    uint64_t epoch0;     // codec state before words[0]
    uint64_t base0;
    uint32_t drained_words; // the recorder's own
    uint32_t
        ready_bytes; // from the chunk's start on, that have their memory: a whole number of pieces
    uint32_t start;  // what `published` is before the first word; as `thread`
    uint32_t reserved;
    uint64_t words[SPOOL_CHUNK_WORDS];
};
_Static_assert(sizeof(struct spool_chunk) == SPOOL_CHUNK_BYTES, "a chunk is 64 KiB");

// Words published, or a number above SPOOL_CHUNK_WORDS: the header was overwritten.
static inline uint32_t spool_published(const struct spool_chunk *chunk)
{
    uint32_t end = atomic_load_explicit(&chunk->published, memory_order_acquire);
    uint32_t bytes = end - __atomic_load_n(&chunk->start, __ATOMIC_RELAXED);
    return bytes % 8 ? UINT32_MAX : bytes / 8;
}

// What of a process's calls is recorded.
enum spool_recording {
    SPOOL_RECORDING = 0,
    SPOOL_PAUSED = 1,
    SPOOL_STOPPED = 2, // as paused, until `start`
};

// What the recorder can be asked for; it answers when that is done.
enum spool_request {
    SPOOL_SYNC = 0,  // everything published so far is in the file
    SPOOL_RESET = 1, // the file begins anew
    SPOOL_REQUESTS = 2,
};

enum { SPOOL_STATE_CHANGES = 1024 };
#define SPOOL_RESET_STEP 0x9e3779b1u

// Words by which the process itself and `heaptape ctl` steer the recording (src/capture/spool/control.h). `state` is looked at
// by a thread's slow path alone; the changes between recorded and unrecorded time are exact nevertheless, since the
// recorder drops events by their stamps.
struct spool_control {
    _Atomic uint32_t state;                 // enum spool_recording
    uint32_t first_state;                   // before the first change; constant
    _Atomic uint32_t lock;                  // of `state` and the writing of changes
    _Atomic uint32_t reset_error;           // errno of the last reset, 0 when it was done
    _Atomic uint32_t asked[SPOOL_REQUESTS]; // requests made …
    _Atomic uint32_t done[SPOOL_REQUESTS];  // … and answered; a futex
    // Grows by SPOOL_RESET_STEP with each reset asked for, before that: a program that writes where it should not does not
    // thereby delete the trace.
    _Atomic uint32_t reset_proof;
    _Atomic uint64_t events; // recorded so far, as the recorder has counted
    // A ring of changes: stamp << 2 | the state from there on. Of the rings' counters, the writer's and the recorder's.
    _Atomic uint64_t changes_made, changes_taken;
    _Atomic uint64_t changes[SPOOL_STATE_CHANGES];
};

// What a process that has started its recorder itself asks for at its end.
enum spool_finishing {
    SPOOL_FINISHING = 1, // that the trace be completed, unless …
    SPOOL_GOES_ON = 2,   // … the recorder has others to record: its answer
};

enum spool_status {
    SPOOL_STARTING = 0, // being filled in
    SPOOL_RUNNING = 1,
    SPOOL_CLOSED =
        2,         // heaptape was detached from the process: nothing comes after the chunks at hand
    SPOOL_OFF = 3, // tracing turned itself off; `reason` says why
};

enum { SPOOL_COST_EVENTS = 64, SPOOL_FAST_EVENTS = 256 };

// Calls that a process has made and not recorded: on a cache line each, by the number of the thread.
enum { SPOOL_COUNTS = 16 };
struct spool_count {
    _Alignas(64) _Atomic uint64_t calls;
};

struct spool_header {
    uint64_t magic; // written last of the constants (release)
    uint32_t pid, ppid;
    uint64_t start_stamp; // in record units (ticks >> CODEC_STAMP_SHIFT)
    uint32_t max_chunks;  // chunks that the file has room for
    uint32_t
        parent_spool_pid; // of a fork child: the pid whose image it copied, else 0; of that image
    uint64_t parent_start_stamp;    // the start_stamp; and that of …
    uint64_t fork_stamp;            // … the fork; 0: no handler of pthread_atfork saw it
    uint64_t exe_device, exe_inode; // of the executable, as stat(2) names it; inode 0: unknown
    char statm
        [64]; // /proc/self/statm before the first event of an image; "": unknown, or a fork child
    uint64_t start_cpu_ns; // CPU time of the process until then
    uint64_t fast_ticks;   // ticks that SPOOL_FAST_EVENTS events take on the fast path

    _Alignas(64) _Atomic uint32_t status; // enum spool_status
    _Atomic uint32_t finishing;           // enum spool_finishing
    _Atomic uint32_t refused;  // 1: the recorder does not drain this spool, or no longer does
    _Atomic uint32_t adopted;  // 1: the recorder has found it
    _Atomic uint32_t ended_by; // PID of the heaptape that detached from the process; 0: none did
    _Atomic uint32_t
        restarts; // times that the trace began anew: what was defined in it is to be again
    // Grows by 1 when a chunk becomes DONE, and by SPOOL_CHUNKS_A_WAKE when the process wants something of the recorder.
    _Atomic uint32_t wakeups;
    _Atomic uint32_t threads_numbered; // numbers given to threads so far
    _Atomic uint32_t threads_live;
    _Atomic uint32_t fresh_chunks; // chunks [0, fresh_chunks) have been in use
    _Atomic uint64_t end_stamp;
    _Atomic uint64_t end_cpu_ns; // as start_cpu_ns; 0: it has not come to its end
    // What glibc's mallinfo2 said at the end where calls bypass the library: bytes in use, and those that malloc had of the
    // system. 0: not asked.
    _Atomic uint64_t malloc_in_use_bytes, malloc_system_bytes;

    _Alignas(64) _Atomic uint64_t
        free_top; // stack of FREE chunks: low 32 bits index + 1, high 32 bits a tag against ABA
    _Atomic uint32_t free_sequence;  // futex: grows when the recorder frees a chunk
    _Atomic uint32_t waiters;        // threads that sleep on it
    _Atomic uint64_t waits, wait_ns; // how often and how long threads waited for the recorder

    // Events that did not take the fast path, and what they cost: estimated from one in SPOOL_COST_EVENTS of a thread.
    _Alignas(64) _Atomic uint64_t slow_events, slow_ticks;
    // Calls of the real functions that were timed, and two estimates of the ticks that all calls took: less what reading the
    // clock takes by itself, as if it all came on top (signed), and with it.
    _Atomic uint64_t timed_calls, call_min_ticks, call_max_ticks;

    _Alignas(64) struct spool_control control;

    // Dropped under --lossy, after tracing has turned itself off, and of threads without a state.
    struct spool_count unrecorded[SPOOL_COUNTS];

    _Alignas(64) char reason[120]; // why status is SPOOL_OFF
    char allocator[512];           // path of the object that answers malloc
    char bypassed_by
        [512]; // object whose malloc the program calls instead of the library's; "": none
    char deepbound
        [2048]; // paths of objects whose calls bypass the library's functions, each ended by NUL …
    _Atomic uint32_t deepbound_bytes; // … cut at the room there is
    char exe[4096];
    uint32_t argv_bytes; // of argv, each ended by NUL; cut at the room there is
    char argv[32768];
    char end_statm[64]; // as statm, at the end of the process; "": unknown
};
_Static_assert(sizeof(struct spool_header) <= SPOOL_HEADER_BYTES, "the header has 64 KiB");

enum spool_session_flags {
    SPOOL_LOSSY = 1, // drop and count instead of waiting
    SPOOL_NO_RECORDER =
        2, // nobody drains yet (--collect later): chunks are not recycled, the spool grows
    SPOOL_START_PAUSED = 4,
    SPOOL_FOLLOW_NONE = 8,   // only the process that the recorder started is recorded …
    SPOOL_FOLLOW_MATCH = 16, // … and those whose executable's name `follow` matches
    SPOOL_USABLE = 32,       // the usable size of each block is recorded, too
    SPOOL_MAPS = 64,         // … the program's own mappings
    SPOOL_RESIDENCY = 128,   // … how many pages of its big blocks it uses
};

// Why a process has no spool: an errno of what it needs for that, or one of these.
enum spool_refusal {
    SPOOL_REFUSED_SECCOMP = 10000, // its system calls are filtered
    SPOOL_REFUSED_COUNTER,         // the time-stamp counter is forbidden
    SPOOL_REFUSED_ENDED,           // the recording had ended before it began
};

// A robust futex that the recorder holds for as long as it lives: at its death, whatever the cause, the kernel itself writes
// FUTEX_OWNER_DIED into `owner` (set_robust_list(2)). That needs no /proc and no system call to look at, is the same in
// every namespace, and no process that gets the recorder's pid later can be taken for it. A recorder that has stopped
// draining sets a bit that the kernel leaves alone.
#define SPOOL_RECORDER_STOPPED FUTEX_WAITERS
struct spool_recorder {
    void *next; // the kernel's list, in the recorder's own addresses
    _Atomic uint32_t owner;
};

// Magic and flags stay where they are in all versions, so that none removes what another has to collect.
struct spool_session {
    uint64_t magic;
    uint32_t recorder_pid;
    uint32_t attached;    // pid of the process that has started the recorder itself; 0: none
    uint32_t flags;       // enum spool_session_flags
    uint32_t clock_kind;  // enum clock_kind: stamps of all processes of the session
    uint32_t stamp_shift; // CODEC_STAMP_SHIFT of the recorder's build
    uint64_t start_stamp,
        realtime_ns; // when it was made and what CLOCK_REALTIME was, without a recorder
    char follow[SPOOL_MAX_FOLLOW]; // glob
    uint32_t depth;                // frames of call sites to be recorded, 0: none
    uint64_t sample_bytes;         // of one stack per so many bytes allocated; 0: of all calls
    uint32_t owner;                // what recorder.owner is while the recorder lives
    uint32_t
        filters; // of system calls, that the recorder itself has and that allow it to measure residency
    // Futex that the recorder sleeps on. Processes wake it without writing there: see struct spool_header for what they count.
    _Alignas(64) _Atomic uint32_t wakeups;

    _Alignas(64) struct spool_recorder recorder;
};

// A process that has the session and no spool.
enum { SPOOL_UNTRACED = 64, SPOOL_NAME_BYTES = 16 };
struct spool_untraced {
    uint32_t pid;         // as it sees itself
    _Atomic uint32_t why; // enum spool_refusal; 0: not filled in yet
    char name[SPOOL_NAME_BYTES];
    uint32_t resource; // RLIMIT_* that was the reason …
    uint64_t limit;    // … and its limit; 0: none was
    struct spool_count count;
};

// Start of the file of a user's reserves.
struct spool_reserves {
    uint64_t magic;
    _Atomic uint64_t taken;    // a bit for each; set by the process, cleared by the recorder
    _Atomic uint32_t untraced; // processes that could not make a spool: the first are described
    struct spool_untraced untraced_of[SPOOL_UNTRACED];
};
_Static_assert(sizeof(struct spool_reserves) <= SPOOL_RESERVES_BYTES, "reserves follow it");

// Which stacks are recorded: at most `depth` frames, 0 for none; one per sample_bytes allocated, 0 for all.
struct spool_stacks {
    uint32_t depth;
    uint64_t sample_bytes;
};

#define SPOOL_SAMPLE_BYTES (512ull << 10) // unless another number is asked for
#define SPOOL_MAX_SAMPLE   (1ull << 50)

// "DEPTH", "sample" or "sample:BYTES", with BYTES as 512, 64K, 16M, 2G. 0, -EINVAL or -ERANGE.
int spool_parse_stacks(const char *text, struct spool_stacks *to);

// Calls of the process that are not recorded.
static inline uint64_t spool_sum(const struct spool_count counts[SPOOL_COUNTS])
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < SPOOL_COUNTS; i++)
        calls += atomic_load_explicit(&counts[i].calls, memory_order_relaxed);
    return calls;
}

static inline uint64_t spool_unrecorded(const struct spool_header *h)
{
    return spool_sum(h->unrecorded);
}

#endif
