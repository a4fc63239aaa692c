// What a trace says of the machine and the recording.
#ifndef HEAPTAPE_RECORD_FACTS_H
#define HEAPTAPE_RECORD_FACTS_H

#include "record/drain/drain.h"
#include "record/record.h"
#include "trace/trace.h"

// Fills in all but clock_hz, which takes time to be measured; release with trace_session_release. 0 or -ENOMEM.
int facts_session(struct trace_session *s, enum clock_kind clock, char *const *argv);

// What the process's spool says of it, for PROCESS and PROCESS_END; release with trace_process_release. 0 or -ENOMEM.
int facts_process(struct trace_process *p, const struct drain_spool *s);

// What the end of a process adds to the result.
void facts_add(struct record_result *result, const struct trace_process *p);

// When recording began and ended, where that was not the life of the process. end_stamp is known.
void facts_window(struct trace_process *p, const struct drain_spool *s);

// Replaces the spool's names of threads by those of the threads that live; of a process that has ended they stay. Of very
// many threads, some. Often at first, so that programs that live for moments have some, later twice a second.
void facts_update_thread_names(struct drain_spool *s, uint64_t now);

// The time between samples of a recording of that age, `most` of one that is no longer young: a short program needs as many
// samples as a long one.
uint64_t facts_sample_ns(uint64_t age_ns, uint64_t most);

// Should its memory be sampled, at each of the recorder's occasions? If so, it counts as sampled now. That of a process which
// records nothing is after so much CPU time.
bool facts_is_sample_due(struct drain_spool *s, uint64_t now, uint64_t least_cpu_ns);

// Fills in the memory of a process from /proc/PID/statm: what is resident, and what of it is not of files nor shared. False:
// it cannot be read, or the process has ended.
bool facts_memory(struct trace_sample *sample, pid_t pid);

// The same as the process itself said, before its first event or at its end. False: that is not known.
bool facts_own_memory(struct trace_sample *sample, const struct drain_spool *s, bool end);

// CPU time of a process so far, of all its threads; 0 when the kernel does not say.
uint64_t facts_cpu_ns(pid_t pid);

// Filters of system calls that the recorder itself has, if they let processes measure residency; else 0.
uint32_t facts_passable_filters(void);

#endif
