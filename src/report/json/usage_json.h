// Heap usage as members of a JSON object. docs/reference/figures.md defines the figures.
#ifndef HEAPTAPE_REPORT_USAGE_JSON_H
#define HEAPTAPE_REPORT_USAGE_JSON_H

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/stat_figures.h"

// Figures that add up over processes: calls, sizes, lifetimes, realloc, alignment, blocks that are never freed. `peak` is the process
// whose peak's composition goes with the sizes; NULL: none.
void usage_json_sums(struct json *j, const struct usage_sums *s, const union stat_figures *f,
                     const struct usage *peak);

// Figures of one process: threads, and remote frees by pairs of threads.
void usage_json_process(struct json *j, const struct usage *u);

// The member "timeline", by event and by time; with samples of the recorded process's memory.
void usage_json_timeline(struct json *j, const struct usage *u, uint32_t pid,
                         const struct workload_sample *samples, size_t n_samples);

#endif
