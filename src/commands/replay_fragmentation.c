// replay --fragmentation: one more run, of a plan of its own in which all threads stand still at the peak of live bytes.
#include "cli/command.h"
#include "commands/replay_print.h"
#include "commands/replay_session.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The same plan as the runs have, with a stop. It knows no pace, and nothing is looked at.
static int make_plan(struct replay_session *s, struct plan **p, struct err *e)
{
    struct plan_settings how = s->how_to_plan;
    how.stats_every = 0;
    how.ns_per_stamp = 0;
    how.snapshots = true;
    how.snapshot_after_ops = plan_facts(s->plan)->ops_to_peak;
    int rc = workload_file_rewind(&s->input, e);
    if (rc == 0)
        rc = plan_new(p, s->input.in.name, &how, e);
    return rc < 0 ? rc : plan_read(*p, s->input.reader, NULL, e);
}

enum { FUNCTION_BYTES = 200 };

static int find(struct replay_figures *f, const struct plan *p, const struct replay_run *run, struct err *e)
{
    long page_bytes = sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < PLAN_SNAPSHOTS; i++) {
        unsigned noted_at;
        const struct plan_snapshot *h = plan_snapshots(p, i, &noted_at);
        const uint64_t *places = run->snapshots + noted_at * run->snapshot_entries;
        if (fragmentation_find(&f->fragmentation[i], h, places, run->snapshot_entries,
                               page_bytes > 0 ? (uint64_t)page_bytes : 4096) < 0)
            return err_set(e, -ENOMEM, "out of memory");
        fragmentation_sort(&f->fragmentation[i]);
    }
    return 0;
}

static int look(struct replay_session *s, const struct plan *p, struct replay_figures *f, struct err *e)
{
    struct replay_run run;
    struct replay_settings settings = s->settings;
    settings.paced = false;
    settings.idle_wait_ns = 0;
    settings.snapshots = true;
    int rc = replay_run(p, &f->allocator, &settings, &run, e);
    if (rc < 0)
        return rc;
    progress_update(&s->progress, ++s->runs_done);
    rc = find(f, p, &run, e);
    replay_run_release(&run);
    return rc;
}

static int read_sites(struct replay_session *s, struct err *e)
{
    int rc = workload_file_rewind(&s->input, e);
    if (rc == 0)
        rc = workload_read_sites(s->input.reader, &s->sites, e);
    if (rc < 0)
        return rc;
    s->symbols = symbols_new(&s->sites);
    return s->symbols ? 0 : err_set(e, -ENOMEM, "out of memory");
}

int session_find_fragmentation(struct replay_session *s, struct err *e)
{
    struct plan *p = NULL;
    int rc = read_sites(s, e);
    if (rc == 0)
        rc = make_plan(s, &p, e);
    for (size_t i = 0; rc == 0 && i < s->n_figures; i++)
        rc = look(s, p, &s->figures[i], e);
    plan_free(p);
    return rc;
}

// "function (file:line)" of the innermost frame, NULL when the site is not known.
static const char *function_at(const struct replay_session *s, uint64_t site, char text[FUNCTION_BYTES])
{
    const struct symbol *found;
    if (!site || site > s->sites.n_sites || !s->sites.sites[site - 1].n ||
        !symbols_of(s->symbols, &s->sites.frames[s->sites.sites[site - 1].first], &found))
        return NULL;
    const char *file = found->file[0] ? found->file : found->module, *slash = strrchr(file, '/');
    int n = snprintf(text, FUNCTION_BYTES, "%.100s", found->function);
    if (file[0] && n > 0)
        n += snprintf(text + n, FUNCTION_BYTES - (size_t)n, " (%.80s", slash ? slash + 1 : file);
    if (file[0] && n > 0)
        snprintf(text + n, FUNCTION_BYTES - (size_t)n, found->file[0] ? ":%d)" : ")", found->line);
    return text;
}

static void put_label(struct json *j, enum fragmentation_by way, uint64_t key)
{
    static const char *const from[] = {[FRAGMENTATION_BY_SIZE] = "size_from", [FRAGMENTATION_BY_AGE] = "age_from"};
    static const char *const to[] = {[FRAGMENTATION_BY_SIZE] = "size_to", [FRAGMENTATION_BY_AGE] = "age_to"};
    uint64_t range[2];
    if (way == FRAGMENTATION_BY_THREAD && key == FRAGMENTATION_UNKNOWN) {
        json_put_string(j, "thread", NULL);
    } else if (way == FRAGMENTATION_BY_THREAD || way == FRAGMENTATION_BY_SITE) {
        json_put_u64(j, way == FRAGMENTATION_BY_SITE ? "site" : "thread", key);
    } else {
        (way == FRAGMENTATION_BY_SIZE ? fragmentation_size_range : fragmentation_age_range)(key, range);
        json_put_u64(j, from[way], range[0]);
        json_put_u64(j, to[way], range[1]);
    }
}

static void put_groups(struct json *j, const struct replay_session *s, const struct fragmentation_groups *g,
                       enum fragmentation_by way)
{
    json_begin_array(j);
    for (size_t i = 0; i < g->n; i++) {
        char text[FUNCTION_BYTES];
        json_begin_object(j);
        put_label(j, way, g->groups[i].key);
        if (way == FRAGMENTATION_BY_SITE)
            json_put_string(j, "function", function_at(s, g->groups[i].key, text));
        json_put_u64(j, "blocks", g->groups[i].blocks);
        json_put_u64(j, "live_bytes", g->groups[i].live_bytes);
        json_put_u64(j, "sparse_pages", g->groups[i].sparse_pages);
        json_put_u64(j, "stranded_bytes", g->groups[i].stranded_bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

// Without call sites all blocks are of site 0.
static bool has_sites(const struct fragmentation_groups *g)
{
    return g->n > 1 || (g->n == 1 && g->groups[0].key);
}

static void put_fragmentation(struct json *j, const struct replay_session *s, const struct fragmentation *h)
{
    static const char *const keys[] = {"by_size", "by_age", "by_thread", "by_site"};
    json_begin_object(j);
    json_put_u64(j, "event", h->event);
    json_put_u64(j, "blocks", h->blocks);
    json_put_u64(j, "live_bytes", h->live_bytes);
    json_put_u64(j, "page_bytes", h->page_bytes);
    json_put_u64(j, "pages", h->pages);
    json_put_u64(j, "sparse_pages", h->sparse_pages);
    json_put_u64(j, "stranded_bytes", h->stranded_bytes);
    for (unsigned way = 0; way < FRAGMENTATION_GROUPINGS; way++) {
        static const struct fragmentation_groups none;
        bool empty = way == FRAGMENTATION_BY_SITE && !has_sites(&h->by[way]);
        json_key(j, keys[way]);
        put_groups(j, s, empty ? &none : &h->by[way], way);
    }
    json_end_object(j);
}

void replay_print_fragmentation(struct json *j, const struct replay_session *s, const struct replay_figures *f)
{
    json_key(j, "fragmentation");
    if (!s->fragmentation) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_key(j, "at_peak");
    put_fragmentation(j, s, &f->fragmentation[PLAN_SNAPSHOT_PEAK]);
    json_key(j, "at_end");
    put_fragmentation(j, s, &f->fragmentation[PLAN_SNAPSHOT_END]);
    json_end_object(j);
}

static void label(const struct replay_session *s, char text[FUNCTION_BYTES], enum fragmentation_by way, uint64_t key)
{
    uint64_t range[2];
    char t[2][32];
    if (way == FRAGMENTATION_BY_SIZE) {
        fragmentation_size_range(key, range);
        snprintf(text, FUNCTION_BYTES, "%llu to %llu bytes", (unsigned long long)range[0],
                 (unsigned long long)range[1]);
    } else if (way == FRAGMENTATION_BY_AGE) {
        fragmentation_age_range(key, range);
        snprintf(text, FUNCTION_BYTES, "%s to %s calls old", human_count(t[0], range[0]), human_count(t[1], range[1]));
    } else if (way == FRAGMENTATION_BY_SITE && function_at(s, key, text)) {
        return;
    } else if (key == (way == FRAGMENTATION_BY_SITE ? 0 : FRAGMENTATION_UNKNOWN)) {
        snprintf(text, FUNCTION_BYTES, way == FRAGMENTATION_BY_SITE ? "unknown call site" : "preexisting");
    } else {
        snprintf(text, FUNCTION_BYTES, "%s %llu", way == FRAGMENTATION_BY_SITE ? "call site" : "thread",
                 (unsigned long long)key);
    }
}

static int by_waste(const void *a, const void *b)
{
    const struct fragmentation_group *x = a, *y = b;
    return x->stranded_bytes < y->stranded_bytes ? 1 : x->stranded_bytes > y->stranded_bytes ? -1 : 0;
}

// The groups that hold most.
static void print_groups(const struct replay_session *s, const struct fragmentation_groups *all,
                         enum fragmentation_by way)
{
    enum { TOP = 4 };
    struct fragmentation_group top[TOP + 1];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        top[n] = all->groups[i];
        n += top[n].stranded_bytes > 0;
        qsort(top, n, sizeof *top, by_waste);
        n -= n > TOP;
    }
    for (size_t i = 0; i < n; i++) {
        char name[FUNCTION_BYTES], t[4][32];
        label(s, name, way, top[i].key);
        printf("%12s %12s %14s %14s  %s\n", human_bytes(t[2], top[i].stranded_bytes),
               human_bytes(t[1], top[i].live_bytes), human_count(t[0], top[i].blocks),
               human_count(t[3], top[i].sparse_pages), name);
    }
}

static void print_point(const struct replay_session *s, const char *when, const struct fragmentation *h)
{
    char t[5][32];
    printf("\nfragmentation %s, after %s calls: %s live in %s pages, of which %s are sparse with %s stranded\n", when,
           human_count(t[0], h->event), human_bytes(t[1], h->live_bytes), human_count(t[2], h->pages),
           human_count(t[3], h->sparse_pages), human_bytes(t[4], h->stranded_bytes));
    if (!h->stranded_bytes)
        return;
    printf("%12s %12s %14s %14s  %s\n", "stranded", "live", "blocks", "sparse pages", "pinning blocks");
    for (unsigned way = 0; way < FRAGMENTATION_GROUPINGS; way++) {
        if (way != FRAGMENTATION_BY_SITE || has_sites(&h->by[way]))
            print_groups(s, &h->by[way], way);
    }
}

void replay_print_fragmentation_text(const struct replay_session *s, const struct replay_figures *f)
{
    if (!s->fragmentation)
        return;
    print_point(s, "at the peak of live bytes", &f->fragmentation[PLAN_SNAPSHOT_PEAK]);
    print_point(s, "at the end", &f->fragmentation[PLAN_SNAPSHOT_END]);
}
