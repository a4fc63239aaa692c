// The spool: shared memory between a traced process (the producer, src/capture/producer/producer.h)
// and the recorder (the consumer). The producer and the recorder must be from the same build: the
// magic numbers include the version of the layout. Nothing here allocates.
//
// A session is a directory, on tmpfs by default. It contains:
//   - `session` (struct spool_session), written by the recorder only. A process reads the file once
//     and maps it only to pass the futexes in it to system calls. If a program truncates the file,
//     a system call on the mapping fails, whereas a load would raise SIGBUS.
//   - `<pid>-<n>.spool`, one per process image: struct spool_header, then chunks of 64 KiB.
//     The process creates the sparse file under another name and renames it when it is complete.
//     The process maps the file in steps, each from the mapping of the previous step, and therefore
//     needs no file descriptor and no path later.
//   - `reserves-<uid>` (struct spool_reserves), one for each user, for processes that cannot create
//     a file.
//
// Processes of different users do not share files, unless a process inherited a mapping.
//
// States of a chunk: FREE -> OWNED (a thread popped the chunk or got a fresh chunk) -> DONE (the
// chunk is full or the thread exited) -> FREE (the recorder drained it). A thread writes words and
// then publishes them. Published words survive the process, no matter how it dies. Once per batch,
// the recorder also drains the published words of OWNED chunks.
#pragma once

#include "capture/spool/attach.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SPOOL_SESSION_MAGIC  0x3773736573735448ull // "HTssess7"
#define SPOOL_MAGIC          0x476c6f6f70735448ull // "HTspoolG"
#define SPOOL_RESERVES_MAGIC 0x3576726573655448ull // "HTeserv5"
#define SPOOL_SESSION_FILE   "session"
#define SPOOL_FILE_SUFFIX    ".spool"
// Prefix of the reserves file's name, before the effective user ID as the process sees it.
#define SPOOL_RESERVES_FILE "reserves-"

// Environment variables of a traced process.
#define SPOOL_ENV_DIR    "HEAPTAPE_SPOOL"  // directory of the session
#define SPOOL_ENV_STACKS "HEAPTAPE_STACKS" // value of --stacks in a session without a recorder

// Environment variable of a recorder that was started by a traced process: "PID:FD". PID is the
// traced process. The recorder writes the path of the session directory and a terminating NUL to
// descriptor FD.
#define SPOOL_ENV_ATTACH "HEAPTAPE_ATTACH"

enum {
    // With chunks of 1 MiB, an event would cost twice as much, because the words would be evicted
    // from the L2 cache (docs/design/capture.md).
    SPOOL_CHUNK_BYTES = 65536,
    SPOOL_CHUNK_HEADER_BYTES = 64,
    // Pages of a chunk are allocated in pieces of this size. Most processes and threads use one
    // piece.
    SPOOL_PIECE_BYTES = 16384,
    SPOOL_CHUNK_WORDS = (SPOOL_CHUNK_BYTES - SPOOL_CHUNK_HEADER_BYTES) / 8,

    // Size of struct spool_header with its strings. It is a multiple of the chunk size, so that
    // chunks are aligned.
    SPOOL_HEADER_BYTES = 65536,
    SPOOL_MAX_CHUNKS = 16384,         // 1 GiB; tmpfs allocates only the pages that are written
    SPOOL_MAX_CHUNKS_ALONE = 1 << 18, // 16 GiB, without a recorder
    // A process may hold SPOOL_BASE_CHUNKS plus SPOOL_CHUNKS_A_THREAD per live thread before its
    // threads wait for the recorder.
    SPOOL_BASE_CHUNKS = 24,
    SPOOL_CHUNKS_A_THREAD = 2,
    // The recorder is woken when this many chunks are full. More frequent wake-ups would slow the
    // program down, because each pass of the recorder costs the program time.
    SPOOL_CHUNKS_A_WAKE = 10,
    SPOOL_MAX_FOLLOW = 256,
    SPOOL_MAX_DEPTH = 128, // stack frames of a call site
};

// Space for spools in the user's reserves file, after struct spool_reserves. Fork children use
// these reserves if they cannot create a file, for example after chroot or under resource limits.
// They inherit a mapping of the start of the file and map a reserve through it.
enum {
    SPOOL_RESERVES = 64,
    SPOOL_RESERVE_CHUNKS = 64,
    SPOOL_RESERVE_BYTES = SPOOL_HEADER_BYTES + SPOOL_RESERVE_CHUNKS * SPOOL_CHUNK_BYTES,
    SPOOL_RESERVES_BYTES = 65536,
};

// Returns the offset of reserve `slot` in the file. RLIMIT_FSIZE may shorten the file, which then
// has fewer reserves.
static inline uint64_t spool_reserve_offset(unsigned slot)
{
    return SPOOL_RESERVES_BYTES + (uint64_t)slot * SPOOL_RESERVE_BYTES;
}

enum {
    // Mode of the session directory if the recorder runs as root. Only root can list it (see
    // record/drain/session.c).
    SPOOL_OPEN_MODE = 01733,
    SPOOL_UNMAPPED_UID = 65534, // owner of files whose user has no mapping in the user namespace
};

// Returns true if a session may use the directory. If another user owned the directory or could
// write to it, that user could read the recording.
static inline bool spool_folder_is_safe(const struct stat *st, uid_t self)
{
    bool foreign = st->st_uid != self && st->st_uid != 0 && st->st_uid != SPOOL_UNMAPPED_UID;
    bool open = st->st_mode & (S_IWGRP | S_IWOTH);
    return S_ISDIR(st->st_mode) && !foreign && (!open || (st->st_mode & 07777) == SPOOL_OPEN_MODE);
}

enum spool_chunk_state { SPOOL_CHUNK_FREE = 0, SPOOL_CHUNK_OWNED = 1, SPOOL_CHUNK_DONE = 2 };

struct spool_chunk {
    // End of the published words: the low 32 bits of the address after the last published word, in
    // the process's address space. Only the owner writes this member, with release order after the
    // words. The recorder loads it with acquire order (spool_published).
    _Atomic uint32_t published;
    _Atomic uint32_t state; // enum spool_chunk_state
    // Before it sets state to OWNED (release), the owner writes `start` and the members up to
    // base0. They are constant until the chunk is FREE again.
    uint32_t thread; // number of the thread within its process, from 0, in order of creation
    uint32_t tid;    // kernel's thread ID
    // 1 for events in a signal handler that interrupted the writing of a record, else 0.
    uint32_t stream;
    uint32_t next_free;  // link in the stack of free chunks
    uint64_t first_word; // offset of words[0] in the stream, in words
    uint64_t epoch0;     // epoch and base of the codec before words[0]
    uint64_t base0;
    uint32_t drained_words; // used by the recorder only
    // Number of bytes, from the start of the chunk, whose pages are allocated. A multiple of
    // SPOOL_PIECE_BYTES.
    uint32_t ready_bytes;
    uint32_t start; // initial value of `published`
    uint32_t reserved;
    uint64_t words[SPOOL_CHUNK_WORDS];
};
_Static_assert(sizeof(struct spool_chunk) == SPOOL_CHUNK_BYTES, "a chunk is 64 KiB");

// Returns the number of published words. A result above SPOOL_CHUNK_WORDS means that the header was
// overwritten.
static inline uint32_t spool_published(const struct spool_chunk *chunk)
{
    uint32_t end = atomic_load_explicit(&chunk->published, memory_order_acquire);
    uint32_t bytes = end - __atomic_load_n(&chunk->start, __ATOMIC_RELAXED);
    return bytes % 8 ? UINT32_MAX : bytes / 8;
}

enum spool_recording {
    SPOOL_RECORDING = 0,
    SPOOL_PAUSED = 1,
    SPOOL_STOPPED = 2, // like PAUSED, until CONTROL_START
};

// Requests to the recorder, which acknowledges each completed request.
enum spool_request {
    SPOOL_SYNC = 0,  // write everything published so far to the file
    SPOOL_RESET = 1, // empty the file and restart the trace
    SPOOL_REQUESTS = 2,
};

enum { SPOOL_STATE_CHANGES = 1024 };
#define SPOOL_RESET_STEP 0x9e3779b1u

// Control words, written by the process and by `heaptape ctl` (src/capture/spool/control.h). Only
// the slow path of a thread reads `state`. The boundaries between recorded and unrecorded time are
// still exact, because the recorder drops events by timestamp.
struct spool_control {
    _Atomic uint32_t state;                 // enum spool_recording
    uint32_t first_state;                   // `state` before the first change; constant
    _Atomic uint32_t lock;                  // protects `state` and the writing of changes
    _Atomic uint32_t reset_error;           // errno of the last reset; 0 if it succeeded
    _Atomic uint32_t asked[SPOOL_REQUESTS]; // number of requests made
    _Atomic uint32_t done[SPOOL_REQUESTS];  // number of requests acknowledged; a futex
    // Incremented by SPOOL_RESET_STEP before each reset request. The recorder ignores reset
    // requests without this increment, so that a stray write by the program cannot delete the
    // trace.
    _Atomic uint32_t reset_proof;
    _Atomic uint64_t events; // events recorded so far, counted by the recorder
    // Ring of state changes. Each change is `stamp << 2 | state`; the state applies from the stamp
    // on. The writer increments changes_made, and the recorder increments changes_taken.
    _Atomic uint64_t changes_made, changes_taken;
    _Atomic uint64_t changes[SPOOL_STATE_CHANGES];
};

// Handshake when a process that started its own recorder exits.
enum spool_finishing {
    SPOOL_FINISHING = 1, // the process asks the recorder to complete the trace
    // The recorder continues, because other processes are being recorded.
    SPOOL_GOES_ON = 2,
};

enum spool_status {
    SPOOL_STARTING = 0, // the header is being filled in
    SPOOL_RUNNING = 1,
    SPOOL_CLOSED = 2, // heaptape has detached from the process; no more chunks will be written
    SPOOL_OFF = 3,    // tracing turned itself off; `reason` contains the cause
};

enum { SPOOL_COST_EVENTS = 64, SPOOL_FAST_EVENTS = 256 };

// Number of calls that were made but not recorded. The thread number selects one of SPOOL_COUNTS
// such counters, each in its own cache line.
enum { SPOOL_COUNTS = 16 };
struct spool_count {
    _Alignas(64) _Atomic uint64_t calls;
};

// A process does not read the time-stamp counter at every event. These members request readings,
// and count the events that were stamped without a reading.
enum {
    SPOOL_READ_ALL = 1,          // bit of `sequence`: read the counter at every event
    SPOOL_THREADS = 2,           // bit of `sequence`: the process has had several threads
    SPOOL_READ_STEP = 8,         // added to `sequence` to request a reading at the next event
    SPOOL_MAX_UNREAD_WORDS = 64, // maximum distance between two readings
};
struct spool_readings {
    // The recorder changes this member before each drain and with each state change. The process
    // changes it when it gets a second thread or forks. All threads read it at each event, so no
    // frequently written member shares its cache line.
    _Alignas(64) _Atomic uint32_t sequence;
    // Count words since the start of the process. unread_words counts words whose events did not
    // read the counter, and therefore have the previous reading's stamp. early_words counts only
    // the words among them whose next reading came at least usual_ticks after the previous reading.
    // Both are updated at a later reading.
    _Alignas(64) _Atomic uint64_t unread_words, early_words;
    uint64_t usual_ticks;
};

// Value of spool_header.reason if the recorder has stopped draining or has ended.
#define SPOOL_REASON_ENDED "the recorder has ended"

struct spool_header {
    uint64_t magic; // written after all other constants (release)
    uint32_t pid, ppid;
    uint64_t start_stamp;        // in record units (ticks >> CODEC_STAMP_SHIFT)
    uint32_t max_chunks;         // number of chunks that the file has space for
    uint32_t parent_spool_pid;   // pid of the parent image, or 0 if this image is not a fork child
    uint64_t parent_start_stamp; // start_stamp of the parent image
    uint64_t fork_stamp;         // stamp of the fork; 0 if no pthread_atfork handler ran
    uint64_t exe_device, exe_inode; // executable, as in stat(2); inode 0 if unknown
    // Contents of /proc/self/statm before the first event of the image. "" if unknown, or in a fork
    // child.
    char statm[64];
    uint64_t start_cpu_ns; // CPU time of the process when the spool was created
    uint64_t fast_ticks;   // ticks that SPOOL_FAST_EVENTS events take on the fast path
    uint64_t unread_ticks; // like fast_ticks, but without readings of the counter

    _Alignas(64) _Atomic uint32_t status; // enum spool_status
    _Atomic uint32_t finishing;           // enum spool_finishing
    // 1 if the recorder does not drain this spool, or has stopped draining it.
    _Atomic uint32_t refused;
    _Atomic uint32_t adopted;  // 1 if the recorder has found this spool
    _Atomic uint32_t ended_by; // PID of the heaptape that detached from the process, or 0
    // While the process waits for the plan of an object: 1 + the process's descriptor of the
    // object's file (entries_name_file). The recorder resets this member to 0.
    _Atomic uint32_t plan_wanted;
    // Number of trace resets so far. After a reset, the process must repeat its definitions.
    _Atomic uint32_t restarts;
    // Incremented by 1 when a chunk becomes DONE, and by SPOOL_CHUNKS_A_WAKE when the process needs
    // the recorder.
    _Atomic uint32_t wakeups;
    _Atomic uint32_t threads_numbered; // number of thread numbers assigned so far
    _Atomic uint32_t threads_live;
    _Atomic uint32_t fresh_chunks; // chunks [0, fresh_chunks) have been used
    _Atomic uint64_t end_stamp;
    _Atomic uint64_t end_cpu_ns;    // CPU time at exit; 0 if the process has not exited normally
    _Atomic uint32_t without_units; // 1 if there was no memory for the units of a region
    _Atomic uint64_t end_private_bytes; // resident private memory of heaptape at exit, or 0
    // glibc's mallinfo2 at exit, if calls bypass the library: bytes in use, and bytes that malloc
    // has obtained from the system. 0 if not measured.
    _Atomic uint64_t malloc_in_use_bytes, malloc_system_bytes;

    // Stack of FREE chunks. The low 32 bits are the index of the top chunk plus 1; the high 32 bits
    // are a tag against ABA.
    _Alignas(64) _Atomic uint64_t free_top;
    _Atomic uint32_t free_sequence;  // futex, incremented when the recorder frees a chunk
    _Atomic uint32_t waiters;        // threads that sleep on free_sequence
    _Atomic uint64_t waits, wait_ns; // number and total duration of threads' waits for the recorder

    // Number of events that did not use the fast path, and their cost. The cost is estimated from
    // one in SPOOL_COST_EVENTS of each thread's events.
    _Alignas(64) _Atomic uint64_t slow_events, slow_ticks;
    // Number of timed calls to the real functions, and two estimates of the ticks spent in all
    // calls. call_min_ticks excludes the cost of reading the clock and may be negative (two's
    // complement); call_max_ticks includes it.
    _Atomic uint64_t timed_calls, call_min_ticks, call_max_ticks;

    struct spool_readings readings;

    _Alignas(64) struct spool_control control;

    // Calls dropped under --lossy, after tracing turned itself off, or in threads without a state.
    struct spool_count unrecorded[SPOOL_COUNTS];

    _Alignas(64) char reason[120]; // reason for SPOOL_OFF
    char allocator[512];           // path of the object that defines the real malloc
    char bypassed_by[512]; // object whose malloc the program calls instead of the library's, or ""
    // Paths of objects whose calls bypass the library, each terminated by NUL. Truncated if there
    // is no space.
    char deepbound[2048];
    _Atomic uint32_t deepbound_bytes;
    char exe[4096];
    uint32_t argv_bytes; // argv, each string terminated by NUL; truncated if there is no space
    char argv[32768];
    char end_status[2048];      // /proc/self/status at exit, or "" if unknown
    _Atomic uint32_t sandboxed; // the process must not make the system call that wakes the recorder
    _Atomic uint32_t quiet;     // passes are rare, so each chunk wakes the recorder
};
_Static_assert(sizeof(struct spool_header) <= SPOOL_HEADER_BYTES, "the header fits in 64 KiB");

enum spool_session_flags {
    SPOOL_LOSSY = 1, // drop and count events instead of waiting for the recorder
    // The session has no recorder (--collect reads the spool later). Chunks are not reused, so the
    // spool grows.
    SPOOL_NO_RECORDER = 2,
    SPOOL_START_PAUSED = 4,
    SPOOL_FOLLOW_NONE = 8,   // record only the process that the recorder started
    SPOOL_FOLLOW_MATCH = 16, // also record processes whose executable name matches `follow`
    SPOOL_USABLE = 32,       // record the usable size of each block
    SPOOL_MAPS = 64,         // record the program's own mappings
    SPOOL_RESIDENCY = 128,   // record how many pages of the process's big blocks are in use
    SPOOL_EXACT_CLOCK = 256, // read the counter at every event
};

// Reason why a process has no spool. A value below 10000 is the errno of the operation that failed.
enum spool_refusal {
    SPOOL_REFUSED_SECCOMP = 10000, // the process's system calls are filtered
    SPOOL_REFUSED_COUNTER,         // the process cannot read the time-stamp counter
    SPOOL_REFUSED_ENDED,           // the recording ended before the process joined
};

// A robust futex that the recorder holds while it is alive. When the recorder dies for any reason,
// the kernel sets FUTEX_OWNER_DIED in `owner` (set_robust_list(2)). The check of `owner` works
// without /proc, in every namespace, and even if the recorder's pid was reused. A recorder that
// stops draining sets SPOOL_RECORDER_STOPPED, a bit that the kernel does not change.
#define SPOOL_RECORDER_STOPPED FUTEX_WAITERS
struct spool_recorder {
    void *next; // link in the kernel's robust list: an address in the recorder
    _Atomic uint32_t owner;
};

// magic and flags have the same offsets in all versions, so that no version deletes the uncollected
// sessions of another version.
struct spool_session {
    uint64_t magic;
    uint32_t recorder_pid;
    uint32_t attached;    // pid of the process that started the recorder, or 0
    uint32_t flags;       // enum spool_session_flags
    uint32_t clock_kind;  // enum clock_kind: clock of all stamps in the session
    uint32_t stamp_shift; // CODEC_STAMP_SHIFT of the recorder's build
    // realtime_ns is the time of creation; set only if there is no recorder
    uint64_t start_stamp, realtime_ns;
    char follow[SPOOL_MAX_FOLLOW]; // glob pattern
    uint32_t depth; // stack frames recorded per call site; 0 if no stacks are recorded
    // Mean number of bytes allocated between recorded stacks, or 0 if every stack is recorded.
    uint64_t sample_bytes;
    struct spool_wrap wrap; // functions of --wrap
    uint32_t owner;         // value of recorder.owner while the recorder lives
    // Number of the recorder's own system call filters. A process with the same number of filters
    // may measure residency.
    uint32_t filters;
    // Futex that the recorder sleeps on. Processes wake the recorder, but do not write to this
    // word. They increment spool_header.wakeups instead.
    _Alignas(64) _Atomic uint32_t wakeups;

    _Alignas(64) struct spool_recorder recorder;
};

// A process that joined the session but has no spool.
enum { SPOOL_UNTRACED = 64, SPOOL_NAME_BYTES = 16 };
struct spool_untraced {
    uint32_t pid;         // in the process's own pid namespace
    _Atomic uint32_t why; // enum spool_refusal, or 0 while the entry is not filled in
    char name[SPOOL_NAME_BYTES];
    uint32_t resource; // RLIMIT_* that caused the refusal
    uint64_t limit;    // value of that limit; 0 if no limit was the cause
    struct spool_count count;
};

struct spool_reserves {
    uint64_t magic;
    _Atomic uint64_t taken; // one bit per reserve, set by the process and cleared by the recorder
    // Number of processes that could not create a spool. Only the first SPOOL_UNTRACED of them are
    // described.
    _Atomic uint32_t untraced;
    struct spool_untraced untraced_of[SPOOL_UNTRACED];
};
_Static_assert(sizeof(struct spool_reserves) <= SPOOL_RESERVES_BYTES,
               "the reserves follow the struct");

// Selects the stacks to record. A recorded stack has up to `depth` frames; a depth of 0 records no
// stacks. On average, one stack per sample_bytes allocated is recorded; a value of 0 records every
// stack.
struct spool_stacks {
    uint32_t depth;
    uint64_t sample_bytes;
};

#define SPOOL_SAMPLE_BYTES (512ull << 10) // default of --stacks=sample
#define SPOOL_MAX_SAMPLE   (1ull << 50)

// Parses "DEPTH", "sample" or "sample:BYTES". BYTES may have a suffix: 512, 64K, 16M, 2G. Returns
// 0, -EINVAL or -ERANGE.
int spool_parse_stacks(const char *text, struct spool_stacks *to);

// Returns the sum of the counters.
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
