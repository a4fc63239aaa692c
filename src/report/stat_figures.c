#include "report/stat_figures.h"

#include "analysis/size_classes.h"

#include <math.h>
#include <stdio.h>

const struct stat_figures_info stat_figures_infos[STAT_FIGURES] = {
#define DIFF STAT_FIGURES_IN_DIFF
#define PAGE STAT_FIGURES_IN_PAGE
#define HT_X(name, key, unit, form, group, shown, when, better, label, text, ...)                  \
    {key,   FIGURE_##unit,      STAT_FIGURES_##form, STAT_FIGURES_##group,                         \
     shown, STAT_FIGURE_##when, FIGURE_##better,     label,                                        \
     text},
    STAT_FIGURES_TABLE(HT_X)
#undef HT_X
#undef DIFF
#undef PAGE
};

static const char *const objects[] = {
#define HT_X(group, object) object,
    STAT_FIGURES_GROUPS(HT_X)
#undef HT_X
};

static bool is_integer(unsigned figure)
{
    enum stat_figures_form form = stat_figures_infos[figure].form;
    return form == STAT_FIGURES_INTEGER || form == STAT_FIGURES_OPTIONAL;
}

// Sums over the calls that requested a size and succeeded.
struct requests {
    uint64_t n, bytes, min_bytes, max_bytes;
};

static struct requests sum_requests(const struct usage_sums *s)
{
    struct requests r = {0};
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct usage_kind *k = &s->kinds[kind];
        if (k->sized && (!r.n || k->min_bytes < r.min_bytes))
            r.min_bytes = k->min_bytes;
        if (k->max_bytes > r.max_bytes)
            r.max_bytes = k->max_bytes;
        r.n += k->sized;
        r.bytes += k->bytes;
    }
    return r;
}

static struct usage_count sum_never_freed(const struct usage_sums *s)
{
    struct usage_count sum = {0};
    for (unsigned span = 0; span < USAGE_SPANS; span++) {
        sum.blocks += s->never_freed_ages[span].blocks;
        sum.bytes += s->never_freed_ages[span].bytes;
    }
    return sum;
}

typedef void compute_classes(const struct usage_sums *s, struct size_classes *c);

static uint64_t fragmentation(const struct usage_sums *s, compute_classes *compute)
{
    struct size_classes c;
    compute(s, &c);
    return c.internal_fragmentation_bytes;
}

static uint64_t count_used(const struct by_site *b)
{
    uint64_t n = 0;
    for (size_t i = 1; i < b->n_sites; i++)
        n += b->sites[i].calls || b->sites[i].peak_blocks || b->sites[i].live_blocks;
    return n;
}

static double known(uint64_t value)
{
    return value ? (double)value : NAN;
}

void stat_figures_init(union stat_figures *f)
{
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        if (is_integer(i))
            f->integers[i] = STAT_FIGURES_UNKNOWN;
        else
            f->numbers[i] = NAN;
    }
}

void stat_figures_of(union stat_figures *f, const struct workload_summary *total,
                     const struct file_stat *file)
{
    static const struct file_stat_process none;
    const struct usage_sums *sums = file ? file->sums : NULL;
    const struct usage *usage = sums ? &file->usage : NULL;
    const struct big_blocks_use *big = sums ? &file->big : NULL;
    const struct by_site *sites = file && file->symbols ? &file->by_site : NULL;
    const struct file_stat_process *process = !sums               ? NULL
                                              : file->n_processes ? &file->processes[file->of_usage]
                                                                  : &none;
    const struct file_stat *aggregate = file && file->kind == FILE_STAT_AGGREGATE ? file : NULL;
    const struct trace_unrecorded *unrecorded =
        file && file->kind != FILE_STAT_WORKLOAD ? &file->unrecorded : NULL;
    uint64_t lost_elsewhere = file ? file->unrecorded.balance.lost_elsewhere : 0;
    struct requests requests = sums ? sum_requests(sums) : (struct requests){0};
    uint64_t glibc_bytes = sums ? fragmentation(sums, size_classes_glibc) : 0;
    uint64_t four_bytes = sums ? fragmentation(sums, size_classes_four) : 0;
    struct usage_count never_freed = sums ? sum_never_freed(sums) : (struct usage_count){0};
#define HT_X(name, key, unit, form, group, shown, when, better, label, text, source, value, ...)   \
    if (source)                                                                                    \
        f->name = value;
    stat_figures_init(f);
    STAT_FIGURES_TABLE(HT_X)
#undef HT_X
}

void stat_figures_of_file(union stat_figures *f, const struct file_stat *s)
{
    stat_figures_of(f, &s->total, s);
}

void stat_figures_of_json(union stat_figures *f, const struct json_value *stat)
{
    char path[STAT_FIGURES_PATH_BYTES];
    stat_figures_init(f);
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        const struct json_value *v = json_value_find(stat, stat_figures_path(i, path));
        if (!is_integer(i))
            f->numbers[i] = json_value_number(v);
        else if (json_value_kind(v) == JSON_VALUE_INTEGER)
            f->integers[i] = json_value_u64(v);
        else if (json_value_number(v) >= 0 && json_value_number(v) < 0x1p64)
            f->integers[i] = (uint64_t)json_value_number(v);
    }
}

double stat_figures_value(const union stat_figures *f, unsigned figure)
{
    if (!is_integer(figure))
        return f->numbers[figure];
    return f->integers[figure] == STAT_FIGURES_UNKNOWN ? NAN : (double)f->integers[figure];
}

void stat_figures_put(struct json *j, const union stat_figures *f, enum stat_figures_group group)
{
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        const struct stat_figures_info *info = &stat_figures_infos[i];
        if (info->group != group)
            continue;
        if (!is_integer(i))
            json_put_double(j, info->key, f->numbers[i]);
        else if (info->form == STAT_FIGURES_INTEGER || f->integers[i] != STAT_FIGURES_UNKNOWN)
            json_put_u64(j, info->key, f->integers[i]);
    }
}

char *stat_figures_path(unsigned figure, char path[STAT_FIGURES_PATH_BYTES])
{
    const struct stat_figures_info *info = &stat_figures_infos[figure];
    snprintf(path, STAT_FIGURES_PATH_BYTES, "%s%s", objects[info->group], info->key);
    return path;
}
