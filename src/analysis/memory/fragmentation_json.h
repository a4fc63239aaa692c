// Writes fragmentation as JSON, as defined by fragmentation_at in replay.schema.json.
#ifndef HEAPTAPE_FRAGMENTATION_FRAGMENTATION_JSON_H
#define HEAPTAPE_FRAGMENTATION_FRAGMENTATION_JSON_H

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"
#include "base/json.h"

// Writes an object. `symbols` is NULL if no names are available.
void fragmentation_json(struct json *j, const struct fragmentation *h, struct symbols *symbols,
                        const struct workload_sites *sites);

#endif
