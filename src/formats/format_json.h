// The json format: one JSON object per event, each on a line, as printed by `dump --format json`.
#pragma once

#include "base/buf.h"
#include "formats/export.h"

// Properties that all calls share. FORMAT_JSON_SLOTS: ev.ptr and ev.result are slot + 1; otherwise
// they are addresses.
enum format_json_calls { FORMAT_JSON_SLOTS = 1, FORMAT_JSON_TIMES = 2 };

// Appends an object and a newline. `calls` is a set of FORMAT_JSON_*. Returns 0 or -ENOMEM.
int format_json_put(struct buf *to, const struct export_call *c, unsigned calls);
