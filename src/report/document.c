#include "report/document.h"

#include "report/quote.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// NULL: none.
static struct json_object *get(struct json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, key) : NULL;
}

static bool is_array(struct json_object *v)
{
    return json_object_is_type(v, json_type_array);
}

static bool is_object(struct json_object *v)
{
    return json_object_is_type(v, json_type_object);
}

// Text that may be no UTF-8.
static struct json_object *text_value(const char *text)
{
    char *quoted = quote_json(text);
    struct json_object *v = quoted ? json_tokener_parse(quoted) : NULL;
    free(quoted);
    return v;
}

int document_init(struct document *d, const char *mode)
{
    d->root = json_object_new_object();
    if (!d->root)
        return -ENOMEM;
    json_object_object_add(d->root, "heaptape", json_object_new_string(HEAPTAPE_VERSION));
    json_object_object_add(d->root, "mode", json_object_new_string(mode));
    json_object_object_add(d->root, "workloads", json_object_new_array());
    json_object_object_add(d->root, "results", json_object_new_array());
    return 0;
}

void document_release(struct document *d)
{
    json_object_put(d->root);
    d->root = NULL;
}

double document_number(struct json_object *object, const char *path)
{
    char key[64];
    while (object) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NAN;
        memcpy(key, path, n);
        key[n] = 0;
        object = get(object, key);
        if (!path[n])
            break;
        path += n + 1;
    }
    return json_object_is_type(object, json_type_int) || json_object_is_type(object, json_type_double)
               ? json_object_get_double(object)
               : NAN;
}

static struct json_object *shortened(struct json_object *v);

static struct json_object *shortened_array(struct json_object *v, size_t max)
{
    size_t n = json_object_array_length(v), kept = n < max ? n : max;
    struct json_object *to = json_object_new_array();
    for (size_t i = 0; i < kept; i++)
        json_object_array_add(to, shortened(json_object_array_get_idx(v, kept == n ? i : i * (n - 1) / (kept - 1))));
    return to;
}

// 0 where a row is not as it should be.
static double value_at(struct json_object *rows, size_t row, size_t column)
{
    struct json_object *v = json_object_array_get_idx(rows, row);
    return is_array(v) ? json_object_get_double(json_object_array_get_idx(v, column)) : 0;
}

// The rows of [from, to) where a column is least and greatest, marked in `keep`.
static void keep_extremes(struct json_object *rows, size_t from, size_t to, size_t column, bool *keep)
{
    size_t low = from, high = from;
    for (size_t i = from; i < to; i++) {
        low = value_at(rows, i, column) < value_at(rows, low, column) ? i : low;
        high = value_at(rows, i, column) > value_at(rows, high, column) ? i : high;
    }
    keep[low] = keep[high] = true;
}

enum { RSS_COLUMN = 2, LIVE_COLUMN = 3 };

// [event, ns, rss, live] rows: of each stretch those with the least and greatest RSS and live bytes, so that no peak is
// lost.
static struct json_object *shortened_timeline(struct json_object *rows)
{
    size_t n = json_object_array_length(rows), stretches = DOCUMENT_POINTS / 4;
    if (n <= DOCUMENT_POINTS)
        return shortened_array(rows, DOCUMENT_POINTS);
    bool *keep = calloc(n, sizeof *keep);
    struct json_object *to = json_object_new_array();
    if (!keep || !to) {
        free(keep);
        return to;
    }
    for (size_t i = 0; i < stretches; i++) {
        keep_extremes(rows, i * n / stretches, (i + 1) * n / stretches, RSS_COLUMN, keep);
        keep_extremes(rows, i * n / stretches, (i + 1) * n / stretches, LIVE_COLUMN, keep);
    }
    keep[0] = keep[n - 1] = true;
    for (size_t i = 0; i < n; i++) {
        if (keep[i])
            json_object_array_add(to, shortened(json_object_array_get_idx(rows, i)));
    }
    free(keep);
    return to;
}

// Of lists that are sorted the beginning says most.
static struct json_object *first_items(struct json_object *v, size_t max)
{
    size_t n = json_object_array_length(v);
    struct json_object *to = json_object_new_array();
    for (size_t i = 0; i < n && i < max; i++)
        json_object_array_add(to, shortened(json_object_array_get_idx(v, i)));
    return to;
}

static struct json_object *shortened_member(const char *key, struct json_object *v)
{
    if (is_array(v) && (strcmp(key, "by_thread") == 0 || strcmp(key, "by_site") == 0))
        return first_items(v, DOCUMENT_GROUPS);
    if (strcmp(key, "timeline") == 0 && is_array(v))
        return shortened_timeline(v);
    if (strcmp(key, "stats") == 0 && is_array(v))
        return shortened_array(v, DOCUMENT_STATS);
    return shortened(v);
}

static struct json_object *shortened_object(struct json_object *v)
{
    struct json_object *to = json_object_new_object();
    size_t n = 0;
    json_object_object_foreach(v, key, item)
    {
        if (n++ == DOCUMENT_ITEMS)
            break;
        json_object_object_add(to, key, shortened_member(key, item));
    }
    return to;
}

// A copy without what would make a page too long.
static struct json_object *shortened(struct json_object *v)
{
    if (is_object(v))
        return shortened_object(v);
    if (is_array(v))
        return shortened_array(v, DOCUMENT_ITEMS);
    if (json_object_is_type(v, json_type_string) && json_object_get_string_len(v) > DOCUMENT_TEXT_BYTES)
        return json_object_new_string("(too long)");
    return json_object_get(v);
}

static void add_item(struct document *d, const char *list, struct json_object *item)
{
    json_object_array_add(json_object_object_get(d->root, list), item);
}

static struct json_object *of_file(const char *name, int side)
{
    struct json_object *item = json_object_new_object();
    json_object_object_add(item, "name", text_value(name));
    json_object_object_add(item, "side", json_object_new_int(side));
    return item;
}

static void add_result(struct document *d, struct json_object *item, struct json_object *file,
                       struct json_object *result)
{
    json_object_object_add(item, "workload", shortened(get(file, "workload")));
    json_object_object_add(item, "machine", shortened(get(file, "machine")));
    json_object_object_add(item, "result", shortened(result));
    add_item(d, "results", item);
}

static int bad(struct err *e, const char *name, const char *what)
{
    return err_set(e, -EPROTO, "%s: %s", name, what);
}

static int add_file(struct document *d, const char *name, int side, struct json_object *file, struct err *e)
{
    struct json_object *all = get(file, "allocators");
    if (is_object(get(file, "verify")))
        return bad(e, name, "is the result of 'replay --verify', which measures nothing");
    if (is_object(get(file, "allocator"))) {
        add_result(d, of_file(name, side), file, file);
        return 0;
    }
    if (is_array(all) && json_object_array_length(all)) {
        for (size_t i = 0; i < json_object_array_length(all); i++)
            add_result(d, of_file(name, side), file, json_object_array_get_idx(all, i));
        return 0;
    }
    if (!is_object(get(file, "by_kind")))
        return bad(e, name, "is JSON, but was not printed by stat, replay or compare");
    if (!is_object(get(file, "timeline")))
        return bad(e, name, "was printed by 'stat --brief' and has no figures to show; use 'stat --json' alone");
    struct json_object *item = of_file(name, side);
    json_object_object_add(item, "stat", shortened(file));
    add_item(d, "workloads", item);
    return 0;
}

int document_add(struct document *d, const char *name, int side, const char *text, size_t n, struct err *e)
{
    struct json_tokener *t = json_tokener_new();
    if (!t || n > INT_MAX)
        return err_set(e, -ENOMEM, "%s: out of memory", name);
    json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *file = json_tokener_parse_ex(t, text, (int)n);
    enum json_tokener_error error = json_tokener_get_error(t);
    int rc = 0;
    if (error == json_tokener_continue)
        rc = err_set(e, -ENODATA, "%s: truncated JSON at byte %zu", name, n);
    else if (error != json_tokener_success)
        rc = err_set(e, -EBADMSG, "%s: invalid JSON at byte %zu: %s", name, json_tokener_get_parse_end(t),
                     json_tokener_error_desc(error));
    else
        rc = add_file(d, name, side, file, e);
    json_object_put(file);
    json_tokener_free(t);
    return rc;
}

char *document_text(const struct document *d)
{
    const char *text = json_object_to_json_string_ext(d->root, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    return text ? strdup(text) : NULL;
}
