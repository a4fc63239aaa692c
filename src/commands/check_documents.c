#include "commands/check_documents.h"

#include "report/json/document.h"
#include "report/json/json_value.h"

#include <errno.h>
#include <string.h>

enum { MAX_KEYS = 4 };

// A document is of the first kind in the table whose keys all occur in the document. Kinds with few
// keys are therefore last.
static const struct document_kind {
    const char *kind;
    bool reported; // `report` reads documents of this kind
    const char *keys[MAX_KEYS];
} kinds[] = {
    {"result of replay --verify", false, {"workload", "allocator", "verify"}},
    {"result of replay", true, {"workload", "machine", "allocator"}},
    {"comparison of allocators", true, {"workload", "machine", "allocators"}},
    {"advice", false, {"workload", "machine", "settings", "budget_ns"}},
    {"report", false, {"heaptape", "mode", "workloads", "results"}},
    {"statistics", true, {"by_kind", "threads", "duration_ns", "growth"}},
    {"statistics", true, {"by_kind", "threads", "duration_ns", "timeline"}},
    {"brief statistics", false, {"by_kind", "threads", "duration_ns"}},
    {"statistics of resident memory", false, {"page_maps", "not_heap", "sum_bytes"}},
    {"difference", false, {"a", "b", "totals", "sites"}},
    {"statistics of call sites", false, {"cut_off", "peak_live_bytes", "sites"}},
    {"result of a query", false, {"columns", "rows"}},
    {"index of a corpus", false, {"entries"}},
    {"list of allocators", false, {"allocators"}},
    {"state of a recording", false, {"pid", "state", "spool_bytes"}},
};

static const struct document_kind *find_kind(const struct json_value *v)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t k = 0;
        struct json_value_member m;
        for (; k < MAX_KEYS && kinds[i].keys[k]; k++) {
            bool found = false;
            m = (struct json_value_member){0};
            while (!found && json_value_next(v, &m))
                found = strcmp(m.key, kinds[i].keys[k]) == 0;
            if (!found)
                break;
        }
        if (k == MAX_KEYS || !kinds[i].keys[k])
            return &kinds[i];
    }
    return NULL;
}

static int check_rows(const char *name, const struct json_value *v, struct err *e)
{
    const struct json_value *rows = json_value_get(v, "rows");
    size_t columns = json_value_length(json_value_get(v, "columns"));
    for (size_t i = 0; i < json_value_length(rows); i++) {
        if (json_value_length(json_value_at(rows, i)) != columns)
            return err_set(e, -EBADMSG, "%s: row %zu has %zu values, expected %zu", name, i,
                           json_value_length(json_value_at(rows, i)), columns);
    }
    return 0;
}

// Reads the document in the same way as `report`.
static int check_reported(const char *name, const char *text, size_t n, struct err *e)
{
    struct document d = {.mode = "report"};
    int rc = document_add(&d, name, 0, text, n, e);
    document_release(&d);
    return rc;
}

static int check_document(const char *name, const struct json_value *v, const char *text, size_t n,
                          struct check_documents_found *found, struct err *e)
{
    const struct document_kind *kind = find_kind(v);
    int rc = document_check_version(v, name, e);
    if (rc < 0)
        return rc;
    if (!kind || !json_value_get(v, "schema_version"))
        return err_set(e, -EPROTO, "%s: is JSON, but not a document of heaptape", name);
    *found = (struct check_documents_found){.kind = kind->kind};
    return kind->reported ? check_reported(name, text, n, e) : check_rows(name, v, e);
}

// Verifies events in JSON Lines, in the form that dump and export write.
static int check_lines(const char *name, const char *text, size_t n,
                       struct check_documents_found *found, struct err *e)
{
    *found = (struct check_documents_found){.kind = "events"};
    for (size_t at = 0; at < n; found->lines++) {
        struct json_value *v;
        struct err why = {0};
        const char *end = memchr(text + at, '\n', n - at);
        if (!end)
            return err_set(e, -ENODATA, "%s: cut off in the line at byte %zu", name, at);
        size_t bytes = (size_t)(end - text) - at;
        int rc = json_value_parse(&v, "", text + at, bytes, &why);
        if (rc == 0 && !json_value_string(json_value_get(v, "kind")))
            rc = -EPROTO;
        json_value_free(v);
        if (rc == -ENOMEM)
            return err_no_memory(e, name);
        if (rc < 0)
            return err_set(e, -EBADMSG, "%s: line %llu is not an event in JSON, at byte %zu", name,
                           (unsigned long long)found->lines + 1, at);
        at += bytes + 1;
    }
    return 0;
}

// Returns true if the first line of the text is an object and more lines follow.
static bool are_lines(const char *text, size_t n)
{
    struct json_value *v;
    const char *end = memchr(text, '\n', n);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    if (!end || end == text || end[-1] != '}' || end >= text + n)
        return false;
    bool object =
        json_value_parse(&v, "", text, (size_t)(end - text), NULL) == 0 && json_value_is_object(v);
    json_value_free(v);
    return object;
}

int check_documents_json(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e)
{
    struct json_value *v;
    if (are_lines(text, n))
        return check_lines(name, text, n, found, e);
    int rc = json_value_parse(&v, name, text, n, e);
    if (rc == 0 && json_value_string(json_value_get(v, "kind")) &&
        !json_value_get(v, "schema_version"))
        rc = check_lines(name, text, n, found, e);
    else if (rc == 0)
        rc = check_document(name, v, text, n, found, e);
    json_value_free(v);
    return rc;
}

bool check_documents_is_page(const uint8_t *text, size_t n)
{
    static const char start[] = "<!DOCTYPE html>\n<html lang=\"en\">";
    return n >= sizeof start - 1 && memcmp(text, start, sizeof start - 1) == 0;
}

int check_documents_page(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e)
{
    static const char data[] = "<script type=\"application/json\" id=\"data\">",
                      end[] = "</script>", last[] = "</html>\n";
    const char *begin = memmem(text, n, data, sizeof data - 1);
    begin = begin ? begin + sizeof data - 1 : NULL;
    const char *stop =
        begin ? memmem(begin, n - (size_t)(begin - text), end, sizeof end - 1) : NULL;
    if (!begin)
        return err_set(e, -EPROTO, "%s: is HTML, but not a report of heaptape", name);
    if (!stop || memcmp(text + n - (sizeof last - 1), last, sizeof last - 1) != 0)
        return err_set(e, -ENODATA, "%s: cut off at byte %zu", name, n);
    int rc = check_documents_json(name, begin, (size_t)(stop - begin), found, e);
    if (rc == 0 && strcmp(found->kind, "report") != 0)
        rc = err_set(e, -EBADMSG, "%s: contains a %s instead of a report", name, found->kind);
    return rc;
}
