#include "report/top/follow.h"

#include "base/buf.h"
#include "record/aggregate/stat.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static void set_row(struct live_row *r, const struct by_site_totals *t)
{
    r->now[LIVE_BYTES] = (double)t->live_bytes;
    r->now[LIVE_BLOCKS] = (double)t->live_blocks;
    r->now[LIVE_ALLOCS] = (double)t->calls;
    r->now[LIVE_ALLOCATED] = (double)t->bytes;
    r->now[LIVE_FREES] = (double)t->freed_blocks;
}

static void set_total(struct live *l, const struct workload_summary *s)
{
    uint64_t calls[HT_CLASS_RESIZE + 1] = {0};
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].class <= HT_CLASS_RESIZE)
            calls[event_infos[kind].class] += s->by_kind[kind];
    }
    l->total.now[LIVE_BYTES] = (double)s->live_at_end_bytes;
    l->total.now[LIVE_BLOCKS] = (double)s->live_at_end_blocks;
    l->total.now[LIVE_ALLOCS] = (double)(calls[HT_CLASS_ALLOC] + calls[HT_CLASS_RESIZE]);
    l->total.now[LIVE_ALLOCATED] = (double)s->requested_bytes;
    l->total.now[LIVE_FREES] = (double)calls[HT_CLASS_FREE];
    l->peak_bytes = (double)s->peak_live_bytes;
}

// Moves the call sites to *l. *l must belong to the process for which the file contains call sites.
static int move_sites(struct live *l, struct file_stat *s)
{
    struct live_rows *rows = &l->rows[LIVE_SITES];
    if (HT_EXTEND(&rows->items, &rows->n, &rows->capacity, s->by_site.n_sites) < 0 ||
        HT_EXTEND(&l->names, &l->n_names, &l->names_capacity, s->by_site.n_sites) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < rows->n; i++)
        set_row(&rows->items[i], &s->by_site.sites[i]);
    symbols_free(s->symbols);
    s->symbols = NULL;
    l->sites.all = s->sites;
    s->sites = (struct workload_sites){0};
    return 0;
}

// Sets the values at the last cut to the values of the previous reading. Sites keep their numbers.
static void set_cuts(struct live *l, const struct live *before)
{
    struct live_rows *rows = &l->rows[LIVE_SITES];
    const struct live_rows *old = &before->rows[LIVE_SITES];
    memcpy(l->total.cut, before->total.now, sizeof l->total.cut);
    for (size_t i = 0; i < rows->n && i < old->n; i++)
        memcpy(rows->items[i].cut, old->items[i].now, sizeof rows->items[i].cut);
}

static struct live *live_of(const struct follow *f, const struct trace_process *p)
{
    for (size_t i = 0; i < f->n_lives; i++) {
        const struct trace_process *of = f->lives[i]->process;
        if (of->number == p->number && of->pid == p->pid)
            return f->lives[i];
    }
    return NULL;
}

static void release_lives(struct live **lives, size_t n)
{
    for (size_t i = 0; i < n; i++)
        live_free(lives[i]);
    free(lives);
}

// Creates a struct live for each process in `counts`. If a struct live has a predecessor, the
// predecessor's last values become its values at the last cut. Returns NULL when out of memory.
static struct live **make_lives(const struct follow *f, struct file_stat *counts, double seconds)
{
    struct live **lives = calloc(counts->n_processes + 1, sizeof(struct live *));
    for (size_t i = 0; lives && i < counts->n_processes; i++) {
        const struct trace_process *p = &counts->processes[i].facts;
        struct live *l = lives[i] = live_new(&counts->session, p);
        if (!l || (i == counts->of_usage && move_sites(l, counts) < 0)) {
            release_lives(lives, i + 1);
            return NULL;
        }
        set_total(l, &counts->processes[i].summary);
        const struct live *before = live_of(f, p);
        if (before)
            set_cuts(l, before);
        live_cut(l, seconds, f->n_lives == 0);
    }
    return lives;
}

static int replace_lives(struct follow *f, struct file_stat *counts)
{
    uint64_t since_ns = counts->duration_ns > f->counts.duration_ns
                            ? counts->duration_ns - f->counts.duration_ns
                            : 0;
    struct live **lives = make_lives(f, counts, (double)since_ns / 1e9);
    if (!lives)
        return -ENOMEM;
    f->interval_s = f->n_lives ? (double)since_ns / 1e9 : 0;
    release_lives(f->lives, f->n_lives);
    file_stat_release(&f->counts);
    f->counts = *counts;
    *counts = (struct file_stat){0};
    f->lives = lives;
    f->n_lives = f->counts.n_processes;
    for (size_t i = 0; i < f->n_lives; i++)
        lives[i]->process = &f->counts.processes[i].facts;
    f->state = f->counts.under_way     ? FOLLOW_WAITING
               : f->counts.cut.text[0] ? FOLLOW_CUT_OFF
                                       : FOLLOW_ENDED;
    return 0;
}

int follow_read_aggregate(struct follow *f, struct err *e)
{
    struct file_stat counts;
    struct stat st;
    if (stat(f->path, &st) < 0)
        return err_set_errno(e, "%s", f->path);
    uint64_t ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
    if (f->n_lives && st.st_ino == f->read_ino && ns == f->read_ns)
        return 0;
    f->read_ino = st.st_ino;
    f->read_ns = ns;
    int rc = aggregate_file_stat(&counts, f->path,
                                 &(struct file_stat_settings){.part = FILE_STAT_SITES}, e);
    if (rc == 0 && counts.kind != FILE_STAT_AGGREGATE)
        rc = err_set(e, -EPROTO, "%s: is no longer an aggregate", f->path);
    else if (rc == 0 && replace_lives(f, &counts) < 0)
        rc = err_no_memory(e, f->path);
    else
        return rc;
    file_stat_release(&counts);
    return rc;
}
