// The JSON documents of `stat`: docs/reference/json/ has their schemas.
#ifndef HEAPTAPE_REPORT_STAT_JSON_H
#define HEAPTAPE_REPORT_STAT_JSON_H

#include "analysis/file_stat.h"
#include "base/json.h"
#include "report/findings.h"

// `stat --json`. The findings of the same file may be NULL: they are left out then.
void stat_json(struct json *j, const struct file_stat *s, const struct findings *f);

// `stat --by site --format json`: n sites by their numbers.
void stat_json_sites(struct json *j, const struct file_stat *s, const uint32_t *order, size_t n);

// The size of the file divided by its events, 0 of none.
double stat_json_bytes_per_event(const struct file_stat *s);

#endif
