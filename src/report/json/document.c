#include "report/json/document.h"

#include "analysis/memory/rss_map.h"
#include "base/buf.h"
#include "base/json.h"
#include "record/aggregate/stat.h"
#include "replay/figures.h"
#include "report/diff.h"
#include "report/json/sites_json.h"
#include "report/json/stat_json.h"
#include "workload/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void document_release(struct document *d)
{
    for (size_t i = 0; i < d->n_items; i++) {
        if (d->items[i].stat)
            free(d->items[i].stat->text);
        free(d->items[i].stat);
        free(d->items[i].name);
        free(d->items[i].profile);
        free(d->items[i].address_map);
    }
    for (size_t i = 0; i < d->n_files; i++)
        json_value_free(d->files[i]);
    free(d->items);
    free(d->files);
    free(d->rows);
    *d = (struct document){.mode = d->mode, .watch = d->watch};
}

static int add_item(struct document *d, const char *name, int side, const struct json_value *file,
                    const struct json_value *result)
{
    char *copy = strdup(name);
    const struct document_item item = {.name = copy, .side = side, .file = file, .result = result};
    if (copy && HT_APPEND(&d->items, &d->n_items, &d->items_capacity, item) == 0)
        return 0;
    free(copy);
    return -ENOMEM;
}

static int add_workload(struct document *d, const char *name, int side,
                        const struct json_value *file)
{
    struct document_stat *stat = calloc(1, sizeof *stat);
    int rc = stat ? add_item(d, name, side, file, NULL) : -ENOMEM;
    if (rc < 0) {
        free(stat);
        return rc;
    }
    d->items[d->n_items - 1].stat = stat;
    return 0;
}

static int add_json_workload(struct document *d, const char *name, int side,
                             const struct json_value *file)
{
    const struct json_value *calls = json_value_get(file, "calls");
    int rc = add_workload(d, name, side, file);
    if (rc < 0)
        return rc;
    struct document_stat *stat = d->items[d->n_items - 1].stat;
    stat_figures_of_json(&stat->figures, file);
    findings_of_json(&stat->found, file);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const char *key = event_infos[kind].name;
        stat->calls[kind] = key ? json_value_number_at(json_value_get(calls, key), "count") : NAN;
    }
    return 0;
}

static int add_file(struct document *d, const char *name, int side, const struct json_value *file,
                    struct err *e)
{
    bool is_stat = json_value_is_object(json_value_get(file, "by_kind"));
    // `stat` also has a member with this name: the allocators that the program called.
    const struct json_value *all = is_stat ? NULL : json_value_get(file, "allocators");
    int rc = 0;
    if (json_value_is_object(json_value_get(file, "verify")))
        return err_set(e, -EPROTO, "%s: is the result of 'replay --verify', which measures nothing",
                       name);
    if (json_value_is_object(json_value_get(file, "allocator")))
        return add_item(d, name, side, file, file);
    for (size_t i = 0; rc == 0 && i < json_value_length(all); i++)
        rc = add_item(d, name, side, file, json_value_at(all, i));
    if (json_value_length(all))
        return rc;
    if (!is_stat)
        return err_set(e, -EPROTO, "%s: is JSON, but was not printed by stat, replay or compare",
                       name);
    if (!json_value_is_object(json_value_get(file, "growth")) &&
        !json_value_is_object(json_value_get(file, "timeline")))
        return err_set(
            e, -EPROTO,
            "%s: was printed by 'stat --brief' and has no figures to show; use 'stat --json' alone",
            name);
    return add_json_workload(d, name, side, file);
}

int document_check_version(const struct json_value *root, const char *name, struct err *e)
{
    const struct json_value *v = json_value_get(root, "schema_version");
    uint64_t version = json_value_u64(v);
    if (!v || version == JSON_SCHEMA_VERSION)
        return 0;
    return err_set(e, -EPROTO, "%s: schema_version is %llu, expected %d: written by %s heaptape?",
                   name, (unsigned long long)version, JSON_SCHEMA_VERSION,
                   version > JSON_SCHEMA_VERSION ? "a newer" : "an older");
}

int document_add(struct document *d, const char *name, int side, const char *text, size_t n,
                 struct err *e)
{
    struct json_value *file;
    int rc = json_value_parse(&file, name, text, n, e) ?: document_check_version(file, name, e);
    rc = rc ?: HT_APPEND(&d->files, &d->n_files, &d->files_capacity, file);
    if (rc < 0) {
        json_value_free(file);
        return rc == -ENOMEM ? err_no_memory(e, name) : rc;
    }
    rc = add_file(d, name, side, file, e);
    return rc == -ENOMEM ? err_no_memory(e, name) : rc;
}

// Maximum size of a file. JSON written by heaptape is smaller.
enum { MAX_JSON_BYTES = 256 << 20 };

static int add_json(struct document *d, struct input *in, int side, struct err *e)
{
    struct buf b = {0};
    int rc = input_read_all(in, &b, MAX_JSON_BYTES, e);
    if (rc == -EFBIG)
        err_set(e, rc, "%s: JSON of over 256 MiB", in->name);
    if (rc == 0)
        rc = document_add(d, in->name, side, (const char *)b.data, b.size, e);
    buf_release(&b);
    return rc;
}

// Adds the profile of a workload. Each workload may use half of the remaining space, because other
// workloads may follow.
static int add_profile(struct document *d, const struct file_stat *s, struct err *e)
{
    struct document_item *item = &d->items[d->n_items - 1];
    if (!s->symbols)
        return 0;
    item->profile = sites_profile(&(struct sites_json){&s->by_site, s->symbols},
                                  (DOCUMENT_PROFILE_BYTES - d->profile_bytes) / 2);
    if (!item->profile)
        return err_no_memory(e, item->name);
    d->profile_bytes += strlen(item->profile);
    return 0;
}

static int add_address_map(struct document *d, const char *path, struct err *e)
{
    struct file f;
    struct err why = {0};
    char *text = NULL;
    size_t n;
    struct rss_map *m = malloc(sizeof *m);
    if (!m)
        return err_no_memory(e, path);
    int rc = file_open(&f, path, FILE_TRACE | FILE_TRACE_TWICE, e);
    if (rc == 0) {
        rc = rss_map_read(m, &f.trace, d->watch, &why);
        FILE *to = rc == 0 && m->rss.maps ? open_memstream(&text, &n) : NULL;
        if (to)
            rss_map_json(&(struct json){.to = to}, m);
        if ((to && fclose(to) != 0) || rc == -ENOMEM)
            rc = err_no_memory(e, path);
        else
            rc = 0; // file_stat has already reported errors in the file
        rss_map_release(m);
        file_close(&f);
    }
    d->items[d->n_items - 1].address_map = text;
    free(m);
    return rc;
}

static int set_counted(struct document *d, const struct file_stat *s)
{
    struct document_stat *to = d->items[d->n_items - 1].stat;
    size_t n = 0;
    FILE *f = open_memstream(&to->text, &n);
    if (!f)
        return -ENOMEM;
    stat_figures_of_file(&to->figures, s);
    findings_of_file(&to->found, s);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        to->calls[kind] =
            s->sums && s->sums->kinds[kind].calls ? (double)s->sums->kinds[kind].calls : NAN;
    stat_json(
        &(struct json){.to = f, .max_text_bytes = DOCUMENT_TEXT_BYTES, .max_items = DOCUMENT_ITEMS},
        s, &to->figures, &to->found);
    if (fclose(f) != 0)
        return -ENOMEM;
    to->text[strcspn(to->text, "\n")] = 0;
    return 0;
}

static int add_counted(struct document *d, const char *path, int side, struct err *e)
{
    struct file_stat s;
    const struct file_stat_settings how = {.part = FILE_STAT_REPORT, .watch = d->watch};
    int rc = aggregate_file_stat(&s, path, &how, e);
    if (rc < 0)
        return rc;
    bool aggregate = s.kind == FILE_STAT_AGGREGATE;
    if (aggregate && strcmp(d->mode, "report") != 0) {
        file_stat_release(&s);
        return err_set(e, -EPROTO,
                       "%s: is an aggregate; --diff compares traces, workloads or results", path);
    }
    rc = add_workload(d, path, side, NULL) ?: set_counted(d, &s);
    if (rc < 0)
        err_no_memory(e, path);
    if (rc == 0 && !aggregate)
        rc = add_profile(d, &s, e);
    if (rc == 0 && s.kind == FILE_STAT_TRACE && strcmp(d->mode, "report") == 0)
        rc = add_address_map(d, path, e);
    file_stat_release(&s);
    return rc;
}

int document_add_file(struct document *d, const char *path, int side, struct err *e)
{
    struct input in;
    int rc = file_open_input(&in, path, e);
    if (rc < 0)
        return rc;
    int kind = file_sniff(&in, FILE_TRACE | FILE_WORKLOAD | FILE_AGGREGATE | FILE_JSON, e);
    bool json = kind == FILE_JSON, pipe = !json && kind >= 0 && !in.size_bytes;
    rc = kind < 0 ? kind : json ? add_json(d, &in, side, e) : 0;
    input_close(&in);
    if (rc == 0 && pipe)
        return err_set(e, -ESPIPE, "%s: cannot read a trace or workload from a pipe; use a file",
                       path);
    return rc < 0 || json ? rc : add_counted(d, path, side, e);
}

int document_add_result(struct document *d, const char *path, struct err *e)
{
    struct input in;
    int rc = input_open_regular(&in, path, e);
    if (rc < 0)
        return rc;
    rc = add_json(d, &in, 0, e);
    input_close(&in);
    return rc;
}

static void write_value(struct json *j, const struct json_value *v);

// Writes at most `max` evenly spaced items, including the first and the last item.
static void write_spread(struct json *j, const struct json_value *v, size_t max)
{
    size_t n = json_value_length(v), kept = n < max ? n : max;
    json_begin_array(j);
    for (size_t i = 0; i < kept; i++)
        write_value(j, json_value_at(v, kept == n ? i : i * (n - 1) / (kept - 1)));
    json_end_array(j);
}

// Writes the first `max` items of a sorted list.
static void write_first(struct json *j, const struct json_value *v, size_t max)
{
    json_begin_array(j);
    for (size_t i = 0; i < json_value_length(v) && i < max; i++)
        write_value(j, json_value_at(v, i));
    json_end_array(j);
}

// Returns NAN for a malformed row. Comparisons with NAN are false.
static double value_at(const struct json_value *rows, size_t row, size_t column)
{
    return json_value_number(json_value_at(json_value_at(rows, row), column));
}

// In `keep`, marks the rows of [from, to) with the minimum and the maximum of a column.
static void keep_extremes(const struct json_value *rows, size_t from, size_t to, size_t column,
                          bool *keep)
{
    size_t low = from, high = from;
    for (size_t i = from; i < to; i++) {
        low = value_at(rows, i, column) < value_at(rows, low, column) ? i : low;
        high = value_at(rows, i, column) > value_at(rows, high, column) ? i : high;
    }
    keep[low] = keep[high] = true;
}

enum { RSS_COLUMN = 2, LIVE_COLUMN = 3 };

// Writes rows of the form [event, ns, rss, live, virtual], or rows of process_timeline, [event, ns,
// process, outside]. In each interval, keeps the rows with the minimum and the maximum of columns 2
// and 3, so that no peak is lost.
static void write_timeline(struct json *j, const struct json_value *rows)
{
    size_t n = json_value_length(rows), stretches = DOCUMENT_POINTS / 4;
    bool *keep = n > DOCUMENT_POINTS ? calloc(n, sizeof *keep) : NULL;
    if (!keep) {
        write_spread(j, rows, DOCUMENT_POINTS);
        return;
    }
    for (size_t i = 0; i < stretches; i++) {
        keep_extremes(rows, i * n / stretches, (i + 1) * n / stretches, RSS_COLUMN, keep);
        keep_extremes(rows, i * n / stretches, (i + 1) * n / stretches, LIVE_COLUMN, keep);
    }
    keep[0] = keep[n - 1] = true;
    json_begin_array(j);
    for (size_t i = 0; i < n; i++) {
        if (keep[i])
            write_value(j, json_value_at(rows, i));
    }
    json_end_array(j);
    free(keep);
}

static void write_member(struct json *j, const char *key, const struct json_value *v)
{
    json_key(j, key);
    if (!json_value_is_array(v))
        write_value(j, v);
    else if (strcmp(key, "by_thread") == 0 || strcmp(key, "by_site") == 0)
        write_first(j, v, DOCUMENT_GROUPS);
    else if (strcmp(key, "outside_samples") == 0)
        write_first(j, v, 0); // the report does not show these samples
    else if (strcmp(key, "timeline") == 0 || strcmp(key, "process_timeline") == 0)
        write_timeline(j, v);
    else
        write_spread(j, v, strcmp(key, "stats") == 0 ? DOCUMENT_STATS : DOCUMENT_ITEMS);
}

static void write_object(struct json *j, const struct json_value *v)
{
    struct json_value_member m = {0};
    json_begin_object(j);
    for (size_t n = 0; n < DOCUMENT_ITEMS && json_value_next(v, &m); n++)
        write_member(j, m.key, m.value);
    json_end_object(j);
}

static void write_integer(struct json *j, const struct json_value *v)
{
    if (json_value_i64(v) < 0)
        json_i64(j, json_value_i64(v));
    else
        json_u64(j, json_value_u64(v));
}

// Writes a value. Long strings, arrays and objects are shortened.
static void write_value(struct json *j, const struct json_value *v)
{
    switch (json_value_kind(v)) {
    case JSON_VALUE_NULL:
        json_null(j);
        break;
    case JSON_VALUE_BOOL:
        json_bool(j, json_value_bool(v));
        break;
    case JSON_VALUE_INTEGER:
        write_integer(j, v);
        break;
    case JSON_VALUE_DOUBLE:
        json_double(j, json_value_number(v));
        break;
    case JSON_VALUE_STRING:
        json_string(j, json_value_string(v));
        break;
    case JSON_VALUE_ARRAY:
        write_spread(j, v, DOCUMENT_ITEMS);
        break;
    case JSON_VALUE_OBJECT:
        write_object(j, v);
        break;
    }
}

static void write_columns(struct json *j)
{
    json_put_array(j, "figures");
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        char path[FIGURE_PATH_BYTES];
        if (!(info->shown & FIGURE_IN_PAGE))
            continue;
        json_begin_object(j);
        json_put_string(j, "path", figure_path(info, path));
        json_put_string(j, "label", info->label);
        json_put_string(j, "unit", figure_unit_names[info->unit]);
        json_put_string(j, "better", figure_better_names[info->better]);
        json_put_string(j, "ratio", info->ratio);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_stat_figures(struct json *j)
{
    char path[STAT_FIGURES_PATH_BYTES];
    json_put_array(j, "stat_figures");
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        const struct stat_figures_info *info = &stat_figures_infos[i];
        if (!(info->shown & STAT_FIGURES_IN_PAGE))
            continue;
        json_begin_object(j);
        json_put_string(j, "path", stat_figures_path(i, path));
        json_put_string(j, "label", info->label);
        json_put_string(j, "unit", figure_unit_names[info->unit]);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_items(struct json *j, const struct document *d, bool results)
{
    json_put_array(j, results ? "results" : "workloads");
    for (size_t i = 0; i < d->n_items; i++) {
        const struct document_item *item = &d->items[i];
        if (!item->result == results)
            continue;
        json_begin_object(j);
        json_put_string(j, "name", item->name);
        json_put_u64(j, "side", (uint64_t)item->side);
        if (results) {
            write_member(j, "workload", json_value_get(item->file, "workload"));
            write_member(j, "machine", json_value_get(item->file, "machine"));
        }
        if (results)
            write_member(j, "result", item->result);
        else if (item->file)
            write_member(j, "stat", item->file);
        else
            json_put_raw(j, "stat", item->stat->text);
        if (item->profile)
            json_put_raw(j, "profile", item->profile);
        if (item->address_map)
            json_put_raw(j, "address_map", item->address_map);
        json_end_object(j);
    }
    json_end_array(j);
}

// Writes the findings of the first workload and of all results. A comparison of two workloads has
// no findings.
static int write_findings(struct json *j, const struct document *d)
{
    const struct json_value **results = calloc(d->n_items + 1, sizeof *results);
    const struct document_stat *stat = NULL;
    struct findings *f = malloc(sizeof *f);
    size_t n = 0, workloads = 0;
    for (size_t i = 0; results && i < d->n_items; i++) {
        const struct document_item *item = &d->items[i];
        if (item->result)
            results[n++] = item->result;
        else if (workloads++ == 0)
            stat = item->stat;
    }
    if (f && results && (workloads < 2 || strcmp(d->mode, "diff") != 0)) {
        findings_of_results(f, results, n);
        if (stat)
            findings_merge(f, &stat->found);
        findings_json(j, f);
    }
    int rc = f && results ? 0 : -ENOMEM;
    free(results);
    free(f);
    return rc;
}

char *document_text(const struct document *d)
{
    char *text = NULL;
    size_t n;
    struct json j = {.to = open_memstream(&text, &n), .max_text_bytes = DOCUMENT_TEXT_BYTES};
    if (!j.to)
        return NULL;
    json_begin_document(&j);
    json_put_string(&j, "heaptape", HEAPTAPE_VERSION);
    json_put_string(&j, "mode", d->mode);
    write_items(&j, d, false);
    write_items(&j, d, true);
    if (d->n_rows)
        diff_write(&j, d);
    write_columns(&j);
    write_stat_figures(&j);
    bool bad = write_findings(&j, d) < 0;
    json_end_object(&j);
    bad |= ferror(j.to) != 0;
    if (fclose(j.to) == 0 && !bad)
        return text;
    free(text);
    return NULL;
}
