// JSON of `stat`. docs/reference/json/ contains the schemas.
#pragma once

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/findings.h"
#include "report/stat_figures.h"

// Writes the object of `stat --json`. `found` contains the findings of the same file; if it is
// NULL, the findings are omitted. If j->max_items is set, arrays of processes, strings and names
// are shortened to that number of items.
void stat_json(struct json *j, const struct file_stat *s, const union stat_figures *f,
               const struct findings *found);

// Writes the object of `stat --by site --format json` with the n sites of `order`.
void stat_json_sites(struct json *j, const struct file_stat *s, const uint32_t *order, size_t n);

// Private. Writes the figures that a pass over all events counts: sums over all processes, and the
// threads and the timeline of the kept process. docs/reference/figures.md defines the figures.
void stat_json_usage(struct json *j, const struct file_stat *s, const union stat_figures *f);
