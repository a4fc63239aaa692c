#include "report/diff.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *get(struct json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, key) : NULL;
}

struct figure {
    const char *label, *path;
    enum diff_unit unit;
};

static const struct figure workload_figures[] = {
    {"events", "events", DIFF_COUNT},
    {"threads", "threads", DIFF_COUNT},
    {"duration", "duration_ns", DIFF_NS},
    {"requested", "requested_bytes", DIFF_BYTES},
    {"mean requested size", "requests.mean_bytes", DIFF_BYTES},
    {"max requested size", "requests.max_bytes", DIFF_BYTES},
    {"peak live", "peak_live_bytes", DIFF_BYTES},
    {"blocks at peak", "peak.blocks", DIFF_COUNT},
    {"live at end", "live_at_end_bytes", DIFF_BYTES},
    {"blocks at end", "live_at_end_blocks", DIFF_COUNT},
    {"malloc", "calls.malloc.count", DIFF_COUNT},
    {"calloc", "calls.calloc.count", DIFF_COUNT},
    {"realloc", "calls.realloc.count", DIFF_COUNT},
    {"free", "calls.free.count", DIFF_COUNT},
    {"new", "calls.new.count", DIFF_COUNT},
    {"reallocs that grew and moved", "realloc.grown_moved.count", DIFF_COUNT},
    {"bytes they copied", "realloc.grown_moved.bytes", DIFF_BYTES},
    {"remote frees", "remote_frees", DIFF_COUNT},
    {"internal fragm., glibc classes", "size_classes.glibc.internal_fragmentation_bytes", DIFF_BYTES},
    {"internal fragm., 4 per doubling", "size_classes.four_per_doubling.internal_fragmentation_bytes", DIFF_BYTES},
};

static const struct figure result_figures[] = {
    {"wall time", "wall_ns", DIFF_NS},
    {"time per event", "ns_per_event", DIFF_NS},
    {"replay overhead per event", "overhead_ns_per_event", DIFF_NS},
    {"peak RSS", "peak_rss_bytes", DIFF_BYTES},
    {"mean RSS", "mean_rss_bytes", DIFF_BYTES},
    {"RSS after free-all", "rss_after_free_bytes", DIFF_BYTES},
    {"peak RSS over peak live", "peak_fragmentation", DIFF_RATIO},
    {"mean RSS over mean live", "mean_fragmentation", DIFF_RATIO},
    {"malloc, mean", "calls.malloc.mean_ns", DIFF_NS},
    {"malloc, p99", "calls.malloc.p99_ns", DIFF_NS},
    {"malloc, p99.9", "calls.malloc.p999_ns", DIFF_NS},
    {"free, mean", "calls.free.mean_ns", DIFF_NS},
    {"free, p99", "calls.free.p99_ns", DIFF_NS},
    {"free, p99.9", "calls.free.p999_ns", DIFF_NS},
};

enum { WORKLOAD_FIGURES = sizeof workload_figures / sizeof *workload_figures };
enum { RESULT_FIGURES = sizeof result_figures / sizeof *result_figures };

struct rows {
    struct diff_row *all;
    size_t n, capacity;
};

static int add_rows(struct rows *rows, const char *of, struct json_object *sides[2], const struct figure *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double a = document_number(sides[0], f[i].path), b = document_number(sides[1], f[i].path);
        if (isnan(a) && isnan(b))
            continue;
        if (rows->n == rows->capacity) {
            size_t capacity = rows->capacity ? 2 * rows->capacity : 64;
            struct diff_row *all = realloc(rows->all, capacity * sizeof *all);
            if (!all)
                return -ENOMEM;
            rows->all = all;
            rows->capacity = capacity;
        }
        struct diff_row *row = &rows->all[rows->n++];
        *row = (struct diff_row){.unit = f[i].unit, .a = a, .b = b};
        snprintf(row->of, sizeof row->of, "%s", of);
        snprintf(row->label, sizeof row->label, "%s", f[i].label);
    }
    return 0;
}

static int side_of(struct json_object *item)
{
    return json_object_get_int(get(item, "side"));
}

static int workload_rows(const struct document *d, struct rows *rows)
{
    struct json_object *sides[2] = {NULL, NULL}, *list = get(d->root, "workloads");
    for (size_t i = json_object_array_length(list); i-- > 0;) {
        struct json_object *item = json_object_array_get_idx(list, i);
        sides[side_of(item)] = get(item, "stat");
    }
    return sides[0] && sides[1] ? add_rows(rows, "", sides, workload_figures, WORKLOAD_FIGURES) : 0;
}

// "glibc,MALLOC_ARENA_MAX=2"
static void allocator_name(struct json_object *item, char name[80])
{
    struct json_object *allocator = get(get(item, "result"), "allocator");
    const char *text = json_object_get_string(get(allocator, "name"));
    struct json_object *tunables = get(allocator, "tunables");
    size_t n = (size_t)snprintf(name, 80, "%s", text ? text : "?");
    size_t n_tunables = json_object_is_type(tunables, json_type_array) ? json_object_array_length(tunables) : 0;
    for (size_t i = 0; i < n_tunables && n < 80; i++) {
        text = json_object_get_string(json_object_array_get_idx(tunables, i));
        n += (size_t)snprintf(name + n, 80 - n, ",%s", text ? text : "?");
    }
}

// The first result of the other side of the same allocator, or, when `any`, of whatever one.
static struct json_object *partner(struct json_object *list, struct json_object *item, bool any)
{
    char name[80], other[80];
    allocator_name(item, name);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *at = json_object_array_get_idx(list, i);
        allocator_name(at, other);
        if (side_of(at) == 1 && (any || strcmp(name, other) == 0))
            return at;
    }
    return NULL;
}

// With one result a side these two are compared whatever their names: the question is then which allocator is better.
static int result_rows(const struct document *d, struct rows *rows)
{
    struct json_object *list = get(d->root, "results");
    bool any = json_object_array_length(list) == 2;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i), *other = partner(list, item, any);
        char of[80], name[80];
        if (side_of(item) != 0 || !other)
            continue;
        allocator_name(item, of);
        allocator_name(other, name);
        if (strcmp(of, name) != 0) {
            char both[200];
            snprintf(both, sizeof both, "%s : %s", of, name);
            snprintf(of, sizeof of, "%.79s", both);
        }
        struct json_object *sides[2] = {get(item, "result"), get(other, "result")};
        int rc = add_rows(rows, of, sides, result_figures, RESULT_FIGURES);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct json_object *number_or_null(double v)
{
    return isfinite(v) ? json_object_new_double(v) : NULL;
}

static void put_rows(struct document *d, const struct rows *rows)
{
    static const char *const units[] = {"count", "bytes", "ns", "ratio"};
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < rows->n; i++) {
        const struct diff_row *r = &rows->all[i];
        struct json_object *row = json_object_new_object();
        json_object_object_add(row, "of", json_object_new_string(r->of));
        json_object_object_add(row, "label", json_object_new_string(r->label));
        json_object_object_add(row, "unit", json_object_new_string(units[r->unit]));
        json_object_object_add(row, "a", number_or_null(r->a));
        json_object_object_add(row, "b", number_or_null(r->b));
        json_object_array_add(list, row);
    }
    json_object_object_add(d->root, "diff", list);
}

int diff_rows(struct document *d, struct diff_row **out, size_t *n)
{
    struct rows rows = {0};
    int rc = workload_rows(d, &rows);
    if (rc == 0)
        rc = result_rows(d, &rows);
    if (rc == 0 && !rows.n)
        rc = -ENOENT;
    if (rc < 0) {
        free(rows.all);
        return rc;
    }
    put_rows(d, &rows);
    *out = rows.all;
    *n = rows.n;
    return 0;
}
