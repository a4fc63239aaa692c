// The format json: an event as a JSON object on a line, which `dump --format json` prints, too.
#ifndef HEAPTAPE_FORMATS_FORMAT_JSON_H
#define HEAPTAPE_FORMATS_FORMAT_JSON_H

#include "base/buf.h"
#include "formats/export.h"

// What the calls of a file are. Slots: ev.ptr and .result are slots + 1, else addresses.
enum format_json_calls { FORMAT_JSON_SLOTS = 1, FORMAT_JSON_TIMES = 2 };

// The beginnings of objects, which only kind, process and thread tell apart. All zero at first.
struct format_json_heads {
    struct {
        uint64_t pid, tid;
        unsigned kind, n; // bytes of `text`; 0: none
        char text[112];
    } heads[32];
};

// Appends the object and a newline. `calls`: FORMAT_JSON_*. 0 or -ENOMEM.
int format_json_put(struct buf *to, struct format_json_heads *heads, const struct export_call *c,
                    unsigned calls);

#endif
