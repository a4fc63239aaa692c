// The data of an HTML report: the JSON of `stat`, `replay` and `compare`. Long series are
// shortened.
#pragma once

#include "report/findings.h"
#include "report/json/json_value.h"

enum {
    DOCUMENT_POINTS = 600,      // rows of a replayed timeline; minima and maxima are kept
    DOCUMENT_STATS = 200,       // rows of the allocator's statistics
    DOCUMENT_GROUPS = 100,      // number of threads or call sites
    DOCUMENT_ITEMS = 2000,      // items of any other array or object
    DOCUMENT_TEXT_BYTES = 4096, // maximum length of a string
    // Limit on the total size of all workloads' profiles. A single workload may use half of the
    // limit, so that its report has at most 1 MiB.
    DOCUMENT_PROFILE_BYTES = 1024 << 10,
};

// Figures and findings of a workload.
struct document_stat {
    union stat_figures figures;
    double calls[HT_KIND_LIMIT]; // number of calls by kind; NAN if unknown
    struct findings found;
    char *text; // shortened JSON of a counted file, or NULL; owned
};

// A workload, or the result of an allocator.
struct document_item {
    char *name;                      // owned
    int side;                        // 0 or 1 in a comparison, else 0
    const struct json_value *file;   // NULL if the file was counted
    const struct json_value *result; // part of `file`; NULL for a workload
    struct document_stat *stat;      // NULL for a result; owned
    char *profile;                   // JSON of sites_profile, or NULL; owned
    char *address_map;               // JSON of rss_map_json, or NULL; owned
};

struct convert_watch;
struct diff_row;

// docs/reference/json/report.schema.json describes the JSON. Initialize to zero and set `mode`.
struct document {
    const char *mode;                  // "report" or "diff"; borrowed
    const struct convert_watch *watch; // receives the progress; NULL for no progress
    struct json_value **files;
    size_t n_files, files_capacity;
    struct document_item *items;
    size_t n_items, items_capacity;
    size_t profile_bytes;  // total length of the profiles
    struct diff_row *rows; // filled by diff_rows
    size_t n_rows, rows_capacity;
};

void document_release(struct document *d);

// Checks that this heaptape reads the document: its `schema_version` must be JSON_SCHEMA_VERSION or
// absent. Returns 0, or -EPROTO with a message that begins with `name`.
int document_check_version(const struct json_value *root, const char *name, struct err *e);

// Adds JSON text, which must be an object of `stat --json`, `replay --json` or `compare --json`.
// `name` is its name in the report. Returns 0, -EPROTO for other JSON, -ENODATA if the text is
// truncated, -EBADMSG if it is not JSON, or -ENOMEM.
int document_add(struct document *d, const char *name, int side, const char *text, size_t n,
                 struct err *e);

// Adds a file. A trace or workload is counted. Any other file must contain JSON that document_add
// accepts. Returns 0, an error of document_add or file_stat, or -ESPIPE for a trace or workload in
// a pipe.
int document_add_file(struct document *d, const char *path, int side, struct err *e);

// Adds the result of a job, a regular file with JSON that document_add accepts. Returns 0, or an
// error of document_add or input_open_regular.
int document_add_result(struct document *d, const char *path, struct err *e);

// Returns the document as one line of JSON, or NULL when out of memory. The caller frees the
// string.
char *document_text(const struct document *d);
