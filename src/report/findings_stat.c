#include "report/findings_stat.h"

#include "analysis/size_classes.h"
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNEXPLAINED_SHARE 0.1 // share of the bytes in use in malloc

static void set_frame(struct findings_stat_site *s, const struct symbol *f)
{
    enum { NAME_BYTES = 80 };
    char name[SHORTEN_BYTES];
    const char *file = basename(f->file), *module = basename(f->module);
    int n = snprintf(s->frame, sizeof s->frame, "%s",
                     f->function[0] ? shorten_name(f->function, NAME_BYTES, name)
                                    : "an unknown function");
    if (file[0])
        snprintf(s->frame + n, sizeof s->frame - (size_t)n, " (%.60s:%d)", file, f->line);
    else if (module[0])
        snprintf(s->frame + n, sizeof s->frame - (size_t)n, " (%.60s)", module);
    snprintf(s->function, sizeof s->function, "%s",
             shorten_name(f->function, sizeof s->function - 1, name));
    s->has_frame = true;
}

// Counts the process if `text` is not NULL.
static void count_process(struct findings_stat_process *p, uint64_t pid, const char *exe,
                          const char *text)
{
    if (!text)
        return;
    if (p->n++ == 0)
        *p = (struct findings_stat_process){1, pid, exe, text};
}

// Finds the unexplained bytes of the process. In glibc's malloc, a block occupies up to 16 bytes
// more than its requested size.
static void find_unexplained(struct findings_stat *f, uint64_t pid, const char *exe,
                             double in_use_bytes, double live_bytes, double live_blocks)
{
    enum { EXTRA_BYTES = 16 };
    double missing = in_use_bytes - live_bytes - EXTRA_BYTES * live_blocks;
    if (!(missing > UNEXPLAINED_SHARE * in_use_bytes) || !(missing > f->unexplained_bytes))
        return;
    f->unexplained = (struct findings_stat_process){1, pid, exe, NULL};
    f->unexplained_bytes = missing;
    f->in_use_bytes = in_use_bytes;
}

static void set_site(struct findings_stat_site *to, const struct file_stat *s, uint32_t number)
{
    const struct by_site *b = &s->by_site;
    const struct site_use *u = number < b->uses.n_sites ? &b->uses.sites[number] : NULL;
    struct symbol shown;
    to->has_frame = false;
    to->allocs = (double)b->sites[number].calls;
    to->peak_bytes = (double)b->sites[number].peak_bytes;
#define HT_X(key, member) to->key = u ? (double)u->member : NAN;
    SITES_JSON_USES(HT_X)
#undef HT_X
    if (stack_site(s->symbols, &s->sites, number, &shown))
        set_frame(to, &shown);
}

static void set_sites(struct findings_stat *f, const struct file_stat *s)
{
    uint32_t top[SITES_JSON_TOP];
    for (enum sites_json_list list = 0; s->symbols && list < SITES_JSON_LIST_COUNT; list++) {
        size_t n = sites_json_list(&s->by_site, list, top);
        if (n)
            set_site(&f->first[list], s, top[0]);
    }
}

static void set_sizes(struct findings_stat *f, const struct file_stat *s)
{
    struct usage_count counts[USAGE_CLASSES];
    size_classes_two(s->sums, counts);
    f->n_sizes = USAGE_CLASSES;
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        f->sizes[i] =
            (struct findings_stat_size){i == USAGE_CLASSES - 1 ? NAN : (double)(8ull << i),
                                        (double)counts[i].blocks, (double)counts[i].bytes};
    }
}

static void set_usage(struct findings_stat *f, const struct file_stat *s)
{
    const struct timeline *t = &s->usage.by_event;
    set_sizes(f, s);
    if (t->n)
        f->last_event = (double)t->bins[t->n - 1].end_event;
    for (unsigned span = 0; span < USAGE_SPANS; span++)
        f->freed_blocks += (double)usage_freed_after(s->sums, span);
    for (unsigned i = 0; i < FINDINGS_STAT_GROWTHS; i++)
        f->growths[i] = (double)s->sums->resizes.growths[i];
}

static void set_process(struct findings_stat *f, const struct file_stat_process *p)
{
    const struct trace_process *facts = &p->facts;
    count_process(&f->turned_off, p->pid, p->exe, facts->off_reason);
    count_process(&f->own_malloc, p->pid, p->exe, facts->bypassed_by);
    count_process(&f->deepbound, p->pid, p->exe, facts->deepbound_bytes ? facts->deepbound : NULL);
    if (facts->malloc_system_bytes)
        find_unexplained(f, p->pid, p->exe, (double)facts->malloc_in_use_bytes,
                         (double)p->summary.live_at_end_bytes,
                         (double)p->summary.live_at_end_blocks);
}

static void set_coverage(struct findings_stat *f, const struct coverage *c)
{
    if (!c->known)
        return;
    f->covered_bytes = (double)c->all.allocated;
    for (size_t i = 0; i < c->n_objects && i < SITES_JSON_TOP; i++)
        f->short_stack_bytes += (double)c->objects[i].bytes.allocated;
    f->short_stack_object = c->n_objects ? c->objects[0].path : NULL;
    for (unsigned i = 0; i < COVERAGE_RUNTIMES; i++) {
        f->interpreted_bytes[i] = (double)c->interpreted[i].allocated;
        f->named_bytes[i] = (double)c->interpreted[i].named;
    }
}

void findings_stat_init(struct findings_stat *f)
{
    *f = (struct findings_stat){.last_event = 0, .covered_bytes = NAN};
    stat_figures_init(&f->figures);
    for (unsigned i = 0; i < FINDINGS_STAT_GROWTHS; i++)
        f->growths[i] = NAN;
}

void findings_stat_of_file(struct findings_stat *f, const struct file_stat *s)
{
    findings_stat_init(f);
    stat_figures_of_file(&f->figures, s);
    f->partial = s->partial;
    f->cut_off = s->cut.text[0];
    f->n_processes = s->n_processes;
    for (size_t i = 0; s->kind != FILE_STAT_WORKLOAD && i < s->n_processes; i++)
        set_process(f, &s->processes[i]);
    if (s->kind != FILE_STAT_WORKLOAD && s->unrecorded.n) {
        const struct trace_missed *m = &s->unrecorded.items[0];
        f->unrecorded = (struct findings_stat_process){s->unrecorded.n, m->pid, m->name, m->why};
    }
    if (s->kind != FILE_STAT_WORKLOAD)
        f->balance = s->unrecorded.balance;
    if (s->sums)
        set_usage(f, s);
    set_sites(f, s);
    set_coverage(f, &s->coverage);
}
