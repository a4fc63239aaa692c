// Data about the machine and the processes of a trace.
#pragma once

#include "record/drain/drain.h"
#include "record/record.h"
#include "trace/trace.h"

// Sets everything except clock_hz, which must be measured. Release with trace_session_release.
// Returns 0, or -ENOMEM.
int facts_session(struct trace_session *s, enum clock_kind clock, char *const *argv);

// Sets the fields of PROCESS and PROCESS_END frames. Release with trace_process_release. Returns 0,
// or -ENOMEM.
int facts_process(struct trace_process *p, const struct drain_spool *s);

// Adds the data of a process that has ended to the result.
void facts_add(struct record_result *result, const struct trace_process *p);

// Sets recorded_from and recorded_to if only part of the process's lifetime was recorded. Requires
// end_stamp.
void facts_window(struct trace_process *p, const struct drain_spool *s);

// Replaces the thread names with the names of the live threads, at most 1,024. If the process has
// ended, keeps the names. Reads the names often at first, so that short-lived processes have names,
// and twice a second later.
void facts_update_thread_names(struct drain_spool *s, uint64_t now);

// Returns the interval between samples for a recording of this age, limited to `most`. A short
// program gets as many samples as a long program.
uint64_t facts_sample_ns(uint64_t age_ns, uint64_t most);

// If the memory should be sampled now, restarts the interval and returns true. A busy process is
// sampled at every call. Any other process is sampled after least_cpu_ns of CPU time, or after 100
// ms if it has events. Otherwise it is sampled after a second, or after up to 5 seconds if it uses
// no CPU time. `age_ns` is the age of the recording.
bool facts_is_sample_due(struct drain_spool *s, uint64_t now, uint64_t age_ns,
                         uint64_t least_cpu_ns);

// Reads the RSS and its anonymous part from /proc/PID/statm. Returns false on failure.
bool facts_memory(struct trace_sample *sample, pid_t pid);

// Reads the highest RSS so far from /proc/PID/status. The kernel also updates this value between
// samples.
void facts_update_peak(struct drain_spool *s);

// Reads the mapped libraries from /proc/PID/maps, unless they are known to include the C++ library.
// Call while the process has no page map.
void facts_update_libraries(struct drain_spool *s);

// Like facts_memory, but return the values that the process itself read before its first event and
// when it ended.
bool facts_start_memory(struct trace_sample *sample, const struct drain_spool *s);
bool facts_end_memory(struct trace_sample *sample, const struct drain_spool *s);

// Returns the CPU time of all threads of the process in ns, or 0 if unknown.
uint64_t facts_cpu_ns(pid_t pid);

// Returns the number of the recorder's seccomp filters if they permit measuring residency, else 0.
uint32_t facts_passable_filters(void);
