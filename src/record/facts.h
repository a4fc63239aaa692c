// What a trace says of the machine and the recording.
#ifndef HEAPTAPE_RECORD_FACTS_H
#define HEAPTAPE_RECORD_FACTS_H

#include "trace/trace.h"

// Fills in all but clock_hz, which takes time to be measured; release with trace_session_release. 0 or -ENOMEM.
int facts_session(struct trace_session *s, enum clock_kind clock, char *const *argv);

#endif
