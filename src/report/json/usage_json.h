// Heap usage as members of a JSON object. docs/reference/figures.md defines the figures.
#ifndef HEAPTAPE_REPORT_USAGE_JSON_H
#define HEAPTAPE_REPORT_USAGE_JSON_H

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/stat_figures.h"

// Writes the sums over all processes: calls, sizes, lifetimes, realloc, alignment, and blocks that
// are never freed. Unless `peak` is NULL, the sizes include the blocks that were live at the peak
// of this process.
void usage_json_sums(struct json *j, const struct usage_sums *s, const union stat_figures *f,
                     const struct usage *peak);

// Writes the figures of one process: its threads, and remote frees by pairs of threads.
void usage_json_process(struct json *j, const struct usage *u);

// Writes the member "timeline", by event and by time. The timeline includes samples of the memory
// of the recorded process.
void usage_json_timeline(struct json *j, const struct usage *u, uint32_t pid,
                         const struct workload_sample *samples, size_t n_samples);

#endif
