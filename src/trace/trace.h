// Contents of a raw trace, format version 1: docs/reference/trace-format.md.
//
// Each thread of a process image writes records into a stream of 64-bit words. A segment is a run
// of consecutive words of a stream. A stamp is the time of an event in units of 2^stamp_shift
// ticks.
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_VERSION = 1 };

// Frame types. Wire values.
enum trace_frame {
    TRACE_SESSION = 1,     // fields that describe the recording; always the first frame
    TRACE_PROCESS = 2,     // fields that describe a process image; precedes its first events
    TRACE_EVENTS = 3,      // part of a batch: segments with records
    TRACE_PROCESS_END = 4, // fields known at the end of a process image
    TRACE_SAMPLES = 5,     // memory of the processes, sampled by the recorder
    TRACE_END = 6,   // fields with totals; the last frame; missing if the recording was cut off
    TRACE_NAMES = 8, // names of code addresses of a process
    TRACE_PAGES = 9, // fields: resident pages of a process (trace/pages.h)
    TRACE_UNRECORDED = 7, // fields of processes that were not recorded; at most once, before END
};

// Data that is missing from a recording, other than the processes that an UNRECORDED frame lists.
// X(name, tag, meaning): a value of 0 means that nothing is missing. The names are also keys in the
// JSON output of `stat` and in its schema.
// clang-format off
#define TRACE_BALANCE(X) \
    X(lost_elsewhere, 74, "lost records that are not counted for a process of the trace") \
    X(lost_at_least, 75, "1: the number of lost records is a lower bound") \
    X(lossy, 76, "1: recorded with --lossy") \
    X(without_spool, 77, "processes that could not create a spool: no space, memory or file descriptor was left") \
    X(unreadable_spools, 78, "spools that a program truncated or overwrote before the recorder read them") \
    X(unopened_spools, 79, "spools that the recorder could not open for lack of memory or file descriptors") \
    X(overwritten_session, 80, "1: a program overwrote the memory that it shares with the recorder") \
    X(size_limit, 81, "1: recording stopped at --max-size") \
    X(stop_signal, 82, "signal that stopped the recording before the program exited") \
    X(ended_early, 83, "1: the recording of an attached process ended before its time, and the process continued") \
    X(ended_by, 84, "PID of the heaptape that ended it; 0: unknown") \
    X(bad_code_names, 85, "invalid records of perf-PID.map and jit-PID.dump") \
    X(cut_code_names, 86, "processes whose perf-PID.map or jit-PID.dump was not read completely") \
    X(clock_ahead_ns, 87, "maximum by which timestamps of a process were ahead of the recorder's clock") \
    X(clock_behind_ns, 88, "maximum by which timestamps of a process preceded the recording or an earlier timestamp of their thread") \
    X(clock_pid, 89, "process with such timestamps") \
    X(clock_distrusted, 90, "1: the kernel stopped using the processor's counter as its clock during the recording")
// clang-format on

// Tags of fields. All frames share one number space of wire values, which are never reused.
enum trace_field {
    TRACE_F_CLOCK_KIND = 1,    // enum clock_kind
    TRACE_F_CLOCK_HZ = 2,      // ticks per second (SESSION; END: more exact)
    TRACE_F_STAMP_SHIFT = 3,   // stamps are in units of 2^STAMP_SHIFT ticks
    TRACE_F_START_STAMP = 4,   // start of the recording or the process
    TRACE_F_REALTIME_NS = 5,   // CLOCK_REALTIME at START_STAMP (SESSION)
    TRACE_F_ARGV = 6,          // arguments, each terminated by NUL
    TRACE_F_HOST = 7,          // uname -n
    TRACE_F_KERNEL = 8,        // uname -sr
    TRACE_F_CPU = 9,           // CPU model
    TRACE_F_CPUS = 10,         // CPUs online
    TRACE_F_MEMORY_BYTES = 11, // memory of the machine
    TRACE_F_HEAPTAPE = 12,     // version of the recorder
    TRACE_F_ORDER_ONLY = 13,   // 1: stamps are not times and only order the events (SESSION)
    TRACE_F_STACK_SAMPLE_BYTES = 14,
    // Reason why a dump was written, as text. A dump is the last part of a recording (SESSION).
    TRACE_F_DUMPED = 15,
    TRACE_F_SEGMENT = 16,   // number of the segment, from 1 (SESSION)
    TRACE_F_RECORDING = 17, // REALTIME_NS of the first segment (SESSION)
    TRACE_F_PROCESS = 20,   // number of the process image, from 0 in order of appearance
    TRACE_F_PID = 21,
    TRACE_F_PPID = 22,
    TRACE_F_EXE = 23,
    TRACE_F_ALLOCATOR = 24,          // path of the object that defines malloc
    TRACE_F_ALLOCATOR_BUILD_ID = 26, // build ID of that object in hexadecimal digits
    // Pid of the parent, if the process image was created by fork without exec.
    TRACE_F_FORKED_FROM = 25,
    TRACE_F_FORKED_FROM_START = 27, // start_stamp of the parent's process image
    TRACE_F_FORK_STAMP = 28,        // stamp of the fork
    // Number of modules that the process image inherited from its parent.
    TRACE_F_INHERITED_MODULES = 29,
    TRACE_F_END_STAMP = 30,
    TRACE_F_EXIT_STATUS = 31,  // as returned by wait(2); only for the recorder's child
    TRACE_F_LOST_RECORDS = 32, // words dropped under --lossy or missing in a stream
    TRACE_F_WAITS = 33,        // number of times that a thread waited for the recorder
    TRACE_F_WAIT_NS = 34,
    TRACE_F_THREADS = 35,
    TRACE_F_OFF_REASON = 36, // reason why tracing turned itself off, as text
    // Stamps at which recording started and ended, if only part of the process was recorded.
    TRACE_F_RECORDED_FROM = 37,
    TRACE_F_RECORDED_TO = 38,
    TRACE_F_THREAD_NAMES = 39,   // per thread: varint tid, varint length, name
    TRACE_F_EVENTS = 40,         // counted events of the trace (END)
    TRACE_F_PROCESS_EVENTS = 41, // triples of varints: process, pid, counted events (END)
    TRACE_F_MISSED_BY = 42,      // enum trace_missed_by (UNRECORDED, like the following fields)
    TRACE_F_MISSED = 43,         // number of unrecorded processes; only the first are listed
    // Pid of an unrecorded process. The following fields, up to the next MISSED_PID, describe this
    // process.
    TRACE_F_MISSED_PID = 44,
    TRACE_F_MISSED_NAME = 45, // name in the kernel
    TRACE_F_MISSED_WHY = 46,  // reason, as text
    // Number of processes that were forked from this process and ran the same program.
    TRACE_F_MISSED_FORKS = 47,
    TRACE_F_MISSED_CALLS = 48, // number of missing calls; absent if unknown
    TRACE_F_MISSED_NS = 49,    // run time; absent if unknown
    // Path of the object whose malloc the program calls instead of the wrapper (PROCESS_END).
    TRACE_F_BYPASSED_BY = 50,
    // Paths of objects that call the real functions, each terminated by NUL (PROCESS_END).
    TRACE_F_DEEPBOUND = 51,
    TRACE_F_CPU_NS = 52, // CPU time of the process while recorded; absent if unknown (PROCESS_END)
    // Estimated part of CPU_NS that was spent on recording, in ticks (PROCESS_END).
    TRACE_F_RECORDING_TICKS = 53,
    // For a process with DEEPBOUND: at its exit, the bytes in use in glibc's malloc, and the bytes
    // that glibc's malloc has obtained from the system (PROCESS_END).
    TRACE_F_MALLOC_IN_USE_BYTES = 54,
    TRACE_F_MALLOC_SYSTEM_BYTES = 55,
    // Bounds of the ticks spent in the real functions. Absent if too few calls were timed
    // (PROCESS_END).
    TRACE_F_CALL_MIN_TICKS = 56,
    TRACE_F_CALL_MAX_TICKS = 57,
    TRACE_F_CONTINUES = 58, // 1: another segment follows (END)
    // Only in a segment: the fields of PROCESS_END as they would be without segments (PROCESS_END).
    TRACE_F_WHOLE = 59,
    // PAGES frames.
    TRACE_F_PAGES_STAMP = 60,     // stamp when reading of the maps started
    TRACE_F_PAGES_END_STAMP = 61, // stamp when reading of the maps ended
    TRACE_F_PAGE_BYTES = 62,      // precedes the first mapping
    TRACE_F_RSS_BYTES = 63,       // total for the process, as are the next three fields
    TRACE_F_PSS_BYTES = 64,
    TRACE_F_SWAP_BYTES = 65,
    TRACE_F_HUGE_BYTES = 66, // anonymous memory in huge pages
    TRACE_F_MINOR_FAULTS = 67,
    TRACE_F_MAJOR_FAULTS = 68,
    TRACE_F_PROCESS_CPU_NS = 69, // since the start of the process
    // Memory used by the process's cgroup; absent without a memory controller.
    TRACE_F_CGROUP_BYTES = 70,
    TRACE_F_CGROUP_LIMIT_BYTES = 71,
    TRACE_F_UNLISTED = 72, // varints: enum trace_memory, and resident bytes in unlisted mappings
    TRACE_F_MAPPING = 73,  // varints: docs/reference/trace-format.md
    // Present only if the next batch of the segment lists the blocks that the process inherited:
    // varints with the FORKED_FROM, FORKED_FROM_START and FORK_STAMP of the whole recording
    // (PROCESS).
    TRACE_F_LISTED = 91,
    TRACE_F_NAMED = 92,    // varints: enum trace_memory, resident bytes; then the name (PAGES)
    TRACE_F_ATTACHED = 93, // 1: the process ran before the recording (PROCESS_END)
    // Absent if the clock was read at every event (PROCESS_END). Otherwise, timestamps of the
    // process may be earlier than their events: about EARLY_EVENTS timestamps by up to
    // EARLY_MAX_TICKS, and all others by up to EARLY_USUAL_TICKS.
    TRACE_F_EARLY_EVENTS = 97,
    TRACE_F_EARLY_MAX_TICKS = 98,
    TRACE_F_EARLY_USUAL_TICKS = 99,
    TRACE_F_CXX_BYTES = 100,      // above 0 if the C++ library is mapped; replaced by LIBRARIES
    TRACE_F_PEAK_RSS_BYTES = 101, // highest RSS since the start; absent if unknown (PROCESS_END)
    // Growth of the resident spool from the last page map to the time of PEAK_RSS_BYTES, plus
    // heaptape's private memory at exit (PROCESS_END).
    TRACE_F_RECORDING_GROWTH_BYTES = 102,
    // Bits of libraries.h: mapped libraries (PAGES), also before the first page map (PROCESS_END).
    TRACE_F_LIBRARIES = 103,
    // 1: in a part of the heap, the clock was read at every event, because the process's limits or
    // its sandbox left no memory to avoid that (PROCESS_END).
    TRACE_F_WITHOUT_UNITS = 104,
// Fields of UNRECORDED frames, before the first MISSED_PID.
#define HT_X(name, tag, meaning) TRACE_F_##name = tag,
    TRACE_BALANCE(HT_X)
#undef HT_X
};

// Consecutive words of a thread's stream.
struct trace_segment {
    uint32_t process; // number of an earlier PROCESS frame
    uint32_t thread;  // number in the process, from 0
    uint32_t tid;
    uint32_t stream;
    // Index of the first word in the stream; a gap before it means that words were lost.
    uint64_t first_word;
    uint64_t epoch0; // `epoch0` and `base0` are the codec state before words[0]
    uint64_t base0;
    uint64_t epoch_end; // codec state after the last word; set by the writer and the reader
    uint64_t base_end;
    uint32_t n_words;
    uint32_t n_records; // set by the writer and the reader
    const uint64_t *words;
};

// A sample in a SAMPLES frame.
struct trace_sample {
    uint32_t process;
    uint64_t stamp;
    uint64_t rss_bytes;  // resident memory
    uint64_t anon_bytes; // resident anonymous memory: heap and stacks
};

// Fields of SESSION and PROCESS frames. Strings are owned; release with trace_session_release and
// trace_process_release.
struct trace_session {
    enum clock_kind clock;
    uint64_t clock_hz;
    unsigned stamp_shift;
    uint64_t start_stamp, realtime_ns;
    bool order_only; // stamps are not times
    // Mean number of bytes allocated between recorded call sites; 0 if all or no call sites are
    // recorded.
    uint64_t stack_sample_bytes;
    char *argv, *host, *kernel, *cpu, *heaptape;
    // As in TRACE_F_SEGMENT and TRACE_F_RECORDING. 0 if the trace is not a segment.
    uint64_t segment, recording_ns;
    char *dumped; // as in TRACE_F_DUMPED; NULL if the trace is a whole recording
    uint32_t argv_bytes, cpus;
    uint64_t memory_bytes;
};

struct trace_process {
    uint32_t number, pid, ppid, forked_from;
    uint64_t start_stamp;
    uint64_t forked_from_start; // 0 if unknown
    // 0 if the recorder did not see the fork. The fork always precedes start_stamp.
    uint64_t fork_stamp;
    char *exe, *argv, *allocator, *allocator_build_id;
    uint32_t argv_bytes;
    uint32_t inherited_modules; // as in TRACE_F_INHERITED_MODULES
    // As in TRACE_F_LISTED. All are 0 if the field is absent.
    uint64_t listed_from, listed_from_start, listed_fork_stamp;
    // Fields of PROCESS_END. `ended` is 0 if the frame is missing.
    int ended;
    uint64_t end_stamp;
    // `recorded_to` is 0 if the process was recorded from start to end.
    uint64_t recorded_from, recorded_to;
    uint64_t exit_status, lost_records, waits, wait_ns, threads;
    int has_exit_status;
    int attached;      // the process ran before the recording
    int without_units; // as in TRACE_F_WITHOUT_UNITS
    char *off_reason;
    char *bypassed_by; // NULL if unknown
    char *deepbound;   // as in TRACE_F_DEEPBOUND; NULL if there is no such object
    uint32_t deepbound_bytes;
    // CPU time since the first event, or 0 if unknown, and an estimate of the part spent on
    // recording, in ticks.
    uint64_t cpu_ns, recording_ticks;
    uint64_t call_min_ticks,
        call_max_ticks; // as in TRACE_F_CALL_*; call_max_ticks is 0 if unknown
    // Highest resident bytes of heaptape's own mappings in the page maps so far, or 0 if unknown.
    uint64_t recording_rss_bytes;
    uint64_t libraries; // union of TRACE_F_LIBRARIES so far
    // Highest RSS since the process started, by the kernel's count, or 0 if unknown. Includes
    // heaptape's own mappings, and the time before the recording.
    uint64_t peak_rss_bytes;
    uint64_t recording_growth_bytes; // as in TRACE_F_RECORDING_GROWTH_BYTES
    // As in TRACE_F_EARLY_*. All are 0 if the clock was read at every event.
    uint64_t early_events, early_max_ticks, early_usual_ticks;
    // As in TRACE_F_MALLOC_*. 0 if unknown.
    uint64_t malloc_in_use_bytes, malloc_system_bytes;
    uint8_t *thread_names; // as in TRACE_F_THREAD_NAMES
    size_t thread_names_bytes;
    // As in TRACE_F_WHOLE. NULL if the process continues in the next segment, or if the trace is
    // not a segment.
    uint8_t *whole;
    size_t whole_bytes;
};

struct trace_balance {
#define HT_X(name, tag, meaning) uint64_t name;
    TRACE_BALANCE(HT_X)
#undef HT_X
};

// Source of the list of unrecorded processes.
enum trace_missed_by {
    TRACE_MISSED_UNKNOWN = 0, // unrecorded processes were not searched for
    TRACE_MISSED_KERNEL = 1,  // the kernel reported all processes
    TRACE_MISSED_GAPS = 2,    // the kernel reported processes, but dropped some reports
    TRACE_MISSED_PROC = 3,    // /proc was polled, which can miss short-lived processes
};

// A process that was not recorded, and the processes forked from it that ran the same program.
struct trace_missed {
    uint32_t pid;
    char *name, *why; // owned
    uint64_t forks;
    uint64_t calls, ns; // UINT64_MAX if unknown
};

struct trace_unrecorded {
    enum trace_missed_by by;
    uint64_t processes; // total, including forked processes
    struct trace_balance balance;
    struct trace_missed *items; // descriptions of the first ones; owned
    size_t n, capacity;
};

// Appends a copy. Returns 0 or -ENOMEM.
int trace_unrecorded_add(struct trace_unrecorded *u, const struct trace_missed *missed);
void trace_unrecorded_release(struct trace_unrecorded *u);

void trace_session_release(struct trace_session *s);
void trace_process_release(struct trace_process *p);

// Returns peak_rss_bytes, or 0 if the peak may have been before or after the recorded part.
uint64_t trace_process_peak_rss(const struct trace_process *p);

// Returns the resident bytes of heaptape's own mappings at the peak RSS, or 0 if unknown.
uint64_t trace_process_recording_rss(const struct trace_process *p);

// Frees the strings of a process, but keeps its number, pid and stamps.
void trace_process_forget(struct trace_process *p);

// Returns true if the allocator, a path or NULL, is glibc's libc: libc.so.6 or, before 2.34,
// libc-2.31.so.
bool trace_is_glibc(const char *allocator);

// Key of a stream in a map. A recorder writes only streams 0 and 1 and far fewer than 2^31
// processes, so keys are unique. In a damaged trace, several streams may share a key, and their
// events are then mixed up. This is harmless otherwise.
static inline uint64_t trace_stream_key(uint32_t process, uint32_t thread, uint32_t stream)
{
    return (uint64_t)process << 33 ^ (uint64_t)thread << 1 ^ stream;
}

// Converts nanoseconds to stamps.
static inline uint64_t trace_stamps(const struct trace_session *s, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * s->clock_hz / 1000000000u) >> s->stamp_shift;
}

// Converts a stamp to nanoseconds since the start of the recording.
static inline uint64_t trace_stamp_ns(const struct trace_session *s, uint64_t stamp)
{
    uint64_t since = stamp > s->start_stamp ? stamp - s->start_stamp : 0;
    return clock_to_ns(since << s->stamp_shift, s->clock_hz);
}
