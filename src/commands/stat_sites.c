#include "commands/stat_sites.h"

#include "base/json.h"
#include "base/progress.h"
#include "cli/command.h"
#include "convert/convert.h"
#include "report/sites_json.h"
#include "workload/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct stat_sites_options *options;
    struct by_site totals;
    struct workload_sites own;          // of a trace
    const struct workload_sites *sites; // those, or the workload's
    struct symbols *symbols;
    uint32_t process;
    uint64_t duration_ns;
    uint32_t *order; // site numbers, the heaviest first
    size_t n;
    const struct input *in;
    struct progress progress;
};

static int count_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct job *j = context;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = by_site_op(&j->totals, &ops[i].op);
    return rc;
}

// The order's sites go away with it.
static int take_sites(void *context, const struct order_counts *counts, const struct workload_sites *sites)
{
    struct job *j = context;
    (void)counts;
    j->sites = &j->own;
    return workload_sites_copy_all(&j->own, sites);
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct job *j = context;
    *sink = (struct convert_sink){.ops = {.context = j, .ops = count_ops}, .done = take_sites};
    return p->number == j->process;
}

static void show_progress(void *context, uint64_t bytes)
{
    struct job *j = context;
    progress_update(&j->progress, bytes);
}

static int read_trace(struct job *j, struct trace_file *t, struct err *e)
{
    struct convert_result result;
    struct convert_options how = {.choose = choose, .progress = show_progress, .context = j};
    size_t of;
    int rc = trace_file_choose(t, 0, &j->process, &of, e);
    if (rc == 0)
        rc = convert_run(&t->reader, &how, &result, e);
    if (rc < 0)
        return rc;
    const struct trace_process *p = t->reader.processes[j->process];
    if (of > 1)
        note("process %u of %zu, %s", p->pid, of, p->argv_bytes ? p->argv : "");
    j->duration_ns = trace_stamp_ns(&t->reader.session, result.end_stamp);
    return 0;
}

static int read_workload(struct job *j, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *op;
    const struct workload_header *h = workload_reader_header(r);
    uint64_t last = h->start_stamp;
    int rc;
    for (uint64_t n = 0; (rc = workload_next_op(r, &thread, &op, e)) > 0; n++) {
        if (by_site_op(&j->totals, op) < 0)
            return err_set(e, -ENOMEM, "%s: out of memory", j->in->name);
        last = op->stamp;
        if (n % 65536 == 0)
            show_progress(j, j->in->offset);
    }
    j->sites = workload_reader_sites(r);
    if (h->has_stamps && last > h->start_stamp)
        j->duration_ns = clock_to_ns((last - h->start_stamp) << h->stamp_shift, h->clock_hz);
    return rc;
}

static int by_weight(const void *a, const void *b, void *context)
{
    const struct job *j = context;
    const struct by_site_totals *t = j->totals.sites;
    uint64_t x = profile_weigh(&t[*(const uint32_t *)a], j->options->weight);
    uint64_t y = profile_weigh(&t[*(const uint32_t *)b], j->options->weight);
    return x != y ? (x < y ? 1 : -1) : *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static int sort_sites(struct job *j)
{
    j->order = calloc(j->totals.n_sites + 1, sizeof *j->order);
    if (!j->order)
        return -ENOMEM;
    for (size_t i = 0; i < j->totals.n_sites; i++) {
        const struct by_site_totals *t = &j->totals.sites[i];
        if (t->calls || t->peak_blocks || t->live_blocks)
            j->order[j->n++] = (uint32_t)i;
    }
    qsort_r(j->order, j->n, sizeof *j->order, by_weight, j);
    return 0;
}

// Names of C++ templates go on for pages; the profiles have them whole.
static void print_frame(const struct symbol *s, bool first)
{
    enum { NAME_BYTES = 100 };
    size_t n = strlen(s->function);
    printf(first ? "%*s%.*s%s" : "\n%*s%.*s%s", first ? 2 : 52, "", NAME_BYTES, s->function,
           n > NAME_BYTES ? "..." : "");
    if (s->file[0])
        printf(" (%s:%d)", strrchr(s->file, '/') ? strrchr(s->file, '/') + 1 : s->file, s->line);
    else if (s->module[0])
        printf(" (%s)", strrchr(s->module, '/') ? strrchr(s->module, '/') + 1 : s->module);
}

static void print_site(const struct job *j, uint32_t number)
{
    char peak[32], end[32], bytes[32], calls[32];
    const struct by_site_totals *t = &j->totals.sites[number];
    const struct workload_site *site = site_frames(j->sites, number);
    bool first = true;
    printf("%12s%12s%12s%14s", human_bytes(peak, t->peak_bytes), human_bytes(end, t->live_bytes),
           human_bytes(bytes, t->bytes), human_count(calls, t->calls));
    for (uint32_t i = 0; i < site->n; i++) {
        const struct symbol *found = NULL;
        size_t n = symbols_of(j->symbols, &j->sites->frames[site->first + i], &found);
        for (size_t k = 0; k < n; k++, first = false)
            print_frame(&found[k], first);
    }
    puts(site->n ? "" : "  (unknown)");
}

static void print_text(const struct job *j)
{
    size_t n = j->options->top && j->options->top < j->n ? (size_t)j->options->top : j->n;
    printf("%12s%12s%12s%14s  %s\n", "live at peak", "live at end", "allocated", "allocations", "call site");
    for (size_t i = 0; i < n; i++)
        print_site(j, j->order[i]);
    if (n < j->n)
        printf("... %zu more call sites (--top 0 prints all)\n", j->n - n);
}

static void print_json(const struct job *j)
{
    struct json js = {.to = stdout};
    struct named_sites named = {&j->totals, j->sites, j->symbols};
    json_begin_object(&js);
    json_put_u64(&js, "schema_version", 2);
    json_put_u64(&js, "peak_live_bytes", j->totals.peak_bytes);
    json_key(&js, "sites");
    json_begin_array(&js);
    for (size_t i = 0; i < j->n; i++)
        print_site_json(&js, &named, j->order[i], false);
    json_end_array(&js);
    json_end_object(&js);
}

static int print_profile(const struct job *j)
{
    struct buf b = {0};
    int rc = j->options->format == STAT_SITES_FOLDED
                 ? profile_folded(&b, &j->totals, j->sites, j->symbols, j->options->weight)
                 : profile_pprof(&b, &j->totals, j->sites, j->symbols, j->duration_ns);
    if (rc == 0 && b.size)
        fwrite(b.data, 1, b.size, stdout);
    buf_release(&b);
    return rc;
}

static int print(struct job *j)
{
    const char *path = NULL;
    int rc = sort_sites(j);
    j->symbols = symbols_new(j->sites);
    if (rc < 0 || !j->symbols)
        return -ENOMEM;
    if (j->options->format == STAT_SITES_TEXT)
        print_text(j);
    else if (j->options->format == STAT_SITES_JSON)
        print_json(j);
    else
        rc = print_profile(j);
    uint64_t missing = symbols_missing(j->symbols, &path);
    if (path)
        note("%" PRIu64 " addresses could not be resolved: %s, and perhaps others, is not the file that was recorded",
             missing, path);
    return rc;
}

int stat_sites(const char *path, const struct stat_sites_options *o, struct err *e)
{
    struct job j = {.options = o};
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0) {
        j.in = file_input(&f);
        progress_init(&j.progress, "stat", "B", j.in->size_bytes, cli_common.quiet);
        rc = f.kind == FILE_TRACE ? read_trace(&j, &f.trace, e) : read_workload(&j, f.workload.reader, e);
        progress_clear(&j.progress);
    }
    if (rc == 0 && j.sites->n_sites == 0)
        rc = err_set(e, -ENODATA, "%s: no call sites were recorded (use 'heaptape record --stacks')", path);
    by_site_finish(&j.totals);
    if (rc == 0 && (rc = print(&j)) < 0)
        err_set(e, rc, "%s: out of memory", path);
    symbols_free(j.symbols);
    free(j.order);
    by_site_release(&j.totals);
    workload_sites_release(&j.own);
    file_close(&f);
    return rc;
}
