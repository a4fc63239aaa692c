#include "report/sites_diff.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sites_diff_release(struct sites_diff *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->rows[i].function);
        free(d->rows[i].file);
    }
    free(d->rows);
    *d = (struct sites_diff){0};
}

static struct sites_diff_row *add_row(struct sites_diff *d, const char *function, const char *file)
{
    if (HT_GROW(&d->rows, &d->capacity, d->n + 1) < 0)
        return NULL;
    struct sites_diff_row *r = &d->rows[d->n++];
    *r = (struct sites_diff_row){.function = strdup(function), .file = strdup(file)};
    return r->function && r->file ? r : NULL;
}

static struct sites_diff_side side_of_site(const struct by_site_totals *t)
{
    return (struct sites_diff_side){true, 0, t->peak_bytes, t->live_bytes, t->bytes, t->calls};
}

// Folds each file's wrappers in the other file as well. Otherwise, if a function has fewer callers
// in one file, it could be a wrapper in the other file only. Returns 0 or -ENOMEM.
static int share_wrappers(const struct file_stat *a, const struct file_stat *b)
{
    if (!a->symbols || !b->symbols)
        return 0;
    if (symbols_find_wrappers(a->symbols) < 0 || symbols_find_wrappers(b->symbols) < 0 ||
        symbols_add_wrappers(a->symbols, b->symbols) < 0)
        return -ENOMEM;
    return symbols_add_wrappers(b->symbols, a->symbols);
}

static int count_site(const struct sites_diff *d, unsigned side, const struct file_stat *s,
                      uint32_t number)
{
    struct stack stack = {0};
    const struct sites_diff_side totals = side_of_site(&s->by_site.sites[number]);
    int rc = stack_read(&stack, s->symbols, number);
    if (rc == 0)
        d->count(d->context, side, &stack, &totals);
    stack_release(&stack);
    return rc;
}

// Adds a row for each stack. match_rows joins rows with the same function, file and line. Returns 0
// or -ENOMEM.
static int add_sites(struct sites_diff *d, unsigned side, const struct file_stat *s)
{
    for (uint32_t i = 0; s->symbols && i < s->by_site.n_sites; i++) {
        const struct by_site_totals *t = &s->by_site.sites[i];
        struct sites_diff_row *r;
        struct symbol own;
        if (!t->calls && !t->peak_blocks && !t->live_blocks)
            continue;
        // An address outside all objects differs from run to run.
        bool is_place = stack_site(s->symbols, i, &own) && (own.known || own.module[0]);
        r = is_place ? add_row(d, own.function, basename(own.file[0] ? own.file : own.module))
                     : add_row(d, "(unknown)", "");
        if (!r)
            return -ENOMEM;
        r->named = is_place && own.known;
        r->sides[side] = side_of_site(t);
        r->sides[side].line = is_place ? own.line : 0;
        if (d->count && count_site(d, side, s, i) < 0)
            return -ENOMEM;
    }
    return 0;
}

static const struct sites_diff_side *side_of(const struct sites_diff_row *r)
{
    return &r->sides[!r->sides[0].found];
}

static int by_place(const void *x, const void *y)
{
    const struct sites_diff_row *a = x, *b = y;
    int c = strcmp(a->function, b->function);
    c = c ? c : strcmp(a->file, b->file);
    c = c ? c : a->sides[1].found - b->sides[1].found;
    return c ? c : side_of(a)->line - side_of(b)->line;
}

static void add_side(struct sites_diff_side *to, const struct sites_diff_side *from)
{
    to->found = true;
    to->line = from->line;
    to->peak_bytes += from->peak_bytes;
    to->end_bytes += from->end_bytes;
    to->bytes += from->bytes;
    to->calls += from->calls;
}

static bool same_function(const struct sites_diff_row *a, const struct sites_diff_row *b)
{
    return strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

// Adds the figures of row `from` to row `to` and clears `from`.
static void absorb_row(struct sites_diff_row *to, struct sites_diff_row *from)
{
    for (unsigned side = 0; side < 2; side++) {
        if (from->sides[side].found)
            add_side(&to->sides[side], &from->sides[side]);
    }
    free(from->function);
    free(from->file);
    from->function = from->file = NULL;
}

static void drop_empty(struct sites_diff *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (d->rows[i].function)
            d->rows[n++] = d->rows[i];
    }
    d->n = n;
}

static void join_places(struct sites_diff *d)
{
    for (size_t i = 0, next; i < d->n; i = next) {
        for (next = i + 1; next < d->n && by_place(&d->rows[i], &d->rows[next]) == 0; next++)
            absorb_row(&d->rows[i], &d->rows[next]);
    }
    drop_empty(d);
}

// Matches the rows of one function. [from, middle) are the rows of side a, [middle, end) the rows
// of side b. The first round matches rows with equal lines. The second round matches the other rows
// in order.
static void match_function(struct sites_diff_row *rows, size_t from, size_t middle, size_t end)
{
    for (unsigned round = 0; round < 2; round++) {
        size_t k = middle;
        for (size_t i = from; i < middle; i++) {
            if (rows[i].sides[1].found)
                continue;
            for (k = round ? k : middle; k < end; k++) {
                if (rows[k].function && (round || rows[k].sides[1].line == rows[i].sides[0].line))
                    break;
            }
            if (k < end)
                absorb_row(&rows[i], &rows[k]);
        }
    }
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static int by_change(const void *x, const void *y)
{
    const struct sites_diff_side *a = ((const struct sites_diff_row *)x)->sides,
                                 *b = ((const struct sites_diff_row *)y)->sides;
    uint64_t peak[] = {difference(a[0].peak_bytes, a[1].peak_bytes),
                       difference(b[0].peak_bytes, b[1].peak_bytes)};
    uint64_t bytes[] = {difference(a[0].bytes, a[1].bytes), difference(b[0].bytes, b[1].bytes)};
    if (peak[0] != peak[1])
        return peak[0] < peak[1] ? 1 : -1;
    if (bytes[0] != bytes[1])
        return bytes[0] < bytes[1] ? 1 : -1;
    return strcmp(((const struct sites_diff_row *)x)->function,
                  ((const struct sites_diff_row *)y)->function);
}

// Matches rows of the same function and file in the order of their lines. Then sorts all rows by
// the changes in bytes live at the peak and in allocated bytes.
static void match_rows(struct sites_diff *d)
{
    if (!d->n)
        return;
    qsort(d->rows, d->n, sizeof *d->rows, by_place);
    join_places(d);
    for (size_t i = 0, middle, end; i < d->n; i = end) {
        for (middle = i; middle < d->n && same_function(&d->rows[i], &d->rows[middle]) &&
                         d->rows[middle].sides[0].found;)
            middle++;
        for (end = middle; end < d->n && same_function(&d->rows[i], &d->rows[end]);)
            end++;
        match_function(d->rows, i, middle, end);
    }
    drop_empty(d);
    qsort(d->rows, d->n, sizeof *d->rows, by_change);
}

bool sites_diff_changed(const struct sites_diff_row *r)
{
    const struct sites_diff_side *a = &r->sides[0], *b = &r->sides[1];
    return a->peak_bytes != b->peak_bytes || a->end_bytes != b->end_bytes || a->bytes != b->bytes ||
           a->calls != b->calls;
}

static void put_side(struct json *j, const char *key, const struct sites_diff_side *s)
{
    json_put_object(j, key);
    json_put_u64(j, "line", (uint64_t)s->line);
    json_put_u64(j, "allocs", s->calls);
    json_put_u64(j, "allocated_bytes", s->bytes);
    json_put_u64(j, "live_at_peak_bytes", s->peak_bytes);
    json_put_u64(j, "live_at_end_bytes", s->end_bytes);
    json_end_object(j);
}

static struct sites_diff_side totals_of(const struct file_stat *s)
{
    const struct workload_summary *t = &s->total;
    struct sites_diff_side all = {
        .found = s->symbols != NULL,
        .peak_bytes = t->peak_live_bytes,
        .end_bytes = t->live_at_end_bytes,
        .bytes = t->requested_bytes,
    };
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        unsigned class = event_infos[kind].class;
        if ((class == HT_CLASS_ALLOC && kind != HT_PREEXISTING) || class == HT_CLASS_RESIZE)
            all.calls += t->by_kind[kind];
    }
    return all;
}

int sites_diff_files(struct sites_diff *d, struct sites_diff_side totals[2], char *const paths[2],
                     const struct convert_watch *watch, struct err *e)
{
    struct file_stat s[2];
    unsigned n = 0;
    int rc = 0;
    for (; n < 2; n++) {
        rc = file_stat(&s[n], paths[n], FILE_STAT_SITES, watch, e);
        if (rc < 0)
            break;
        totals[n] = totals_of(&s[n]);
    }
    if (n == 2 && share_wrappers(&s[0], &s[1]) < 0)
        rc = err_no_memory(e, paths[0]);
    for (unsigned side = 0; rc == 0 && side < 2; side++) {
        if (add_sites(d, side, &s[side]) < 0)
            rc = err_no_memory(e, paths[side]);
    }
    while (n > 0)
        file_stat_release(&s[--n]);
    match_rows(d);
    return rc;
}

void sites_diff_json(struct json *j, const struct sites_diff *d)
{
    json_put_array(j, "sites");
    for (size_t i = 0; i < d->n; i++) {
        if (!sites_diff_changed(&d->rows[i]))
            continue;
        json_begin_object(j);
        json_put_string(j, "function", d->rows[i].function);
        json_put_string(j, "file", d->rows[i].file);
        put_side(j, "a", &d->rows[i].sides[0]);
        put_side(j, "b", &d->rows[i].sides[1]);
        json_end_object(j);
    }
    json_end_array(j);
}
