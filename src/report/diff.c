#include "report/diff.h"

#include "base/buf.h"
#include "replay/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct figure {
    const char *label, *path;
    enum figure_unit unit;
    enum figure_better better;
};

// Calls that `report --diff` lists for workloads.
static const enum event_kind diff_kinds[] = {HT_MALLOC, HT_CALLOC, HT_REALLOC, HT_FREE, HT_NEW};

// Latencies of malloc and free. The table of figures does not contain latencies, because a run has
// one latency for each kind of call.
static const struct figure latency_figures[] = {
    {"malloc, mean", "calls.malloc.mean_ns", FIGURE_NS, FIGURE_LESS},
    {"malloc, p99", "calls.malloc.p99_ns", FIGURE_NS, FIGURE_LESS},
    {"malloc, p99.9", "calls.malloc.p999_ns", FIGURE_NS, FIGURE_LESS},
    {"free, mean", "calls.free.mean_ns", FIGURE_NS, FIGURE_LESS},
    {"free, p99", "calls.free.p99_ns", FIGURE_NS, FIGURE_LESS},
    {"free, p99.9", "calls.free.p999_ns", FIGURE_NS, FIGURE_LESS},
};

enum { LATENCY_FIGURES = sizeof latency_figures / sizeof *latency_figures };

// Adds a row if at least one side has the figure.
static int add_row(struct document *d, const char *of, const struct diff_row *figure)
{
    if (isnan(figure->a) && isnan(figure->b))
        return 0;
    if (HT_GROW(&d->rows, &d->rows_capacity, d->n_rows + 1) < 0)
        return -ENOMEM;
    struct diff_row *row = &d->rows[d->n_rows++];
    *row = *figure;
    snprintf(row->of, sizeof row->of, "%s", of);
    return 0;
}

static int add_rows(struct document *d, const char *of, const struct json_value *sides[2],
                    const struct figure *f, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_row(d, of,
                     &(struct diff_row){.label = f[i].label,
                                        .unit = f[i].unit,
                                        .better = f[i].better,
                                        .a = json_value_number_at(sides[0], f[i].path),
                                        .b = json_value_number_at(sides[1], f[i].path)});
    return rc;
}

// Adds the rows of a pair of results: the figures that the table of figures lists for `--diff`, and
// the latencies.
static int add_result_rows(struct document *d, const char *of, const struct json_value *sides[2])
{
    char path[FIGURE_PATH_BYTES];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        struct figure f = {info->label, figure_path(info, path), info->unit, info->better};
        if (info->shown & FIGURE_IN_DIFF)
            rc = add_rows(d, of, sides, &f, 1);
    }
    return rc < 0 ? rc : add_rows(d, of, sides, latency_figures, LATENCY_FIGURES);
}

static int add_call_rows(struct document *d, const struct document_stat *sides[2])
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof diff_kinds / sizeof *diff_kinds; i++) {
        enum event_kind kind = diff_kinds[i];
        rc = add_row(d, "",
                     &(struct diff_row){.label = event_infos[kind].name,
                                        .unit = FIGURE_COUNT,
                                        .better = FIGURE_NEITHER,
                                        .a = sides[0]->calls[kind],
                                        .b = sides[1]->calls[kind]});
    }
    return rc;
}

// Adds the rows of a pair of workloads: the figures that stat_figures.h lists for `--diff`, and the
// calls.
static int workload_rows(struct document *d)
{
    const struct document_stat *sides[2] = {NULL, NULL};
    int rc = 0;
    for (size_t i = d->n_items; i-- > 0;) {
        if (!d->items[i].result)
            sides[d->items[i].side] = d->items[i].stat;
    }
    for (unsigned i = 0; rc == 0 && sides[0] && sides[1] && i < STAT_FIGURES; i++) {
        const struct stat_figures_info *info = &stat_figures_infos[i];
        if (info->shown & STAT_FIGURES_IN_DIFF)
            rc = add_row(d, "",
                         &(struct diff_row){.label = info->label,
                                            .unit = info->unit,
                                            .better = info->better,
                                            .a = stat_figures_value(&sides[0]->figures, i),
                                            .b = stat_figures_value(&sides[1]->figures, i)});
        if (rc == 0 && i == STAT_FIGURE_live_at_end_blocks)
            rc = add_call_rows(d, sides);
    }
    return rc;
}

// Writes the name of an allocator and its tunables. A long name ends with "...".
static void allocator_name(const struct document_item *item, char name[80])
{
    if (findings_allocator_name(json_value_get(item->result, "allocator"), name, 80) >= 80)
        memcpy(name + 76, "...", sizeof "...");
}

// Returns side 1's first result for the same allocator or, if `any` is set, for any allocator.
// Returns NULL if there is no such result.
static const struct document_item *partner(const struct document *d,
                                           const struct document_item *item, bool any)
{
    char name[80], other[80];
    allocator_name(item, name);
    for (size_t i = 0; i < d->n_items; i++) {
        const struct document_item *at = &d->items[i];
        if (!at->result || at->side != 1)
            continue;
        allocator_name(at, other);
        if (any || strcmp(name, other) == 0)
            return at;
    }
    return NULL;
}

static size_t count_results(const struct document *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_items; i++)
        n += d->items[i].result != NULL;
    return n;
}

// If each side has exactly one result, compares these results even if their allocators differ.
static int result_rows(struct document *d)
{
    bool any = count_results(d) == 2;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n_items; i++) {
        const struct document_item *item = &d->items[i];
        const struct document_item *other =
            item->result && item->side == 0 ? partner(d, item, any) : NULL;
        char of[80], name[80], both[164];
        if (!other)
            continue;
        allocator_name(item, of);
        allocator_name(other, name);
        snprintf(both, sizeof both, "%s%s%s", of, strcmp(of, name) ? " : " : "",
                 strcmp(of, name) ? name : "");
        const struct json_value *sides[2] = {item->result, other->result};
        rc = add_result_rows(d, both, sides);
    }
    return rc;
}

void diff_write(struct json *j, const struct document *d)
{
    json_put_array(j, "diff");
    for (size_t i = 0; i < d->n_rows; i++) {
        const struct diff_row *r = &d->rows[i];
        json_begin_object(j);
        json_put_string(j, "of", r->of);
        json_put_string(j, "label", r->label);
        json_put_string(j, "unit", figure_unit_names[r->unit]);
        json_put_double(j, "a", r->a);
        json_put_double(j, "b", r->b);
        json_end_object(j);
    }
    json_end_array(j);
}

int diff_rows(struct document *d)
{
    int rc = workload_rows(d) ?: result_rows(d);
    return rc == 0 && !d->n_rows ? -ENOENT : rc;
}
