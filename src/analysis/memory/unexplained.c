#include "analysis/memory/unexplained.h"

#include "base/buf.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/codec.h"
#include "trace/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRANULE_SHIFT = 20,
    MAX_GRANULES = 1 << 22, // limits the memory that invalid maps can use
    // The first reading decodes the first SAMPLED_FIRST frames of events, and then one frame in
    // SAMPLED_EACH.
    SAMPLED_FIRST = 4,
    SAMPLED_EACH = 16,
    KNOWN_GRANULES = 256,
};

// Resident anonymous bytes in 1 MiB of address space.
struct unexplained_granule {
    uint64_t number;       // address >> GRANULE_SHIFT
    uint64_t first, bytes; // in the first map and in the map with the most anonymous memory
    bool explained;
};

// A process that may have unexplained memory.
struct unexplained_candidate {
    uint32_t process;
    bool has_first;
    struct trace_pages first, most;
    uint64_t most_bytes;
    struct unexplained_granule *granules; // sorted by number
    size_t n, capacity;
    uint64_t unexplained_bytes;
};

struct unexplained_search {
    struct trace_file *file;
    struct unexplained_candidate *all;
    size_t n, capacity;
    size_t open; // number of candidates that may reach the limits
    bool skips;  // the next frame of events is not decoded
    // Granules of the process `known_of` that need not be searched again, because they are
    // explained or not in `granules`. Each entry is 1 + the number of a granule, at the number
    // modulo KNOWN_GRANULES.
    uint64_t known[KNOWN_GRANULES];
    const struct unexplained_candidate *known_of;
    struct progress *progress;
};

// Returns true for memory that may belong to an allocator whose calls are not recorded. Excludes
// the brk area, which belongs to libc's malloc, and anonymous memory right after a file's mapping,
// which is a library's zeroed data.
static bool is_counted(const struct trace_mapping *m)
{
    return m->kind == TRACE_MEMORY_ANONYMOUS && !m->after_file;
}

static uint64_t sum_anonymous(const struct trace_pages *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n_mappings; i++)
        sum += is_counted(&p->mappings[i]) ? p->mappings[i].rss_bytes : 0;
    return sum;
}

static bool reaches_limits(uint64_t bytes, uint64_t rss_bytes)
{
    return bytes > UNEXPLAINED_MIN_BYTES && bytes / UNEXPLAINED_MIN_PERCENT > rss_bytes / 100;
}

static struct unexplained_candidate *find_candidate(const struct unexplained_search *s,
                                                    uint32_t process)
{
    for (size_t i = s->n; i-- > 0;) {
        if (s->all[i].process == process)
            return &s->all[i];
    }
    return NULL;
}

static void move_pages(struct trace_pages *to, struct trace_pages *from)
{
    trace_pages_release(to);
    *to = *from;
    *from = (struct trace_pages){0};
}

// Keeps the first map of each process, and the later map with the most anonymous memory.
static int keep_map(void *context, struct trace_pages *p, uint32_t number)
{
    (void)number;
    struct unexplained_search *s = context;
    struct unexplained_candidate *c = find_candidate(s, p->process);
    if (!c) {
        if (HT_GROW(&s->all, &s->capacity, s->n + 1) < 0)
            return -ENOMEM;
        c = &s->all[s->n++];
        *c = (struct unexplained_candidate){.process = p->process};
    }
    uint64_t bytes = sum_anonymous(p);
    if (bytes > c->most_bytes) {
        // The first map may also be the map with the most anonymous memory.
        if (!c->has_first && c->most_bytes) {
            move_pages(&c->first, &c->most);
            c->has_first = true;
        }
        move_pages(&c->most, p);
        c->most_bytes = bytes;
    } else if (!c->has_first && !c->most_bytes) {
        move_pages(&c->first, p);
        c->has_first = true;
    }
    return 0;
}

static int add_bytes(struct unexplained_candidate *c, uint64_t number, uint64_t bytes,
                     bool is_first)
{
    struct unexplained_granule *g = c->n ? &c->granules[c->n - 1] : NULL;
    if (!g || g->number != number) {
        if (c->n == MAX_GRANULES)
            return 0;
        if (HT_GROW(&c->granules, &c->capacity, c->n + 1) < 0)
            return -ENOMEM;
        g = &c->granules[c->n++];
        *g = (struct unexplained_granule){.number = number};
    }
    *(is_first ? &g->first : &g->bytes) += bytes;
    return 0;
}

static int add_run(struct unexplained_candidate *c, uint64_t at, uint64_t end, bool is_first)
{
    int rc = 0;
    while (rc == 0 && at < end && c->n < MAX_GRANULES) {
        uint64_t number = at >> GRANULE_SHIFT, next = (number + 1) << GRANULE_SHIFT;
        next = next < end ? next : end;
        rc = add_bytes(c, number, next - at, is_first);
        at = next;
    }
    return rc;
}

static int add_pages(struct unexplained_candidate *c, const struct trace_pages *p, bool is_first)
{
    int rc = 0;
    for (size_t i = 0; i < p->n_mappings; i++) {
        const struct trace_mapping *m = &p->mappings[i];
        for (size_t k = 0; rc == 0 && is_counted(m) && k < m->n_runs; k++) {
            const struct trace_page_run *run = &p->runs[m->first_run + k];
            rc = add_run(c, run->first * p->page_bytes, (run->first + run->n) * p->page_bytes,
                         is_first);
        }
    }
    return rc;
}

static void join_granules(struct unexplained_candidate *c)
{
    size_t n = 0;
    HT_SORT(c->granules, c->n, SORT_UP(struct unexplained_granule, number));
    for (size_t i = 0; i < c->n; i++) {
        if (n && c->granules[n - 1].number == c->granules[i].number) {
            c->granules[n - 1].first += c->granules[i].first;
            c->granules[n - 1].bytes += c->granules[i].bytes;
        } else {
            c->granules[n++] = c->granules[i];
        }
    }
    c->n = n;
}

// Removes the processes that cannot reach the limits, and finds the granules of the others.
static int choose_candidates(struct unexplained_search *s)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct unexplained_candidate *c = &s->all[i];
        bool kept = rc == 0 && reaches_limits(c->most_bytes, c->most.rss_bytes);
        if (kept)
            rc = add_pages(c, &c->most, false);
        if (kept && rc == 0)
            rc = add_pages(c, c->has_first ? &c->first : &c->most, true);
        trace_pages_release(&c->first);
        const struct trace_pages figures = {.rss_bytes = c->most.rss_bytes,
                                            .end_stamp = c->most.end_stamp};
        trace_pages_release(&c->most);
        c->most = figures;
        if (kept)
            join_granules(c);
        for (size_t k = 0; kept && k < c->n; k++)
            c->unexplained_bytes += c->granules[k].bytes;
        if (kept && c->n)
            s->all[n++] = *c;
        else
            free(c->granules);
    }
    s->open = s->n = n;
    return rc;
}

// Marks the memory of a block as explained. Returns false if the process can no longer reach the
// limits.
static bool explain(struct unexplained_search *s, struct unexplained_candidate *c, uint64_t address,
                    uint64_t bytes)
{
    uint64_t number = address >> GRANULE_SHIFT,
             last = (address + (bytes ? bytes - 1 : 0)) >> GRANULE_SHIFT,
             *known = &s->known[number % KNOWN_GRANULES];
    if (number == last && *known == number + 1)
        return true;
    for (size_t i = HT_SEARCH(k, c->n, c->granules[k].number >= number);
         i < c->n && c->granules[i].number <= last; i++) {
        struct unexplained_granule *g = &c->granules[i];
        if (!g->explained)
            c->unexplained_bytes -= g->bytes;
        g->explained = true;
    }
    *known = number + 1;
    return reaches_limits(c->unexplained_bytes, c->most.rss_bytes);
}

// Like explain, for the block that the event allocates, if any.
static bool explain_event(struct unexplained_search *s, struct unexplained_candidate *c,
                          const struct event *ev)
{
    bool allocates = (event_infos[ev->kind].fields & HT_ALLOCATES) == HT_ALLOCATES;
    if (!allocates || !ev->result)
        return true;
    uint64_t bytes = ev->kind == HT_MREMAP ? ev->count // the new size
                                           : event_requested(ev->kind, ev->size, ev->count);
    return explain(s, c, ev->result, bytes);
}

static void read_segment(struct unexplained_search *s, const struct trace_segment *segment)
{
    struct unexplained_candidate *c = find_candidate(s, segment->process);
    struct codec_state state = {segment->epoch0, segment->base0};
    struct event ev;
    if (!c || !reaches_limits(c->unexplained_bytes, c->most.rss_bytes))
        return;
    if (s->known_of != c)
        memset(s->known, 0, sizeof s->known);
    s->known_of = c;
    for (uint32_t at = 0, words; at < segment->n_words; at += words) {
        words = codec_get(&state, segment->words + at, segment->n_words - at, &ev);
        if (words && explain_event(s, c, &ev))
            continue;
        s->open -= words != 0;
        return;
    }
}

static bool wants_process(void *context, const struct trace_process *p)
{
    const struct unexplained_search *s = context;
    return !s->skips && find_candidate(s, p->number) != NULL;
}

// Reads the events while a process may reach the limits. If `samples` is set, decodes only some of
// the frames. Any order of the events has the same result. Returns 0, or a negative errno.
static int read_events(struct unexplained_search *s, bool samples, struct err *e)
{
    struct trace_reader *r = &s->file->reader;
    struct trace_item item;
    int rc = 1;
    r->wants = wants_process;
    r->wants_context = s;
    for (uint64_t n = 0; s->open && rc > 0; n += rc > 0 && item.type == TRACE_EVENTS) {
        s->skips = samples && n >= SAMPLED_FIRST && n % SAMPLED_EACH;
        rc = trace_next(r, &item, e);
        for (size_t i = 0; rc > 0 && item.type == TRACE_EVENTS && i < item.n_segments; i++)
            read_segment(s, &item.segments[i]);
        progress_update(s->progress, s->file->in.offset);
    }
    r->wants = NULL;
    return rc > 0 || rc == -ENODATA ? 0 : rc; // -ENODATA: the recording is cut off
}

// Reads a sample of the events first, because a few blocks in each MiB usually explain all memory.
static int read_blocks(struct unexplained_search *s, struct err *e)
{
    struct err ignored; // the second reading finds the same error
    if (s->progress)
        s->progress->total = s->file->in.size_bytes;
    int rc = read_events(s, true, &ignored);
    if (s->open && rc != -ENOMEM)
        rc = trace_file_rewind(s->file, e) ?: read_events(s, false, e);
    else if (s->open)
        rc = err_no_memory(e, s->file->in.name);
    progress_clear(s->progress);
    return s->open ? rc : 0;
}

// Returns true if another message explains why blocks are missing, or if the process may use blocks
// that its parent allocated before the fork.
static bool has_gaps(const struct trace_process *p)
{
    return p->forked_from || p->bypassed_by || p->deepbound_bytes || p->off_reason ||
           p->lost_records;
}

// Returns true if another program may have been running in the process when its map was read. On a
// busy machine, the recorder may read the map before it notices that the process has executed
// another program.
static bool may_be_successor(const struct trace_reader *r, const struct trace_process *p,
                             const struct unexplained_candidate *c)
{
    bool found = false;
    for (size_t i = 0; i < r->unrecorded.n; i++)
        found |= r->unrecorded.items[i].pid == p->pid; // the time of the exec is unknown
    for (size_t i = 0; i < r->n_processes && !found; i++) {
        const struct trace_process *other = r->processes[i];
        found = other && other->number > p->number && other->pid == p->pid &&
                other->start_stamp <= c->most.end_stamp;
    }
    return found;
}

static uint64_t sum_unexplained(const struct unexplained_candidate *c, bool is_growth)
{
    uint64_t sum = 0, first = 0;
    for (size_t i = 0; i < c->n; i++) {
        sum += c->granules[i].explained ? 0 : c->granules[i].bytes;
        first += c->granules[i].explained || !is_growth ? 0 : c->granules[i].first;
    }
    return sum > first ? sum - first : 0;
}

static int list_processes(struct unexplained *u, const struct unexplained_search *s)
{
    u->items = calloc(s->n + 1, sizeof *u->items);
    for (size_t i = 0; u->items && i < s->n; i++) {
        const struct unexplained_candidate *c = &s->all[i];
        const struct trace_process *p =
            c->process < s->file->reader.n_processes ? s->file->reader.processes[c->process] : NULL;
        bool is_growth = p && (p->attached || p->recorded_from);
        uint64_t bytes = sum_unexplained(c, is_growth);
        if (p && !has_gaps(p) && !may_be_successor(&s->file->reader, p, c) &&
            reaches_limits(bytes, c->most.rss_bytes))
            u->items[u->n++] = (struct unexplained_process){c->process, p->pid, bytes,
                                                            c->most.rss_bytes, is_growth};
    }
    if (u->items)
        HT_SORT(u->items, u->n, SORT_DOWN(struct unexplained_process, bytes));
    return u->items ? 0 : -ENOMEM;
}

int unexplained_find(struct unexplained *u, struct trace_file *t, struct progress *progress,
                     struct err *e)
{
    struct unexplained_search s = {.file = t, .progress = progress};
    *u = (struct unexplained){0};
    int rc = trace_file_each_map(t, keep_map, &s, e);
    if (rc == 0 && choose_candidates(&s) < 0)
        rc = err_no_memory(e, t->in.name);
    if (rc == 0 && s.open)
        rc = read_blocks(&s, e);
    if (rc == 0 && s.open && list_processes(u, &s) < 0)
        rc = err_no_memory(e, t->in.name);
    for (size_t i = 0; i < s.n; i++) {
        free(s.all[i].granules);
        trace_pages_release(&s.all[i].first);
        trace_pages_release(&s.all[i].most);
    }
    free(s.all);
    return rc;
}

void unexplained_release(struct unexplained *u)
{
    free(u->items);
    *u = (struct unexplained){0};
}
