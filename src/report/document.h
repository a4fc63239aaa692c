// The data of a page: what `stat`, `replay` and `compare` say with --json, with long series made short.
#ifndef HEAPTAPE_REPORT_DOCUMENT_H
#define HEAPTAPE_REPORT_DOCUMENT_H

#include "base/err.h"

#include <stddef.h>

enum {
    DOCUMENT_POINTS = 600,      // of a replayed timeline: extremes are kept
    DOCUMENT_STATS = 200,       // of the allocator's own statistics
    DOCUMENT_GROUPS = 100,      // of threads and call sites, the first ones
    DOCUMENT_ITEMS = 2000,      // of any other array or object
    DOCUMENT_TEXT_BYTES = 4096, // of a string
};

// {"heaptape", "mode", "workloads": [{"name", "side", "stat"}], "results": [{"name", "side", "workload", "machine",
// "result"}]}: `side` is 0 or 1 in a comparison of two, else 0.
struct json_object;

struct document {
    struct json_object *root; // owned; json-c's
};

// `mode` is "report" or "diff". 0 or -ENOMEM.
int document_init(struct document *d, const char *mode);
void document_release(struct document *d);

// Adds what the JSON text holds: an object of `stat --json`, `replay --json` or `compare --json`. `name` is what the page
// calls it. 0, -EPROTO when it is none of these, -EBADMSG when it is no JSON, -ENOMEM.
int document_add(struct document *d, const char *name, int side, const char *text, size_t n, struct err *e);

// The document as one line of JSON, for the caller to free. NULL when out of memory.
char *document_text(const struct document *d);

// The number at a path of keys, "peak.bytes"; NAN when there is none.
double document_number(struct json_object *object, const char *path);

#endif
