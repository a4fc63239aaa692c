// Information about processes, threads and call sites.
#include "analysis/symbols/stack.h"
#include "tables/library/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct library_process *get_process(struct library_facts *f, uint32_t number)
{
    // Processes usually arrive in order.
    if (number < f->n && f->processes[number]->of.process == number)
        return f->processes[number];
    for (size_t i = f->n; i-- > 0;) {
        if (f->processes[i]->of.process == number)
            return f->processes[i];
    }
    return NULL;
}

static struct library_process *add_process(struct library_facts *f, uint32_t number)
{
    struct library_process *p = get_process(f, number);
    if (p)
        return p;
    p = HT_GROW(&f->processes, &f->capacity, f->n + 1) < 0 ? NULL : calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->of.process = number;
    return f->processes[f->n++] = p;
}

// Runs in the scanning thread, which owns the facts until it emits rows of processes.
static int put_facts(void *context, const struct tables_facts *facts)
{
    struct library_process *p = add_process(context, facts->process);
    if (!p || workload_sites_copy_all(&p->sites, facts->sites) < 0)
        return -ENOMEM;
    p->of.sites = (uint32_t)p->sites.n_sites;
    if (!facts->tids)
        return 0;
    p->threads = calloc(facts->threads + 1, sizeof *p->threads);
    if (!p->threads)
        return -ENOMEM;
    p->n_threads = facts->threads;
    for (uint32_t i = 0; i < p->n_threads; i++)
        p->threads[i] = (heaptape_thread){.thread = i, .tid = facts->tids[i]};
    return 0;
}

void library_facts_scan(struct tables_scan *scan, struct library_facts *to)
{
    scan->facts = put_facts;
    scan->context = to;
    scan->of[TABLES_TABLE_PROCESSES] =
        (struct tables_wanted){.rows = true, .columns = (1u << TABLES_PROCESS_COLUMNS) - 1};
}

static uint64_t get_number(const struct tables_row *row, unsigned column)
{
    return row->present >> column & 1 ? (uint64_t)row->values[column].integer : HEAPTAPE_NONE64;
}

// Returns a copy of the text, or NULL if the column is NULL. Sets *rc when out of memory.
static const char *copy_text(const struct tables_row *row, unsigned column, int *rc)
{
    if (!(row->present >> column & 1))
        return NULL;
    char *copy = strdup(row->values[column].text);
    *rc = copy ? *rc : -ENOMEM;
    return copy;
}

int library_facts_row(struct library_facts *f, const struct tables_row *row)
{
    struct library_process *p = add_process(f, (uint32_t)get_number(row, TABLES_PROCESS_PROCESS));
    int rc = 0;
    if (!p)
        return -ENOMEM;
    if (p->has_row)
        return 0;
    p->has_row = true;
    p->of.pid = (uint32_t)get_number(row, TABLES_PROCESS_PID);
    p->of.parent_pid = get_number(row, TABLES_PROCESS_PARENT_PID);
    p->of.forked_from = get_number(row, TABLES_PROCESS_FORKED_FROM);
    p->of.exe = copy_text(row, TABLES_PROCESS_EXE, &rc);
    p->of.command = copy_text(row, TABLES_PROCESS_COMMAND, &rc);
    p->of.allocator = copy_text(row, TABLES_PROCESS_ALLOCATOR, &rc);
    p->of.start_time_ns = get_number(row, TABLES_PROCESS_START_TIME);
    p->of.end_time_ns = get_number(row, TABLES_PROCESS_END_TIME);
    p->of.exit_status = get_number(row, TABLES_PROCESS_EXIT_STATUS);
    p->of.events = get_number(row, TABLES_PROCESS_EVENTS);
    p->of.threads = get_number(row, TABLES_PROCESS_THREADS);
    p->of.lost_records = get_number(row, TABLES_PROCESS_LOST);
    p->of.early_events = get_number(row, TABLES_PROCESS_EARLY_EVENTS);
    p->of.early_max_ns = get_number(row, TABLES_PROCESS_EARLY_MAX);
    p->of.early_usual_ns = get_number(row, TABLES_PROCESS_EARLY_USUAL);
    return rc;
}

void library_facts_release(struct library_facts *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct library_process *p = f->processes[i];
        symbols_free(p->symbols);
        workload_sites_release(&p->sites);
        free((char *)p->of.exe);
        free((char *)p->of.command);
        free((char *)p->of.allocator);
        free(p->threads);
        free(p);
    }
    free(f->processes);
    *f = (struct library_facts){0};
}

void library_facts_move(struct library_facts *f, struct library_facts *from)
{
    from->complete = true;
    if (f->complete) {
        library_facts_release(from);
        return;
    }
    *f = *from;
    *from = (struct library_facts){0};
}

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    return table == TABLES_TABLE_PROCESSES ? library_facts_row(context, row) : 0;
}

// If necessary, completes the facts with a separate scan. Returns 0, or a negative errno with the
// message set.
static int complete_facts(heaptape_trace *t)
{
    struct err *e = library_begin(t);
    if (t->facts.complete)
        return 0;
    if (!t->path)
        return err_set(e, -EINVAL, "no path to open");
    if (t->once)
        return err_set(e, -EAGAIN,
                       "%s: processes and call sites are available after all events have been read",
                       t->path);
    struct library_facts facts = {0};
    struct tables_scan scan = {.row = put_row};
    library_facts_scan(&scan, &facts);
    int rc = tables_scan(t->path, &scan, e);
    if (rc < 0) {
        library_facts_release(&facts);
        return rc;
    }
    library_facts_move(&t->facts, &facts);
    return 0;
}

int64_t heaptape_trace_processes(heaptape_trace *t)
{
    int rc = complete_facts(t);
    return rc < 0 ? rc : (int64_t)t->facts.n;
}

int heaptape_trace_process(heaptape_trace *t, size_t i, const heaptape_process **process)
{
    int rc = complete_facts(t);
    if (rc == 0 && i >= t->facts.n)
        rc = err_set(&t->e, -EINVAL, "%s: has %zu processes", t->path, t->facts.n);
    if (rc == 0)
        *process = &t->facts.processes[i]->of;
    return rc;
}

// Finds a process by number. Returns 0, or a negative errno with the message set.
static int find_process(heaptape_trace *t, uint32_t number, struct library_process **p)
{
    int rc = complete_facts(t);
    if (rc < 0)
        return rc;
    *p = get_process(&t->facts, number);
    return *p ? 0 : err_set(&t->e, -EINVAL, "%s: has no process %u", t->path, number);
}

int heaptape_trace_thread(heaptape_trace *t, uint32_t process, uint32_t thread,
                          const heaptape_thread **to)
{
    struct library_process *p;
    int rc = find_process(t, process, &p);
    if (rc == 0 && thread >= p->n_threads)
        rc = err_set(&t->e, -EINVAL, "%s: no facts about thread %u of process %u", t->path, thread,
                     process);
    if (rc == 0)
        *to = &p->threads[thread];
    return rc;
}

// Finds the process of a call site and loads its symbols.
static int find_site(heaptape_trace *t, uint32_t process, uint32_t site, struct library_process **p)
{
    int rc = find_process(t, process, p);
    if (rc < 0)
        return rc;
    if (!site || site > (*p)->sites.n_sites)
        return err_set(&t->e, -EINVAL, "%s: process %u has no call site %u", t->path, process,
                       site);
    if (!(*p)->symbols)
        (*p)->symbols = symbols_new(&(*p)->sites, (*p)->of.exe);
    bool failed = !(*p)->symbols || symbols_find_wrappers((*p)->symbols) < 0;
    return failed ? err_no_memory(&t->e, t->path) : 0;
}

static const char *or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

static int fill_frame(heaptape_trace *t, const struct symbol *s, uint64_t address,
                      const heaptape_frame **frame)
{
    t->frame = (heaptape_frame){
        .function = s->function,
        .file = or_null(s->file),
        .object = or_null(s->module),
        .address = address,
        .line = s->file[0] && s->line > 0 ? (uint32_t)s->line : 0,
        .known = s->known,
        .library = s->library,
        .wrapper = s->wrapper,
    };
    *frame = &t->frame;
    return 1;
}

int heaptape_trace_site(heaptape_trace *t, uint32_t process, uint32_t site,
                        const heaptape_frame **frame)
{
    struct library_process *p;
    struct symbol s;
    int rc = find_site(t, process, site, &p);
    if (rc < 0)
        return rc;
    const struct workload_site *of = &p->sites.sites[site - 1];
    if (!of->n || !stack_site(p->symbols, site, &s))
        return 0;
    return fill_frame(t, &s, p->sites.frames[of->first].address, frame);
}

int heaptape_trace_frame(heaptape_trace *t, uint32_t process, uint32_t site, size_t i,
                         const heaptape_frame **frame)
{
    struct library_process *p;
    int rc = find_site(t, process, site, &p);
    if (rc < 0)
        return rc;
    const struct workload_site *of = &p->sites.sites[site - 1];
    for (uint32_t f = 0; f < of->n; f++) {
        const struct workload_frame *at = &p->sites.frames[of->first + f];
        const struct symbol *found;
        size_t n = symbols_of(p->symbols, at, &found);
        if (!n)
            return err_no_memory(&t->e, t->path);
        if (i < n)
            return fill_frame(t, &found[i], at->address, frame);
        i -= n;
    }
    return 0;
}
