#include "report/stat_figures.h"

#include "analysis/size_classes.h"

#include <math.h>
#include <stdio.h>

const struct stat_figures_info stat_figures_infos[STAT_FIGURES] = {
#define DIFF STAT_FIGURES_IN_DIFF
#define PAGE STAT_FIGURES_IN_PAGE
#define HT_X(name, key, unit, form, group, shown, when, better, label, text, meaning)              \
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

static void set_unknown(union stat_figures *f)
{
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        if (is_integer(i))
            f->integers[i] = STAT_FIGURES_UNKNOWN;
        else
            f->numbers[i] = NAN;
    }
}

static void set_summary(union stat_figures *f, const struct workload_summary *s)
{
    f->events = s->events;
    f->threads = s->threads;
    f->cpu_ns = s->cpu_ns ? (double)s->cpu_ns : NAN;
    f->recording_cpu_ns = s->cpu_ns ? (double)s->recording_ns : NAN;
    f->calls_min_cpu_ns = s->calls_max_ns ? (double)s->calls_min_ns : NAN;
    f->calls_max_cpu_ns = s->calls_max_ns ? (double)s->calls_max_ns : NAN;
    f->requested_bytes = s->requested_bytes;
    f->usable_bytes = s->usable_bytes ? s->usable_bytes : STAT_FIGURES_UNKNOWN;
    f->usable_requested_bytes = s->usable_bytes ? s->usable_requested_bytes : STAT_FIGURES_UNKNOWN;
    f->peak_live_bytes = s->peak_live_bytes;
    f->preexisting_bytes = s->preexisting_bytes;
    f->preexisting_blocks = s->preexisting_blocks;
    f->live_at_end_bytes = s->live_at_end_bytes;
    f->live_at_end_blocks = s->live_at_end_blocks;
    f->remote_frees = s->remote_frees;
    f->dependencies = s->dependencies;
    f->dependencies_needed = s->dependencies_needed;
    f->slots = s->slots;
    f->order_repaired = s->order_repaired;
    f->order_ambiguous = s->order_ambiguous;
    f->unmatched_frees = s->unmatched_frees;
    f->lost_records = s->lost_records;
}

static void set_requests(union stat_figures *f, const struct usage_sums *s)
{
    f->sized_requests = f->request_bytes = f->request_min_bytes = f->request_max_bytes = 0;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct usage_kind *k = &s->kinds[kind];
        if (k->sized && (!f->sized_requests || k->min_bytes < f->request_min_bytes))
            f->request_min_bytes = k->min_bytes;
        if (k->max_bytes > f->request_max_bytes)
            f->request_max_bytes = k->max_bytes;
        f->sized_requests += k->sized;
        f->request_bytes += k->bytes;
    }
    if (f->sized_requests)
        f->request_mean_bytes = (double)f->request_bytes / (double)f->sized_requests;
}

static void set_resizes(union stat_figures *f, const struct usage_resizes *r)
{
    f->realloc_from_null = r->from_null;
    f->realloc_to_zero = r->freed;
    f->realloc_failed = r->failed;
    f->realloc_same_size = r->same;
    f->grown_in_place_calls = r->grown_in_place.blocks;
    f->grown_in_place_bytes = r->grown_in_place.bytes;
    f->grown_moved_calls = r->grown_moved.blocks;
    f->grown_moved_bytes = r->grown_moved.bytes;
    f->shrunk_in_place_calls = r->shrunk_in_place.blocks;
    f->shrunk_in_place_bytes = r->shrunk_in_place.bytes;
    f->shrunk_moved_calls = r->shrunk_moved.blocks;
    f->shrunk_moved_bytes = r->shrunk_moved.bytes;
}

static void set_sums(union stat_figures *f, const struct usage_sums *s)
{
    struct size_classes c;
    set_requests(f, s);
    set_resizes(f, &s->resizes);
    f->null_frees = s->null_frees;
    f->calloc_calls = s->kinds[HT_CALLOC].calls;
    f->calloc_zeroed_bytes = s->kinds[HT_CALLOC].bytes;
    f->calloc_max_elements = s->calloc_elements_max;
    f->never_freed_blocks = f->never_freed_bytes = 0;
    for (unsigned span = 0; span < USAGE_SPANS; span++) {
        f->never_freed_blocks += s->never_freed_ages[span].blocks;
        f->never_freed_bytes += s->never_freed_ages[span].bytes;
    }
    size_classes_glibc(s, &c);
    f->glibc_fragmentation_bytes = c.internal_fragmentation_bytes;
    size_classes_four(s, &c);
    f->four_fragmentation_bytes = c.internal_fragmentation_bytes;
    f->alignment_padding_bytes = s->align_padding_bytes;
    f->exact_up_to_bytes = USAGE_EXACT;
    f->missed_count_max = s->frequent.missed;
}

static void set_peak(union stat_figures *f, const struct file_stat *s)
{
    const struct usage *u = &s->usage;
    const struct workload_summary *p = s->n_processes ? &s->processes[s->of_usage].summary : NULL;
    uint64_t recording = p ? p->recording_rss_bytes : 0, rss = p ? p->peak_rss_bytes : 0;
    f->peak_pid = s->n_processes ? s->processes[s->of_usage].pid : 0;
    f->peak_rss_bytes = rss ? (double)rss : NAN;
    f->recording_rss_bytes = recording ? (double)recording : NAN;
    f->peak_event = u->peak.event;
    if (u->ns_per_stamp > 0)
        f->peak_ns = round((double)u->peak.stamp * u->ns_per_stamp);
    f->peak_bytes = u->peak.bytes;
    f->peak_live_blocks = u->peak.blocks;
    f->peak_blocks = u->max_blocks;
}

static void set_sites(union stat_figures *f, const struct by_site *b)
{
    f->used_sites = 0;
    for (size_t i = 1; i < b->n_sites; i++)
        f->used_sites += b->sites[i].calls || b->sites[i].peak_blocks || b->sites[i].live_blocks;
    f->sites_peak_live_bytes = b->peak_bytes;
    f->sites_live_at_end_bytes = b->live_bytes;
}

void stat_figures_of_file(union stat_figures *f, const struct file_stat *s)
{
    set_unknown(f);
    set_summary(f, &s->total);
    f->duration_ns = s->duration_ns;
    f->file_bytes = s->file_bytes;
    f->bytes_per_event = s->total.events ? (double)s->file_bytes / (double)s->total.events : 0;
    if (s->kind == FILE_STAT_AGGREGATE)
        f->other_processes = s->others;
    if (s->kind != FILE_STAT_WORKLOAD)
        f->unrecorded_processes = s->unrecorded.processes;
    f->lost_records += s->unrecorded.balance.lost_elsewhere;
    if (s->sums) {
        set_sums(f, s->sums);
        set_peak(f, s);
        f->big_block_bytes = s->big.bytes;
        f->big_block_measured_bytes = s->big.measured;
        f->big_block_unused_bytes = s->big.unused;
    }
    if (s->symbols)
        set_sites(f, &s->by_site);
}

void stat_figures_of_summary(union stat_figures *f, const struct workload_summary *s)
{
    set_unknown(f);
    set_summary(f, s);
}

void stat_figures_of_json(union stat_figures *f, const struct json_value *stat)
{
    char path[STAT_FIGURES_PATH_BYTES];
    set_unknown(f);
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
