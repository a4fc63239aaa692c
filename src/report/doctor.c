#include "report/doctor.h"

#include "base/printable.h"
#include "cli/human.h"
#include "report/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES = 100 };

// Minimum shares for adding a note, and the maximum unread share for counting the blocks as known.
#define GROUP_FULL_SHARE  0.8  // used memory, as a share of the cgroup's limit
#define GROUP_FILES_SHARE 0.25 // file memory, as a share of the cgroup's used memory
#define LOST_SHARE        0.1  // unread memory, as a share of malloc's memory

// If the misfit of a line over time is at most EXACT, growth over CPU time does not contradict the
// line.
#define EXACT 0.02

static enum verdict_owner find_owner(const struct look *l, enum look_owner o)
{
    static const enum verdict_owner owners[] = {
        [LOOK_LIVE] = VERDICT_LIVE,        [LOOK_FREE] = VERDICT_FREE,
        [LOOK_TOP] = VERDICT_FREE,         [LOOK_CACHED] = VERDICT_FREE,
        [LOOK_PINNED] = VERDICT_PINNED,    [LOOK_UNREAD] = VERDICT_UNKNOWN_HEAP,
        [LOOK_STACKS] = VERDICT_STACKS,    [LOOK_ANONYMOUS] = VERDICT_MAPPINGS,
        [LOOK_RUNTIME] = VERDICT_MAPPINGS, [LOOK_JIT] = VERDICT_MAPPINGS,
        [LOOK_SHARED] = VERDICT_SHARED,    [LOOK_FILES] = VERDICT_FILES,
        [LOOK_OTHER] = VERDICT_OTHER,
    };
    _Static_assert(sizeof owners / sizeof *owners == LOOK_OWNERS, "an owner in a look has no row");
    bool knows_heap = l->heap.is_read || l->heap.has_statistics || l->runtime;
    return o == LOOK_ANONYMOUS && !knows_heap ? VERDICT_UNKNOWN_HEAP : owners[o];
}

static void find_resident(const struct look *l, double resident[VERDICT_OWNERS])
{
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        resident[i] = 0;
    for (unsigned i = 0; i < LOOK_OWNERS; i++)
        resident[find_owner(l, i)] += (double)l->owners[i];
}

// Returns true if the look read nearly all of malloc's memory.
static bool knows_blocks(const struct look *l)
{
    const struct look_heap *h = &l->heap;
    double unknown = (double)l->owners[LOOK_UNREAD];
    if (h->has_statistics)
        return true;
    return h->is_read && !h->is_corrupt &&
           unknown <= LOST_SHARE * (double)(h->read_bytes + l->owners[LOOK_UNREAD]);
}

int doctor_add(struct doctor *d, struct look *l, uint64_t low, uint64_t high)
{
    double resident[VERDICT_OWNERS],
        ns = (double)(l->time_ns - (d->looks ? d->first.time_ns : l->time_ns));
    find_resident(l, resident);
    for (unsigned i = 0; i < DOCTOR_LEVELS; i++) {
        if (!d->points[i])
            d->points[i] = calloc(DOCTOR_MAX_LOOKS, sizeof *d->points[i]);
        if (!d->points[i])
            return -ENOMEM;
    }
    if (d->looks)
        look_compare(l, &d->last);
    d->last = *l;
    if (!d->looks)
        d->first = *l;
    if (d->looks == DOCTOR_MAX_LOOKS)
        return 0;
    size_t n = d->looks++;
    d->cpu_ns[n] = l->cpu_ns;
    d->points[DOCTOR_RSS][n] = (struct growth_point){ns, (double)low, (double)high};
    if (knows_blocks(l))
        d->points[DOCTOR_LIVE][d->live_looks++] =
            (struct growth_point){ns, (double)l->heap.live_bytes, (double)l->heap.live_bytes};
    double heap = resident[VERDICT_LIVE] + resident[VERDICT_FREE] + resident[VERDICT_PINNED] +
                  resident[VERDICT_UNKNOWN_HEAP];
    d->points[DOCTOR_HEAP][n] = (struct growth_point){ns, heap, heap};
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        d->points[DOCTOR_OWNER + i][n] = (struct growth_point){ns, resident[i], resident[i]};
    return 0;
}

void doctor_release(struct doctor *d)
{
    for (unsigned i = 0; i < DOCTOR_LEVELS; i++)
        free(d->points[i]);
    *d = (struct doctor){0};
}

static bool is_named(const struct look_heap *h)
{
    return h->allocator < SOFTWARE_OTHER_ALLOCATOR;
}

// Returns how many bytes of the mappings with this name were resident in an earlier look.
static double bytes_before(const struct look *before, const struct look_name *n)
{
    for (size_t i = 0; i < before->n_names; i++) {
        if (before->names[i].owner == n->owner && strcmp(before->names[i].name, n->name) == 0)
            return (double)before->names[i].rss_bytes;
    }
    return 0;
}

static void set_names(struct verdict_facts *f, const struct doctor *d)
{
    const struct look *l = &d->last;
    for (size_t i = 0; i < l->n_names && f->n_names < VERDICT_NAMES; i++) {
        const struct look_name *n = &l->names[i];
        if (!n->name[0])
            continue;
        struct verdict_name *to = &f->names[f->n_names++];
        snprintf(to->name, sizeof to->name, "%s", n->name);
        to->owner = find_owner(l, n->owner);
        to->bytes = (double)n->rss_bytes;
        to->grown_bytes = to->bytes - bytes_before(&d->first, n);
    }
}

static void set_heap(struct verdict_facts *f, const struct look *l)
{
    const struct look_heap *h = &l->heap;
    if (!h->is_read && !h->has_statistics)
        return;
    f->live_bytes = (double)h->live_bytes;
    // Free blocks in caches keep their pages resident.
    if (h->has_statistics)
        f->shared_free_bytes = (double)(l->owners[LOOK_PINNED] + l->owners[LOOK_CACHED]);
    if (!h->is_read)
        return;
    f->live_blocks = (double)h->blocks;
    f->arenas = h->free_arenas;
    f->arena_free_bytes = (double)h->other_free_bytes;
    f->top_free_bytes = (double)h->main_top_bytes;
    f->cached_bytes = (double)l->owners[LOOK_CACHED];
    f->pinning_blocks = (double)h->pinning_blocks;
    f->pinning_bytes = (double)h->pinning_bytes;
}

// Finds the growth of a level over time. On a busy machine, a process grows in proportion to its
// CPU time. If the level grows linearly over time but approaches a limit over CPU time, or the
// reverse, the growth cannot be judged.
static void find_growth(struct growth *g, const struct doctor *d, const struct growth_point *points,
                        size_t n)
{
    struct growth_point work[DOCTOR_MAX_LOOKS];
    struct growth by_cpu;
    uint64_t from = d->cpu_ns[0], all = d->cpu_ns[d->looks - 1] - from;
    double scale = (double)(d->last.time_ns - d->first.time_ns) / (double)all;
    growth_find(g, points, n);
    if (!from || !all || (g->shape != GROWTH_LINEAR && g->shape != GROWTH_SATURATING))
        return;
    for (size_t i = 0, look = 0; i < n; i++, look++) {
        while (d->points[DOCTOR_RSS][look].ns < points[i].ns)
            look++;
        work[i] = points[i];
        work[i].ns = (double)(d->cpu_ns[look] - from) * scale;
    }
    growth_find(&by_cpu, work, n);
    // CPU time per request changes with the load. Therefore, if growth over time is a nearly exact
    // line, it counts as growth even if growth over CPU time is not a line.
    if (g->shape == GROWTH_SATURATING ? by_cpu.shape == GROWTH_LINEAR
                                      : by_cpu.shape == GROWTH_SATURATING && g->misfit > EXACT)
        g->shape = GROWTH_IRREGULAR;
}

static void set_facts(struct doctor *d)
{
    struct verdict_facts *f = &d->facts;
    const struct look *l = &d->last;
    verdict_facts_init(f);
    f->allocator = is_named(&l->heap) ? l->heap.allocator : SOFTWARE_OTHER_ALLOCATOR;
    f->allocator_name = is_named(&l->heap) ? software_allocators[l->heap.allocator].name : NULL;
    f->knows_blocks = knows_blocks(l);
    f->knows_resident = true;
    f->is_running = true;
    f->runtime = l->runtime;
    f->rss_bytes = (double)l->rss_bytes;
    f->swap_bytes = (double)l->swap_bytes;
    f->peak_rss_bytes = (double)l->peak_rss_bytes;
    find_resident(l, f->resident);
    set_heap(f, l);
    f->span_ns = (double)(l->time_ns - d->first.time_ns);
    f->stacks = l->stacks;
    f->first_stacks = d->first.stacks;
    f->threads = l->threads;
    if (l->stacks > l->threads)
        f->ended_stack_bytes =
            (double)l->stack_bytes / l->stacks * (double)(l->stacks - l->threads);
    set_names(f, d);
    find_growth(&f->rss, d, d->points[DOCTOR_RSS], d->looks);
    find_growth(&f->heap, d, d->points[DOCTOR_HEAP], d->looks);
    if (d->live_looks >= d->looks / 2 && d->live_looks > 0)
        find_growth(&f->live, d, d->points[DOCTOR_LIVE], d->live_looks);
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        find_growth(&f->of[i], d, d->points[DOCTOR_OWNER + i], d->looks);
}

static __attribute__((format(printf, 2, 3))) void add_note(struct doctor *d, const char *fmt, ...)
{
    va_list args;
    if (d->n_notes == DOCTOR_NOTES)
        return;
    va_start(args, fmt);
    vsnprintf(d->notes[d->n_notes++], DOCTOR_NOTE_BYTES, fmt, args);
    va_end(args);
}

static void note_heap(struct doctor *d)
{
    const struct look *l = &d->last;
    const struct look_heap *h = &l->heap;
    if (h->is_corrupt && h->bad_at)
        add_note(d, "The heap is corrupt: the chunk at 0x%llx has the size %llu.",
                 (unsigned long long)h->bad_at, (unsigned long long)h->bad_size);
    else if (h->why_not[0])
        add_note(d, "The blocks of malloc were not read: %s.", h->why_not);
    else if (h->has_statistics && !d->asked_ns)
        return; // the heap was read without a call in the process
    else if (h->has_statistics)
        add_note(d, "The statistics of %s were read by calls, which stopped a thread for %s.",
                 software_allocators[h->allocator].name, human_time((double)d->asked_ns));
    else if (h->allocator != SOFTWARE_GLIBC)
        add_note(d, "The blocks and statistics of %s were not read, only mappings.",
                 is_named(h) ? software_allocators[h->allocator].name : "the program's malloc");
    else if (!knows_blocks(l))
        add_note(d, "Of malloc's memory, %s of %s was not read.",
                 human_size(l->owners[LOOK_UNREAD]),
                 human_size(h->read_bytes + l->owners[LOOK_UNREAD]));
}

// If the verdict suggests a recording, adds a note on how to record the function names of a
// language runtime.
static void note_names(struct doctor *d)
{
    const struct software_runtime *r = d->last.runtime;
    if (r && r->names && d->verdict.kind == VERDICT_KIND_grows)
        add_note(d, "To see functions of %s in the call stacks of a recording, %s.", r->name,
                 r->names);
}

static void note_surroundings(struct doctor *d)
{
    const struct look *l = &d->last;
    const struct look_group *g = &l->group;
    if (l->children_bytes > l->rss_bytes)
        add_note(d, "Its child processes are bigger: %u with %s; process %ld (%s) has %s.",
                 l->children, human_size(l->children_bytes), (long)l->largest_child.pid,
                 l->largest_child.command, human_size(l->largest_child.rss_bytes));
    if (g->limit_bytes != UINT64_MAX && g->used_bytes != UINT64_MAX &&
        g->file_bytes != UINT64_MAX &&
        (double)g->used_bytes >= GROUP_FULL_SHARE * (double)g->limit_bytes &&
        (double)g->file_bytes >= GROUP_FILES_SHARE * (double)g->used_bytes)
        add_note(
            d, "Its cgroup uses %s of %s, but %s of that is page cache, which the kernel reclaims.",
            human_size(g->used_bytes), human_size(g->limit_bytes), human_size(g->file_bytes));
    if (l->huge_bytes > l->rss_bytes / 2 && (double)l->huge_bytes >= VERDICT_MANY_BYTES)
        add_note(d, "%s are in transparent huge pages: the first write makes 2 MiB resident.",
                 human_size(l->huge_bytes));
    if (l->swap_bytes > l->rss_bytes / 4)
        add_note(d, "Another %s is swapped out.", human_size(l->swap_bytes));
    if (l->maps_cut)
        add_note(d, "The list of mappings is too long to be read whole within the time limit.");
    if (l->state == 'T' || l->state == 't')
        add_note(d, "The process is stopped.");
    if (d->ended)
        add_note(d, "The process ended after the last sample.");
}

static bool can_ask(const struct look_heap *h)
{
    return !h->has_statistics &&
           (h->allocator == SOFTWARE_JEMALLOC || h->allocator == SOFTWARE_TCMALLOC);
}

static void set_next(struct doctor *d)
{
    const struct look *l = &d->last;
    bool judged = d->facts.rss.shape != GROWTH_UNKNOWN,
         maps = d->verdict.kind == VERDICT_KIND_mappings_grow;
    d->effect = NULL;
    if (l->children_bytes > l->rss_bytes) {
        snprintf(d->next, sizeof d->next, "heaptape doctor %ld", (long)l->largest_child.pid);
    } else if (can_ask(&l->heap)) {
        snprintf(d->next, sizeof d->next, "heaptape doctor --allocator-stats %ld", (long)l->pid);
        d->effect = "stops a thread for milliseconds to call functions of the allocator";
    } else if (doctor_can_try(d)) {
        snprintf(d->next, sizeof d->next, "heaptape doctor --try %ld", (long)l->pid);
        d->effect = "asks, then calls a function of the allocator in the process";
    } else if (d->verdict.kind == VERDICT_KIND_fills) {
        snprintf(d->next, sizeof d->next, "heaptape doctor --watch 10m %ld", (long)l->pid);
    } else if (!judged) {
        snprintf(d->next, sizeof d->next, "heaptape doctor --watch 60s %ld", (long)l->pid);
    } else if (d->verdict.act) {
        snprintf(d->next, sizeof d->next,
                 "heaptape record --pid %ld%s --stacks --duration 60s -o %ld.ht", (long)l->pid,
                 maps ? " --maps" : "", (long)l->pid);
    } else if (d->verdict.kind == VERDICT_KIND_live) {
        snprintf(d->next, sizeof d->next, "heaptape record --stacks -o %ld.ht -- PROGRAM",
                 (long)l->pid);
        d->effect = "starts the program again and records which lines allocate the blocks";
    } else {
        d->next[0] = 0;
    }
}

static void set_title(struct doctor *d)
{
    const struct look *l = &d->last;
    char allocator[48] = "", watched[48] = "";
    if (l->heap.allocator == SOFTWARE_GLIBC)
        snprintf(allocator, sizeof allocator, ", glibc %s", l->heap.version);
    else if (is_named(&l->heap))
        snprintf(allocator, sizeof allocator, ", %s", software_allocators[l->heap.allocator].name);
    if (d->facts.span_ns >= GROWTH_MIN_NS)
        snprintf(watched, sizeof watched, ", watched for %.0f s", d->facts.span_ns / 1e9);
    snprintf(d->title, sizeof d->title, "%ld (%.100s): RSS %s, %s%s%s%s%s", (long)l->pid,
             l->command, human_size(l->rss_bytes), human_items(l->threads, "thread", "threads"),
             allocator, d->facts.runtime ? ", " : "",
             d->facts.runtime ? d->facts.runtime->name : "", watched);
}

static void set_next_program(struct doctor *d)
{
    size_t n = (size_t)snprintf(d->next, sizeof d->next, "heaptape doctor -o %.60s.ht --",
                                basename(d->argv[0]));
    for (char *const *word = d->argv; *word && n < sizeof d->next; word++)
        n += (size_t)snprintf(d->next + n, sizeof d->next - n, " %s", *word);
}

// If the verdict's call paths lack the functions of an interpreter or a JIT compiler, adds a note.
static void note_unnamed_code(struct doctor *d, const struct findings *found)
{
    for (size_t i = 0; i < found->n && d->verdict.kind != VERDICT_KIND_runtime; i++) {
        if (found->items[i].rule == FINDING_unnamed_code)
            add_note(d, "%s %s", found->items[i].text, found->items[i].advice);
    }
}

void doctor_judge_file(struct doctor *d, const struct file_stat *s)
{
    const struct file_stat_process *p =
        s->of_usage < s->n_processes ? &s->processes[s->of_usage] : NULL;
    char command[COMMAND_BYTES + sizeof "..."];
    struct findings found;
    findings_of_file(&found, s);
    d->is_file = true;
    d->facts = found.facts;
    d->verdict = found.verdict;
    note_unnamed_code(d, &found);
    bool resident = d->facts.knows_resident;
    double size = resident ? d->facts.rss_bytes : d->facts.live_bytes;
    printable_words(command, COMMAND_BYTES, p ? p->argv : NULL, p ? p->argv_bytes : 0);
    snprintf(d->title, sizeof d->title, "%.200s%sprocess %u (%.103s): %s %s%s%s",
             d->file ? d->file : "", d->file ? ", " : "", p ? p->pid : 0,
             *command      ? command
             : p && p->exe ? p->exe
                           : "unknown",
             resident ? "RSS" : "live bytes", human_size(size > 0 ? (uint64_t)size : 0),
             d->facts.runtime ? ", " : "", d->facts.runtime ? d->facts.runtime->name : "");
    if (d->file)
        snprintf(d->next, sizeof d->next, "heaptape stat %s%.300s",
                 s->by_site.n_sites ? "--by site " : "", d->file);
    else
        set_next_program(d);
}

void doctor_judge(struct doctor *d)
{
    d->n_notes = 0;
    set_facts(d);
    set_title(d);
    verdict_find(&d->verdict, &d->facts);
    note_heap(d);
    note_names(d);
    note_surroundings(d);
    set_next(d);
}

bool doctor_can_try(const struct doctor *d)
{
    enum verdict_kind kind = d->verdict.kind;
    const struct look_heap *h = &d->last.heap;
    if (!look_purge_text(h->allocator))
        return false;
    // If the blocks are unknown, only a trial of the call can show how much memory is free.
    bool is_unknown = !h->is_read && !h->has_statistics && h->allocator != SOFTWARE_GLIBC;
    return kind == VERDICT_KIND_pinned || kind == VERDICT_KIND_arenas ||
           kind == VERDICT_KIND_retained || (is_unknown && kind == VERDICT_KIND_unknown_blocks);
}
