// Peak RSS of the whole process in pooled results. A job of `matrix` replays on one allocator. Its
// result lacks this figure unless the workload was recorded on that allocator. The memory outside
// the heap is then read from another result of the same workload.
#pragma once

#include "replay/session.h"
#include "report/json/document.h"

// Reads the memory outside the heap from the results on the recorded allocator. Leaves *o empty if
// there is no such result. The caller must call process_rss_release(). Returns 0 or -ENOMEM.
int pooled_process_read(struct process_rss_outside *o, const struct document *d);

// Sets *bytes to the peak RSS of the process minus the peak RSS of the heap, or to NAN if unknown.
// Both peaks are from the run whose timeline the result contains. Returns 0 or -ENOMEM.
int pooled_process_extra(const struct process_rss_outside *o, const struct json_value *result,
                         double *bytes);
