// Attributes the mappings of a process to owners.
#include "base/buf.h"
#include "base/search.h"
#include "record/look/look_private.h"
#include "record/processes/pages.h"
#include "record/processes/proc_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_THREADS = 16384,
    MAX_GUARD = 1 << 20,
    MIN_STACK = 16 << 10,
    MAX_NAMES = 4096,
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_shared_memory(const char *name)
{
    return starts_with(name, "/dev/shm/") || starts_with(name, "/memfd:") ||
           starts_with(name, "/SYSV") || starts_with(name, "/dev/zero") ||
           starts_with(name, "/anon_hugepage");
}

// Returns true for anonymous memory, even if it looks like a stack.
static bool is_anonymous(const struct proc_mapping *m)
{
    enum trace_memory kind = m->mapping.kind;
    return kind == TRACE_MEMORY_ANONYMOUS || kind == TRACE_MEMORY_HEAP ||
           (kind == TRACE_MEMORY_STACK && !m->name[0]);
}

static enum look_owner find_owner(const struct proc_mapping *m)
{
    bool anonymous = is_anonymous(m);
    if (m->mapping.kind == TRACE_MEMORY_STACK && !anonymous)
        return LOOK_STACKS;
    if (anonymous && m->permissions[2] == 'x')
        return LOOK_JIT;
    if (anonymous && m->mapping.after_file)
        return LOOK_FILES; // zeroed data of the file
    if (anonymous)
        return LOOK_ANONYMOUS;
    if (is_shared_memory(m->name) || (m->permissions[3] == 's' && !m->is_file))
        return LOOK_SHARED;
    return m->is_file || m->mapping.kind == TRACE_MEMORY_RECORDING ? LOOK_FILES : LOOK_OTHER;
}

// Returns the index of the name and owner. If a process has very many files, the last entries share
// a name.
static int find_name(struct look_maps *m, const char *text, enum look_owner owner, size_t *index)
{
    for (size_t i = m->n_names; i-- > 0;) {
        if (m->names[i].owner == owner && strncmp(m->names[i].name, text, LOOK_NAME - 1) == 0) {
            *index = i;
            return 0;
        }
    }
    *index = MAX_NAMES - 1;
    if (m->n_names == MAX_NAMES)
        return 0;
    struct look_name name = {.owner = owner};
    snprintf(name.name, sizeof name.name, "%s", text);
    *index = m->n_names;
    return HT_APPEND(&m->names, &m->n_names, &m->names_capacity, name);
}

static int add_map(void *context, const struct proc_mapping *from)
{
    struct look_maps *m = context;
    const struct trace_mapping *t = &from->mapping;
    struct look_map map = {.start = t->start,
                           .end = t->start + t->bytes,
                           .rss_bytes = t->rss_bytes,
                           .owner = find_owner(from)};
    map.is_anonymous = is_anonymous(from) && !t->after_file;
    map.is_writable = from->permissions[1] == 'w';
    map.is_guard = starts_with(from->permissions, "---") && t->bytes <= MAX_GUARD;
    map.is_brk = t->kind == TRACE_MEMORY_HEAP;
    int rc = find_name(m, map.is_brk ? "" : from->name, map.owner, &map.name);
    return rc ?: HT_APPEND(&m->all, &m->n, &m->capacity, map);
}

static int count_runs(struct look_maps *m)
{
    struct look_resident *r = &m->resident;
    uint64_t sum = 0;
    r->pages = &m->pages;
    r->before = calloc(m->pages.n_runs + 1, sizeof *r->before);
    for (size_t i = 0; r->before && i < m->pages.n_runs; i++) {
        r->before[i] = sum;
        sum += m->pages.runs[i].n;
    }
    return r->before ? 0 : -ENOMEM;
}

int look_maps_read(struct look_maps *m, pid_t pid, uint64_t max_ns)
{
    const struct proc_pages_how how = {.recording = "/heaptape-",
                                       .max_ns = max_ns,
                                       .clock = CLOCK_MONOTONIC,
                                       .each = add_map,
                                       .context = m};
    *m = (struct look_maps){0};
    int rc = proc_pages_read(&m->pages, pid, &how);
    m->is_cut = rc == -ETIME;
    rc = m->is_cut ? 0 : rc;
    return rc < 0 ? rc : count_runs(m);
}

void look_maps_release(struct look_maps *m)
{
    trace_pages_release(&m->pages);
    free(m->all);
    free(m->names);
    free(m->heap);
    free(m->resident.before);
    *m = (struct look_maps){0};
}

int look_maps_add_heap(struct look_maps *m, uint64_t start, uint64_t end)
{
    return HT_APPEND(&m->heap, &m->n_heap, &m->heap_capacity, (struct look_range){start, end});
}

struct look_map *look_maps_find(const struct look_maps *m, uint64_t address)
{
    size_t i = HT_SEARCH(at, m->n, m->all[at].end > address);
    return i < m->n && m->all[i].start <= address ? &m->all[i] : NULL;
}

// Returns the index of the first run that ends after the page, or n_runs.
static size_t find_run(const struct look_resident *r, uint64_t page)
{
    const struct trace_page_run *runs = r->pages->runs;
    return HT_SEARCH(i, r->pages->n_runs, runs[i].first + runs[i].n > page);
}

uint64_t look_resident_end(const struct look_resident *r, uint64_t address)
{
    uint64_t page = address / r->pages->page_bytes;
    size_t i = find_run(r, page);
    const struct trace_page_run *run = &r->pages->runs[i];
    return i < r->pages->n_runs && run->first <= page ? (run->first + run->n) * r->pages->page_bytes
                                                      : address;
}

uint64_t look_resident_next(const struct look_resident *r, uint64_t address)
{
    size_t i = find_run(r, address / r->pages->page_bytes);
    if (i == r->pages->n_runs)
        return UINT64_MAX;
    uint64_t start = r->pages->runs[i].first * r->pages->page_bytes;
    return start > address ? start : address;
}

bool look_resident_has(const struct look_resident *r, uint64_t address)
{
    return look_resident_end(r, address) > address;
}

// Returns the number of resident pages below the page.
static uint64_t count_below(const struct look_resident *r, uint64_t page)
{
    size_t i = find_run(r, page), n = r->pages->n_runs;
    if (i == n)
        return n ? r->before[n - 1] + r->pages->runs[n - 1].n : 0;
    uint64_t first = r->pages->runs[i].first;
    return r->before[i] + (page > first ? page - first : 0);
}

uint64_t look_resident_bytes(const struct look_resident *r, uint64_t from, uint64_t to)
{
    uint64_t page = r->pages->page_bytes, first = (from + page - 1) / page, end = to / page;
    return end > first ? (count_below(r, end) - count_below(r, first)) * page : 0;
}

static int by_start(const void *a, const void *b)
{
    const struct look_range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

// Returns the stack pointer of a thread that is not running, or 0.
static uint64_t read_stack_pointer(pid_t pid, pid_t tid)
{
    char file[64], text[256];
    unsigned long long at = 0;
    snprintf(file, sizeof file, "task/%d/syscall", tid);
    proc_file_read(pid, file, text, sizeof text);
    // Format: "number 6*argument sp pc", or "-1 sp pc" outside system calls.
    if (sscanf(text, "-1 %llx", &at) != 1 &&
        sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %llx", &at) != 1)
        at = 0;
    return at;
}

static bool is_possible_stack(const struct look_map *m)
{
    return m->is_anonymous && m->is_writable && !m->is_brk && m->owner == LOOK_ANONYMOUS;
}

static bool has_guard(const struct look_maps *m, size_t i)
{
    return i > 0 && m->all[i - 1].is_guard && m->all[i - 1].end == m->all[i].start;
}

// Marks the mappings that contain stack pointers.
static void find_stack_pointers(struct look_maps *m, pid_t pid, bool in_heap)
{
    unsigned n = 0;
    DIR *tasks = proc_file_folder(pid, "task");
    for (pid_t tid; n++ < MAX_THREADS && (tid = proc_file_next(tasks));) {
        uint64_t at = read_stack_pointer(pid, tid);
        struct look_map *map = at ? look_maps_find(m, at) : NULL;
        if (map && is_possible_stack(map) && (!in_heap || has_guard(m, (size_t)(map - m->all))))
            map->owner = LOOK_STACKS;
    }
    proc_file_close_folder(tasks);
}

// Marks each mapping that is above a guard page and as large as a stack with a known stack pointer.
// Such mappings are stacks of running threads, and stacks that the C library keeps for new threads.
// If no stack pointer can be read, marks all mappings above guard pages that have at least
// MIN_STACK bytes.
static void find_other_stacks(struct look_maps *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->all[i].owner == LOOK_STACKS && has_guard(m, i))
            bytes = m->all[i].end - m->all[i].start;
    }
    for (size_t i = 0; i < m->n; i++) {
        uint64_t here = m->all[i].end - m->all[i].start;
        if (is_possible_stack(&m->all[i]) && has_guard(m, i) &&
            (bytes ? here == bytes : here >= MIN_STACK))
            m->all[i].owner = LOOK_STACKS;
    }
}

void look_maps_find_stacks(struct look_maps *m, pid_t pid, bool in_heap)
{
    find_stack_pointers(m, pid, in_heap);
    find_other_stacks(m);
}

static uint64_t resident_heap_bytes(const struct look_maps *m, const struct look_map *map)
{
    uint64_t bytes = 0;
    for (size_t i = HT_SEARCH(at, m->n_heap, m->heap[at].end > map->start);
         i < m->n_heap && m->heap[i].start < map->end; i++) {
        uint64_t from = m->heap[i].start > map->start ? m->heap[i].start : map->start,
                 to = m->heap[i].end < map->end ? m->heap[i].end : map->end;
        bytes += look_resident_bytes(&m->resident, from, to + m->pages.page_bytes - 1);
    }
    return bytes < map->rss_bytes ? bytes : map->rss_bytes;
}

static int by_resident(const void *a, const void *b)
{
    const struct look_name *x = a, *y = b;
    return x->rss_bytes < y->rss_bytes ? 1 : x->rss_bytes > y->rss_bytes ? -1 : 0;
}

static void set_names(const struct look_maps *m, struct look *l)
{
    if (m->n_names > 1)
        qsort(m->names, m->n_names, sizeof *m->names, by_resident);
    for (size_t i = 0; i < m->n_names && l->n_names < LOOK_NAMES && m->names[i].rss_bytes; i++)
        l->names[l->n_names++] = m->names[i];
}

// Adds a mapping without the part that belongs to malloc. If the allocator is not glibc's, its heap
// is unknown. The rest of the brk area then counts as malloc's unread memory.
static int add_owner(struct look_maps *m, struct look *l, struct look_map *map)
{
    uint64_t bytes = map->rss_bytes - (map->is_anonymous ? resident_heap_bytes(m, map) : 0);
    enum look_owner owner = map->owner;
    size_t name = map->name;
    if (owner == LOOK_ANONYMOUS && map->is_brk)
        owner = LOOK_UNREAD;
    else if (owner == LOOK_ANONYMOUS && l->runtime)
        owner = LOOK_RUNTIME;
    l->owners[owner] += bytes;
    if (owner == LOOK_STACKS) {
        l->stacks++;
        l->stack_bytes += map->end - map->start;
    }
    if (!bytes || owner == LOOK_STACKS || owner == LOOK_UNREAD)
        return 0;
    char text[LOOK_NAME];
    memcpy(text, m->names[name].name, sizeof text);
    if (owner != m->names[name].owner && find_name(m, text, owner, &name) < 0)
        return -ENOMEM;
    m->names[name].rss_bytes += bytes;
    m->names[name].bytes += map->end - map->start;
    m->names[name].mappings++;
    return 0;
}

int look_maps_finish(struct look_maps *m, struct look *l)
{
    int rc = 0;
    if (m->n_heap > 1)
        qsort(m->heap, m->n_heap, sizeof *m->heap, by_start);
    for (size_t i = 0; rc == 0 && i < m->n; i++)
        rc = add_owner(m, l, &m->all[i]);
    set_names(m, l);
    return rc;
}
