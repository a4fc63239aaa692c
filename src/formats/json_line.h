// An event as a JSON object on a line: `dump --format json`, and the format json.
#ifndef HEAPTAPE_FORMATS_JSON_LINE_H
#define HEAPTAPE_FORMATS_JSON_LINE_H

#include "base/buf.h"
#include "formats/export.h"

// Appends the object and a newline. `slots`: c->ev.ptr and .result are slots + 1, else addresses. 0 or -ENOMEM.
int json_line_put(struct buf *to, const struct export_call *c, bool slots);

#endif
