// The raw trace, format version 1: what stands in it. The contract is docs/reference/trace-format.md.
#ifndef HEAPTAPE_TRACE_TRACE_H
#define HEAPTAPE_TRACE_TRACE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_VERSION = 1 };

// Frame types. Wire values.
enum trace_frame {
    TRACE_SESSION = 1,     // fields: of the recording; always the first frame
    TRACE_PROCESS = 2,     // fields: of a process image, before its first events
    TRACE_EVENTS = 3,      // a piece of a batch: segments of records, in columns
    TRACE_PROCESS_END = 4, // fields: how it ended
    TRACE_SAMPLES = 5,     // memory of the processes, sampled from outside
    TRACE_END = 6,   // fields: totals; always the last frame of a recording that was not cut off
    TRACE_NAMES = 8, // of code addresses of a process
    TRACE_PAGES = 9, // fields: which pages of a process are resident (trace/pages.h)
    TRACE_UNRECORDED =
        7, // fields: processes that ran and were not recorded; at most one, before END
};

// Tags of the fields of SESSION, PROCESS, PROCESS_END and END frames. Wire values, one number space, never
// reused.
enum trace_field {
    TRACE_F_CLOCK_KIND = 1,    // enum clock_kind
    TRACE_F_CLOCK_HZ = 2,      // ticks a second (SESSION; END: measured better)
    TRACE_F_STAMP_SHIFT = 3,   // a stamp counts 2^this ticks
    TRACE_F_START_STAMP = 4,   // of the recording or the process
    TRACE_F_REALTIME_NS = 5,   // CLOCK_REALTIME at START_STAMP (SESSION)
    TRACE_F_ARGV = 6,          // each argument ended by NUL
    TRACE_F_HOST = 7,          // uname -n
    TRACE_F_KERNEL = 8,        // uname -sr
    TRACE_F_CPU = 9,           // model name
    TRACE_F_CPUS = 10,         // online
    TRACE_F_MEMORY_BYTES = 11, // of the machine
    TRACE_F_HEAPTAPE = 12,     // version that recorded
    TRACE_F_ORDER_ONLY = 13,   // not 0: stamps are no times, they only order the events (SESSION)
    TRACE_F_STACK_SAMPLE_BYTES = 14,
    TRACE_F_DUMPED =
        15, // text: why it was written; a trace of the last part of a recording (SESSION)
    TRACE_F_SEGMENT = 16,   // number of this segment of a recording, from 1 (SESSION)
    TRACE_F_RECORDING = 17, // REALTIME_NS of the first segment (SESSION)
    TRACE_F_PROCESS = 20,   // number of the process in this trace, from 0, in order of appearance
    TRACE_F_PID = 21,
    TRACE_F_PPID = 22,
    TRACE_F_EXE = 23,
    TRACE_F_ALLOCATOR = 24,          // path of the object that answered malloc
    TRACE_F_ALLOCATOR_BUILD_ID = 26, // of that object's file, hexadecimal digits
    TRACE_F_FORKED_FROM =
        25, // pid of the process whose memory this one began with (fork without exec)
    TRACE_F_FORKED_FROM_START = 27, // start_stamp of that process image
    TRACE_F_FORK_STAMP = 28,        // of the fork
    TRACE_F_INHERITED_MODULES = 29, // of the modules listed first: so many are the parent's
    TRACE_F_END_STAMP = 30,
    TRACE_F_EXIT_STATUS = 31,  // as wait gives it; only of the recorder's own child
    TRACE_F_LOST_RECORDS = 32, // words dropped under --lossy, or missing in a stream
    TRACE_F_WAITS = 33,        // times a thread waited for the recorder
    TRACE_F_WAIT_NS = 34,
    TRACE_F_THREADS = 35,
    TRACE_F_OFF_REASON = 36,    // text: why tracing turned itself off
    TRACE_F_RECORDED_FROM = 37, // stamps: when recording began and ended, of a process that was not
    TRACE_F_RECORDED_TO = 38,   // recorded all its life
    TRACE_F_THREAD_NAMES = 39,  // for each a varint tid, a varint length, the name
    TRACE_F_EVENTS = 40,        // counted events of the whole trace (END)
    TRACE_F_PROCESS_EVENTS = 41, // triples of varints: process, pid, its counted events (END)
    TRACE_F_MISSED_BY = 42,      // enum trace_missed_by (UNRECORDED, as what follows)
    TRACE_F_MISSED = 43,         // processes in all; those below are the first
    TRACE_F_MISSED_PID =
        44, // of the process that executed a program: what follows, to the next such field, is of it
    TRACE_F_MISSED_NAME = 45,  // as the kernel has it
    TRACE_F_MISSED_WHY = 46,   // text
    TRACE_F_MISSED_FORKS = 47, // processes that it forked and that ran the same program
    TRACE_F_MISSED_CALLS = 48, // that are known to be missing; absent: their number is not known
    TRACE_F_MISSED_NS = 49,    // how long it ran; absent: not known
    TRACE_F_BYPASSED_BY =
        50, // text: object whose malloc the program calls instead of ours (PROCESS_END)
    TRACE_F_DEEPBOUND =
        51, // paths of objects that call the real functions, each ended by NUL (PROCESS_END)
    TRACE_F_CPU_NS =
        52, // CPU time of the process while it was recorded, absent: not known (PROCESS_END) …
    TRACE_F_RECORDING_TICKS = 53, // … and how much of that recording took, estimated (PROCESS_END)
    // Of a process with DEEPBOUND: what glibc's malloc had in use at its end, and had of the system (PROCESS_END)
    TRACE_F_MALLOC_IN_USE_BYTES = 54,
    TRACE_F_MALLOC_SYSTEM_BYTES = 55,
    // Ticks that the calls of the real functions took, at least and at most; absent: too few were timed (PROCESS_END)
    TRACE_F_CALL_MIN_TICKS = 56,
    TRACE_F_CALL_MAX_TICKS = 57,
    TRACE_F_CONTINUES = 58, // not 0: another segment follows (END)
    TRACE_F_WHOLE =
        59, // fields of the frame that ends the process in the whole recording (PROCESS_END of a segment)
    // Of PAGES frames.
    TRACE_F_PAGES_STAMP = 60,     // when its reading began …
    TRACE_F_PAGES_END_STAMP = 61, // … and ended
    TRACE_F_PAGE_BYTES = 62,      // before the first mapping
    TRACE_F_RSS_BYTES = 63,       // of the whole process, as the three that follow
    TRACE_F_PSS_BYTES = 64,
    TRACE_F_SWAP_BYTES = 65,
    TRACE_F_HUGE_BYTES = 66, // anonymous memory in huge pages
    TRACE_F_MINOR_FAULTS = 67,
    TRACE_F_MAJOR_FAULTS = 68,
    TRACE_F_PROCESS_CPU_NS = 69, // since the process started
    TRACE_F_CGROUP_BYTES = 70,   // memory that its cgroup uses; absent: there is no such controller
    TRACE_F_CGROUP_LIMIT_BYTES = 71,
    TRACE_F_UNLISTED =
        72, // varints: enum trace_memory, resident bytes of its mappings that have no field of their own
    TRACE_F_MAPPING = 73, // varints, see docs/reference/trace-format.md
};

// One run of words of one stream of one thread, as an EVENTS frame holds it.
struct trace_segment {
    uint32_t process; // number of a PROCESS frame before
    uint32_t thread;  // number in its process, from 0
    uint32_t tid;
    uint32_t stream;
    uint64_t first_word; // place in the stream: a gap says that words are lost
    uint64_t epoch0;     // codec state before words[0]
    uint64_t base0;
    uint64_t epoch_end; // codec state after the last word; filled in by writer and reader
    uint64_t base_end;
    uint32_t n_words;
    uint32_t n_records; // filled in by writer and reader
    const uint64_t *words;
};

// What a SAMPLES frame holds.
struct trace_sample {
    uint32_t process;
    uint64_t stamp;
    uint64_t rss_bytes;  // resident, all
    uint64_t anon_bytes; // resident anonymous: heap and stacks
};

// Facts of a SESSION and a PROCESS frame. Strings are owned; release with trace_*_release.
struct trace_session {
    enum clock_kind clock;
    uint64_t clock_hz;
    unsigned stamp_shift;
    uint64_t start_stamp, realtime_ns;
    bool order_only; // stamps are no times
    uint64_t
        stack_sample_bytes; // one call site is recorded per so many bytes allocated; 0: all or none are
    char *argv, *host, *kernel, *cpu, *heaptape;
    uint64_t segment, recording_ns; // as TRACE_F_SEGMENT and TRACE_F_RECORDING; 0: it is no segment
    char *dumped;                   // why `record --flight` wrote it; NULL: it is a whole recording
    uint32_t argv_bytes, cpus;
    uint64_t memory_bytes;
};

struct trace_process {
    uint32_t number, pid, ppid, forked_from;
    uint64_t start_stamp;
    uint64_t forked_from_start; // start_stamp of the process image that forked it; 0: not known
    uint64_t fork_stamp;        // 0: the fork was not seen, it was before start_stamp
    char *exe, *argv, *allocator, *allocator_build_id;
    uint32_t argv_bytes;
    uint32_t inherited_modules; // as TRACE_F_INHERITED_MODULES
    // From PROCESS_END; `ended` is 0 when there is none.
    int ended;
    uint64_t end_stamp;
    uint64_t recorded_from, recorded_to; // recorded_to 0: all its life
    uint64_t exit_status, lost_records, waits, wait_ns, threads;
    int has_exit_status;
    char *off_reason;
    char *bypassed_by; // NULL: nothing is known of that
    char *deepbound;   // as TRACE_F_DEEPBOUND; NULL: there is no such object
    uint32_t deepbound_bytes;
    // CPU time since its first event, 0: not known, and the part that recording took: an estimate in ticks of the clock.
    uint64_t cpu_ns, recording_ticks;
    uint64_t call_min_ticks,
        call_max_ticks; // that the allocator's functions took; max 0: not known
    // What glibc's malloc had at the end, where some calls of it were not recorded. 0: not known.
    uint64_t malloc_in_use_bytes, malloc_system_bytes;
    uint8_t *thread_names; // as TRACE_F_THREAD_NAMES holds them
    size_t thread_names_bytes;
    uint8_t
        *whole; // as TRACE_F_WHOLE; NULL: the process goes on behind this segment, or it is none
    size_t whole_bytes;
};

// How the processes were found that were not recorded.
enum trace_missed_by {
    TRACE_MISSED_UNKNOWN = 0, // nobody looked for them
    TRACE_MISSED_KERNEL = 1,  // the kernel reported every process
    TRACE_MISSED_GAPS = 2,    // the same, but it dropped some reports
    TRACE_MISSED_PROC =
        3, // /proc was searched every now and then: of the shortest some may be missing
};

// A program that ran and was not recorded, in one process and those that it forked.
struct trace_missed {
    uint32_t pid;
    char *name, *why; // owned
    uint64_t forks;
    uint64_t calls, ns; // UINT64_MAX: not known
};

struct trace_unrecorded {
    enum trace_missed_by by;
    uint64_t processes;         // in all, with forks
    struct trace_missed *items; // the first of them; owned
    size_t n, capacity;
};

// Adds one; the texts are copied. 0 or -ENOMEM.
int trace_unrecorded_add(struct trace_unrecorded *u, const struct trace_missed *missed);
void trace_unrecorded_release(struct trace_unrecorded *u);

void trace_session_release(struct trace_session *s);
void trace_process_release(struct trace_process *p);

// Frees the texts that are known of a process, and keeps its number, pid and stamps.
void trace_process_forget(struct trace_process *p);

// A stream's key in a map. Streams are 0 and 1, processes far fewer than 2^31: the key is one of its own for all that a recorder
// writes, and where a damaged trace has others, streams are confused but nothing worse.
static inline uint64_t trace_stream_key(uint32_t process, uint32_t thread, uint32_t stream)
{
    return (uint64_t)process << 33 ^ (uint64_t)thread << 1 ^ stream;
}

// Nanoseconds to stamps.
static inline uint64_t trace_stamps(const struct trace_session *s, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * s->clock_hz / 1000000000u) >> s->stamp_shift;
}

// Stamps to nanoseconds since the start of the recording.
static inline uint64_t trace_stamp_ns(const struct trace_session *s, uint64_t stamp)
{
    uint64_t since = stamp > s->start_stamp ? stamp - s->start_stamp : 0;
    return clock_to_ns(since << s->stamp_shift, s->clock_hz);
}

#endif
