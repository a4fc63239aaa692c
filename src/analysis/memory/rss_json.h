// Writes the JSON document of `stat --rss` (docs/reference/json/stat-rss.schema.json).
#ifndef HEAPTAPE_RSS_RSS_JSON_H
#define HEAPTAPE_RSS_RSS_JSON_H

#include "analysis/memory/rss.h"
#include "base/json.h"

void rss_json(struct json *j, const struct rss *r);

#endif
