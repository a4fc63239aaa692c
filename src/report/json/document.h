// The data of a report: what `stat`, `replay` and `compare` print with --json, with long series shortened.
#ifndef HEAPTAPE_REPORT_DOCUMENT_H
#define HEAPTAPE_REPORT_DOCUMENT_H

#include "report/findings.h"
#include "report/json/json_value.h"

enum {
    DOCUMENT_POINTS = 600,               // of a replayed timeline: extremes are kept
    DOCUMENT_STATS = 200,                // of the allocator's own statistics
    DOCUMENT_GROUPS = 100,               // of threads and call sites, the first ones
    DOCUMENT_ITEMS = 2000,               // of any other array or object
    DOCUMENT_TEXT_BYTES = 4096,          // of a string
    DOCUMENT_PROFILE_BYTES = 1536 << 10, // of the profiles of all workloads
};

// A workload: its figures and findings.
struct document_stat {
    union stat_figures figures;
    double calls[HT_KIND_LIMIT]; // NAN: unknown
    struct findings found;
    char *text; // the JSON of a file that was counted, shortened; owned
};

// A workload, or the result of an allocator.
struct document_item {
    char *name;                      // owned
    int side;                        // 0 or 1 in a comparison of two, else 0
    const struct json_value *file;   // NULL if the file was counted
    const struct json_value *result; // in it; NULL: the file is of a workload
    struct document_stat *stat;      // of a workload; owned
    char *profile;                   // JSON of sites_profile; owned; NULL: there is none
    char *address_map;               // JSON of rss_map_json; owned; NULL: there is none
};

struct convert_watch;
struct diff_row;

// docs/reference/json/report.schema.json describes the JSON. All zero but the mode is an empty one.
struct document {
    const char *mode;                  // "report" or "diff"; borrowed
    const struct convert_watch *watch; // shows how files are read, NULL: nothing
    struct json_value **files;
    size_t n_files, files_capacity;
    struct document_item *items;
    size_t n_items, items_capacity;
    size_t profile_bytes;  // of all
    struct diff_row *rows; // see diff.h
    size_t n_rows, rows_capacity;
};

void document_release(struct document *d);

// Adds what the JSON text holds: an object of `stat --json`, `replay --json` or `compare --json`. `name` is what the report
// calls it. 0, -EPROTO when it is none of these, -ENODATA when it is cut off, -EBADMSG when it is no JSON, -ENOMEM.
int document_add(struct document *d, const char *name, int side, const char *text, size_t n,
                 struct err *e);

// Adds the file at `path`: a trace or a workload, which is counted, or JSON as above. 0, the errors of document_add and of
// file_stat, -ESPIPE for a trace or workload in a pipe.
int document_add_file(struct document *d, const char *path, int side, struct err *e);

// Adds the result of a job, which is JSON as above in a regular file. Also fails with the errors of input_open_regular.
int document_add_result(struct document *d, const char *path, struct err *e);

// The document as one line of JSON, for the caller to free. NULL when out of memory.
char *document_text(const struct document *d);

#endif
