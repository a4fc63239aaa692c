// The JSON documents of `stat`: docs/reference/json/ has their schemas.
#ifndef HEAPTAPE_REPORT_STAT_JSON_H
#define HEAPTAPE_REPORT_STAT_JSON_H

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/findings.h"
#include "report/stat_figures.h"

// `stat --json`. `found`: the findings of the same file; NULL: left out. If j->max_items is set, arrays of processes,
// texts and names are cut to as many items, taken from the whole length.
void stat_json(struct json *j, const struct file_stat *s, const union stat_figures *f,
               const struct findings *found);

// `stat --by site --format json`: n sites by their numbers.
void stat_json_sites(struct json *j, const struct file_stat *s, const uint32_t *order, size_t n);

#endif
