// The JSON document of `stat --rss`: docs/reference/json/stat-rss.schema.json.
#ifndef HEAPTAPE_RSS_RSS_JSON_H
#define HEAPTAPE_RSS_RSS_JSON_H

#include "base/json.h"
#include "analysis/memory/rss.h"

void rss_json(struct json *j, const struct rss *r);

#endif
