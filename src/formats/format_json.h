// The format json: an event as a JSON object on a line, which `dump --format json` prints, too.
#ifndef HEAPTAPE_FORMATS_FORMAT_JSON_H
#define HEAPTAPE_FORMATS_FORMAT_JSON_H

#include "base/buf.h"
#include "formats/export.h"
#include "formats/import.h"

// Appends the object and a newline. `slots`: c->ev.ptr and .result are slots + 1, else addresses. 0 or -ENOMEM.
int format_json_put(struct buf *to, const struct export_call *c, bool slots);

// Reads such lines.
int format_json_import(struct import *im);

#endif
