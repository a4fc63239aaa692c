#include "report/top/live.h"

#include "analysis/estimate.h"
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"
#include "analysis/usage.h"
#include "base/buf.h"
#include "cli/words.h"
#include "convert/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live *live_new(const struct trace_session *s, const struct trace_process *p)
{
    struct live *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->process = p;
    l->sample_bytes = s->stack_sample_bytes;
    l->skid = trace_stamps(s, CONVERT_SKID_NS);
    return l;
}

static void forget_blocks(struct live *l)
{
    map_release(&l->addresses);
    free(l->blocks);
    l->blocks = NULL;
    l->n_blocks = l->blocks_capacity = l->free_block = 0;
}

void live_free(struct live *l)
{
    if (!l)
        return;
    for (unsigned by = 0; by < LIVE_VIEWS; by++)
        free(l->rows[by].items);
    for (size_t i = 0; i < l->n_names; i++)
        free(l->names[i].name);
    forget_blocks(l);
    symbols_free(l->symbols);
    site_table_release(&l->sites);
    map_release(&l->thread_numbers);
    free(l->threads);
    free(l->names);
    free(l->site_name);
    free(l);
}

void live_end(struct live *l)
{
    forget_blocks(l);
    l->running = 0;
}

// Finds the thread by its number in the trace, or adds the thread and its row. Returns false when
// out of memory.
static bool find_thread(struct live *l, const struct walk_call *c, uint32_t *index)
{
    if (l->n_threads && l->last_number == c->thread) {
        *index = l->last_thread;
        return true;
    }
    uint64_t found = map_get(&l->thread_numbers, c->thread + 1ull);
    if (!found) {
        struct live_rows *rows = &l->rows[LIVE_THREADS];
        if (HT_GROW(&l->threads, &l->threads_capacity, l->n_threads + 1) < 0 ||
            HT_EXTEND(&rows->items, &rows->n, &rows->capacity, l->n_threads + 1) < 0 ||
            map_put(&l->thread_numbers, c->thread + 1ull, l->n_threads + 1) < 0)
            return false;
        l->threads[l->n_threads++] = (struct live_thread){.tid = c->tid};
        l->running++;
        found = l->n_threads;
    }
    l->last_number = c->thread;
    *index = l->last_thread = (uint32_t)found - 1;
    return true;
}

// Finds or adds the call site and its row. Sets *site to 0 if no site was recorded. Returns false
// when out of memory.
static bool find_site(struct live *l, const struct event *ev, uint32_t *site)
{
    uint64_t id = ev->notes[HT_NOTE_SITE];
    struct live_rows *rows = &l->rows[LIVE_SITES];
    *site = id ? site_table_number(&l->sites, id) : 0;
    if ((*site || !id) && *site < l->n_names)
        return true;
    if ((id && !*site) || HT_EXTEND(&rows->items, &rows->n, &rows->capacity, *site + 1ull) < 0 ||
        HT_EXTEND(&l->names, &l->n_names, &l->names_capacity, *site + 1ull) < 0)
        return false;
    l->names[*site].id = id;
    return true;
}

enum change { CAME, WENT, CAME_BACK };

static void change_row(struct live_row *r, enum change what, double blocks, double bytes)
{
    double sign = what == WENT ? -1 : 1;
    r->now[LIVE_BLOCKS] += sign * blocks;
    r->now[LIVE_BYTES] += sign * bytes;
    r->now[LIVE_ALLOCS] += what == CAME ? blocks : 0;
    r->now[LIVE_ALLOCATED] += what == CAME ? bytes : 0;
    r->now[LIVE_FREES] += what == WENT ? blocks : what == CAME_BACK ? -blocks : 0;
}

// Changes the figures of a call site. If stacks are sampled, a block with a stack represents
// several blocks of its call site.
static void change_site(struct live *l, enum change what, const struct live_block *b)
{
    struct estimate e = {0};
    if (!l->sample_bytes) {
        change_row(&l->rows[LIVE_SITES].items[b->site], what, 1, (double)b->size);
    } else if (b->site) {
        estimate_add(&e, b->size, l->sample_bytes);
        change_row(&l->rows[LIVE_SITES].items[b->site], what, e.blocks, e.bytes);
    }
}

static void change_rows(struct live *l, enum change what, const struct live_block *b)
{
    change_row(&l->total, what, 1, (double)b->size);
    change_row(&l->rows[LIVE_SIZES].items[usage_size_class(b->size)], what, 1, (double)b->size);
    change_row(&l->rows[LIVE_THREADS].items[b->thread], what, 1, (double)b->size);
    change_site(l, what, b);
    if (l->total.now[LIVE_BYTES] > l->peak_bytes)
        l->peak_bytes = l->total.now[LIVE_BYTES];
}

// Removes a block. `at` is the value of the block in the map of addresses.
static void remove_block(struct live *l, uint64_t address, uint64_t at)
{
    struct live_block *b = &l->blocks[at - 1];
    change_rows(l, WENT, b);
    b->size = l->free_block;
    l->free_block = at;
    map_remove(&l->addresses, address);
}

// Adds a block at an address that has no known block.
static int add_block(struct live *l, enum change what, uint64_t address, const struct live_block *b)
{
    struct live_rows *sizes = &l->rows[LIVE_SIZES];
    uint64_t at = l->free_block;
    if (HT_EXTEND(&sizes->items, &sizes->n, &sizes->capacity, USAGE_CLASSES) < 0)
        return -ENOMEM;
    if (at)
        l->free_block = l->blocks[at - 1].size;
    else if (HT_GROW(&l->blocks, &l->blocks_capacity, l->n_blocks + 1) < 0)
        return -ENOMEM;
    else
        at = ++l->n_blocks;
    l->blocks[at - 1] = *b;
    change_rows(l, what, b);
    return map_put(&l->addresses, address, at);
}

static int allocate_block(struct live *l, const struct event *ev, uint32_t thread)
{
    struct live_block b = {.size = event_requested(ev->kind, ev->size, ev->count),
                           .thread = thread};
    uint64_t at = map_get(&l->addresses, ev->result);
    if (!find_site(l, ev, &b.site))
        return -ENOMEM;
    // The free of the previous block has a later timestamp than this allocation, although the free
    // happened first.
    if (at) {
        remove_block(l, ev->result, at);
        b.owed_until = ev->stamp + l->skid;
    }
    return add_block(l, CAME, ev->result, &b);
}

static void free_block(struct live *l, const struct event *ev)
{
    uint64_t at = map_get(&l->addresses, ev->ptr);
    if (at && l->blocks[at - 1].owed_until && l->blocks[at - 1].owed_until >= ev->stamp)
        l->blocks[at - 1].owed_until = 0;
    else if (at)
        remove_block(l, ev->ptr, at);
}

static void begin_resize(struct live *l, struct live_thread *t, const struct event *ev)
{
    uint64_t at = map_get(&l->addresses, ev->ptr);
    t->resizes = true;
    t->resizes_known = at != 0;
    t->resized = ev->ptr;
    if (!at)
        return;
    t->resized_block = l->blocks[at - 1];
    remove_block(l, ev->ptr, at);
}

static int end_resize(struct live *l, const struct event *ev, uint32_t thread)
{
    struct live_thread *t = &l->threads[thread];
    bool failed = !ev->result && event_requested(ev->kind, ev->size, ev->count) != 0;
    int rc = 0;
    if (!t->resizes && ev->ptr && !failed)
        free_block(l, ev);
    if (t->resizes && t->resizes_known && failed)
        rc = add_block(l, CAME_BACK, t->resized, &t->resized_block);
    t->resizes = false;
    return rc == 0 && ev->result ? allocate_block(l, ev, thread) : rc;
}

static void thread_call(struct live *l, struct live_thread *t, const struct event *ev)
{
    if (ev->text_bytes) {
        memset(t->name, 0, sizeof t->name);
        memcpy(t->name, ev->text,
               ev->text_bytes < sizeof t->name ? ev->text_bytes : sizeof t->name);
    }
    if (ev->kind == HT_THREAD_END && !t->ended) {
        t->ended = true;
        l->running -= l->running > 0;
    }
}

static int define_site(struct live *l, const struct event *ev)
{
    const struct site_table_record r = {ev->kind,  ev->ptr,  ev->size,
                                        ev->value, ev->text, ev->text_bytes};
    return event_defines_sites(ev->kind) ? site_table_define(&l->sites, &r) : 0;
}

int live_call(struct live *l, const struct walk_call *c)
{
    const struct event *ev = c->event;
    uint32_t thread;
    if (!find_thread(l, c, &thread))
        return -ENOMEM;
    switch (event_infos[ev->kind].class) {
    case HT_CLASS_ALLOC:
        return ev->result ? allocate_block(l, ev, thread) : 0;
    case HT_CLASS_FREE:
        free_block(l, ev);
        break;
    case HT_CLASS_HALF:
        begin_resize(l, &l->threads[thread], ev);
        break;
    case HT_CLASS_RESIZE:
        return end_resize(l, ev, thread);
    case HT_CLASS_THREAD:
        thread_call(l, &l->threads[thread], ev);
        break;
    case HT_CLASS_META:
        return define_site(l, ev);
    }
    return 0;
}

static void drop_symbols(struct live *l)
{
    symbols_free(l->symbols);
    l->symbols = NULL;
    l->names_known++;
}

int live_names(struct live *l, const uint8_t *at, size_t n)
{
    uint32_t process;
    drop_symbols(l);
    return names_get(at, n, &l->sites.all.names, &process);
}

static void cut_row(struct live_row *r, double seconds, bool whole)
{
    for (unsigned i = 0; i < LIVE_FIGURES; i++)
        r->per_s[i] = seconds > 0 ? (r->now[i] - (whole ? 0 : r->cut[i])) / seconds : 0;
    memcpy(r->cut, r->now, sizeof r->cut);
}

void live_cut(struct live *l, double seconds, bool whole)
{
    cut_row(&l->total, seconds, whole);
    for (unsigned by = 0; by < LIVE_VIEWS; by++) {
        for (size_t i = 0; i < l->rows[by].n; i++)
            cut_row(&l->rows[by].items[i], seconds, whole);
    }
}

// Looks up the names of call sites. The stacks of all call sites determine the allocation wrappers.
// When the number of call sites has doubled, names are looked up again, because a function in a
// name may have become a wrapper.
static int resolve_sites(struct live *l)
{
    if (l->n_names < 2 * l->sites_resolved)
        return 0;
    int rc = site_table_resolve_all(&l->sites);
    l->sites_resolved = l->n_names;
    l->names_known++;
    for (size_t i = 0; i < l->n_names; i++)
        l->names[i].known = false;
    return rc;
}

static void look_up(struct live *l, struct live_site *site, uint32_t number)
{
    struct symbol found;
    if (resolve_sites(l) < 0)
        return;
    if (l->symbols && l->symbols_modules != l->sites.all.n_modules)
        drop_symbols(l);
    if (!l->symbols)
        l->symbols = symbols_new(&l->sites.all, l->process->exe);
    l->symbols_modules = l->sites.all.n_modules;
    site->looked_up = l->names_known;
    if (site_table_resolve(&l->sites, site->id, number) < 0 ||
        !stack_site(l->symbols, number, &found))
        return;
    const char *file = basename(symbols_file(&found));
    char line[16] = "";
    if (found.file[0])
        snprintf(line, sizeof line, ":%d", found.line);
    free(site->name);
    site->function = strlen(file) + strlen(line) + (file[0] != 0);
    if (asprintf(&site->name, "%s%s%s%s", file, line, file[0] ? " " : "", found.function) < 0)
        site->name = NULL;
    site->known = found.known;
}

// Shortens a name to a number of columns. An ellipsis has 3 bytes and one column; a name may
// contain up to three ellipses.
static const char *fit_name(const char *name, size_t columns, char to[SHORTEN_BYTES])
{
    const char *shorter = name;
    for (size_t more = 8; more <= 8; more -= 2) {
        size_t max = columns + more < SHORTEN_BYTES ? columns + more : SHORTEN_BYTES - 1;
        shorter = shorten_name(name, max, to);
        if (words_columns(shorter) <= columns)
            break;
    }
    return shorter;
}

const char *live_site_name(struct live *l, size_t number, size_t columns)
{
    enum { LEAST_COLUMNS = 8 };
    char shorter[SHORTEN_BYTES];
    struct live_site *site = &l->names[number];
    if (!number)
        return "(unknown)";
    if (!site->name || (!site->known && site->looked_up != l->names_known))
        look_up(l, site, (uint32_t)number);
    if (!site->name || !columns)
        return site->name ? site->name : "(unknown)";
    size_t left =
        columns > site->function + LEAST_COLUMNS ? columns - site->function : LEAST_COLUMNS;
    free(l->site_name);
    if (asprintf(&l->site_name, "%.*s%s", (int)site->function, site->name,
                 fit_name(site->name + site->function, left, shorter)) < 0)
        l->site_name = NULL;
    return l->site_name ? l->site_name : site->name;
}
