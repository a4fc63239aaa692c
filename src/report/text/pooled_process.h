// Peak RSS of the whole process in pooled results. A job of `matrix` replays on one allocator, so
// that its result lacks this figure unless the allocator is the recorded one. The memory outside the
// heap then comes from another result of the same workload.
#ifndef HEAPTAPE_TEXT_POOLED_PROCESS_H
#define HEAPTAPE_TEXT_POOLED_PROCESS_H

#include "replay/session.h"
#include "report/json/document.h"

// Reads the memory outside the heap from the results on the recorded allocator. Leaves *o empty if
// there are none. The caller calls process_rss_release(). Returns 0 or -ENOMEM.
int pooled_process_read(struct process_rss_outside *o, const struct document *d);

// Sets *bytes to the peak RSS of the process minus the peak RSS of the heap, for the run whose
// timeline the result has. NAN: unknown. Returns 0 or -ENOMEM.
int pooled_process_extra(const struct process_rss_outside *o, const struct json_value *result,
                         double *bytes);

#endif
