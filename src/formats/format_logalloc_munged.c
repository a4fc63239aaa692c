// Firefox's logalloc after processing by logalloc_munge.py, which numbers processes, threads and
// blocks.
//
// The numbering follows the script. Processes are numbered from 1 in order of appearance, and so
// are the threads of each process. Blocks are numbered from 1; a NULL argument counts as a block
// that is never freed. The importer and the exporter avoid two faults of the script: a failed
// realloc keeps its block, and a result that is already live gets a new number.
#include "base/buf.h"
#include "formats/export.h"
#include "formats/logalloc.h"
#include "formats/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// Live blocks of a process, indexed by slot. Used for reading. `far` holds the slots above a limit
// that depends on the length of the log; only damaged logs have such slots.
struct munged_live {
    uint8_t *bits;
    size_t bytes;
    struct map far;
};

// Numbers of a process's live blocks, from 1. The number that has been free the longest is assigned
// next. Initialize with zeros.
struct munged_slots {
    struct map by_block;
    uint64_t *free; // ring buffer of free numbers
    size_t first, n_free, capacity;
    uint64_t next; // highest number assigned so far
};

struct munged_process {
    struct munged_live live; // for reading
    // The following members are used for writing.
    struct map threads; // maps tid + 1 to the thread's number
    struct munged_slots slots;
};

struct munged_log {
    struct map by_pid; // maps a pid to the process's index in `processes` plus 1
    struct munged_process *processes;
    size_t n, capacity;
    uint64_t last_pid;
    struct munged_process *last; // process of the last call, or NULL
};

static struct munged_process *get_process(struct munged_log *m, uint64_t pid)
{
    if (m->last && m->last_pid == pid)
        return m->last;
    m->last_pid = pid;
    m->last = MAP_ITEM(&m->by_pid, pid, &m->processes, &m->n, &m->capacity);
    return m->last;
}

static void release_log(void *state)
{
    struct munged_log *m = state;
    for (size_t i = 0; i < m->n; i++) {
        struct munged_process *p = &m->processes[i];
        free(p->live.bits);
        map_release(&p->live.far);
        map_release(&p->threads);
        map_release(&p->slots.by_block);
        free(p->slots.free);
    }
    free(m->processes);
    map_release(&m->by_pid);
}

enum { LIVE_BITS_A_LINE = 64, LIVE_FIRST_BYTES = 4096 };

// Grows the bits to cover `slot`, unless `slot` exceeds the limit for a log of `lines` lines.
static int live_grow(struct munged_live *l, uint64_t slot, uint64_t lines)
{
    size_t had = l->bytes;
    if (slot / 8 < had || slot / LIVE_BITS_A_LINE > lines + LIVE_FIRST_BYTES)
        return 0;
    size_t want = slot / 8 + 1 > LIVE_FIRST_BYTES ? slot / 8 + 1 : LIVE_FIRST_BYTES;
    if (HT_GROW(&l->bits, &l->bytes, want) < 0)
        return -ENOMEM;
    memset(l->bits + had, 0, l->bytes - had);
    // Copy the slots in `far` that the bits now cover.
    for (size_t i = 0; i < l->far.capacity; i++) {
        uint64_t far = l->far.cells[i].key;
        if (l->far.cells[i].value && far / 8 < l->bytes)
            l->bits[far / 8] |= (uint8_t)(1 << far % 8);
    }
    return 0;
}

// Returns true if the slot was live.
static bool live_remove(struct munged_live *l, uint64_t slot)
{
    if (slot / 8 >= l->bytes) {
        bool was = map_get(&l->far, slot) != 0;
        map_remove(&l->far, slot);
        return was;
    }
    uint8_t bit = (uint8_t)(1 << slot % 8), *byte = &l->bits[slot / 8];
    bool was = *byte & bit;
    *byte &= (uint8_t)~bit;
    return was;
}

static int live_add(struct munged_live *l, uint64_t slot, uint64_t lines)
{
    if (live_grow(l, slot, lines) < 0)
        return -ENOMEM;
    if (slot / 8 >= l->bytes)
        return map_put(&l->far, slot, 1);
    l->bits[slot / 8] |= (uint8_t)(1 << slot % 8);
    return 0;
}

// Replaces a block that is not live with NULL, because NULL is the only unknown block in a munged
// log. Returns 0 or -ENOMEM.
static int name_blocks(struct munged_log *m, struct text_call *call, uint64_t lines)
{
    struct event *ev = &call->event;
    struct munged_process *p = get_process(m, call->pid);
    if (!p)
        return -ENOMEM;
    if (ev->ptr && !live_remove(&p->live, text_slot_of(ev->ptr)))
        ev->ptr = 0;
    return ev->result ? live_add(&p->live, text_slot_of(ev->result), lines) : 0;
}

static int read_munged_line(struct import *im, struct text_line *line)
{
    struct text_call call;
    const char *expected = logalloc_parse(&line->at, line->end, &logalloc_munged, &call);
    if (expected)
        return text_bad(im, line, expected);
    if (name_blocks(im->state, &call, im->source.line) < 0)
        return import_no_memory(im);
    return import_put(im, (uint32_t)call.pid, call.tid, &call.event);
}

// Assigns an unused number to the block. Returns the number, or 0 when out of memory.
static uint64_t slots_assign(struct munged_slots *s, uint64_t block)
{
    uint64_t number = s->n_free ? s->free[s->first] : s->next + 1;
    if (map_put(&s->by_block, block, number) < 0)
        return 0;
    if (!s->n_free) {
        s->next++;
        return number;
    }
    s->first = (s->first + 1) & (s->capacity - 1);
    s->n_free--;
    return number;
}

static int slots_grow(struct munged_slots *s)
{
    size_t capacity = s->capacity ? s->capacity * 2 : 64;
    uint64_t *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_free; i++)
        ring[i] = s->free[(s->first + i) & (s->capacity - 1)];
    free(s->free);
    s->free = ring;
    s->first = 0;
    s->capacity = capacity;
    return 0;
}

// Frees the block's number. Returns 0 or -ENOMEM.
static int slots_remove(struct munged_slots *s, uint64_t block)
{
    uint64_t number = map_get(&s->by_block, block);
    if (!number)
        return 0;
    if (s->n_free == s->capacity && slots_grow(s) < 0)
        return -ENOMEM;
    map_remove(&s->by_block, block);
    s->free[(s->first + s->n_free++) & (s->capacity - 1)] = number;
    return 0;
}

static uint64_t number_thread(struct munged_process *p, uint32_t tid)
{
    uint64_t number = map_get(&p->threads, tid + 1ull);
    if (number)
        return number;
    number = p->threads.n + 1;
    return map_put(&p->threads, tid + 1ull, number) < 0 ? 0 : number;
}

// Replaces the event's blocks with numbers. Returns 1, 0 if the call must be dropped, or -ENOMEM.
static int number_blocks(struct munged_slots *s, struct event *ev)
{
    if (event_infos[ev->kind].fields & HT_F_PTR) {
        uint64_t block = ev->ptr, number = map_get(&s->by_block, block);
        if (!number && block)
            return 0;
        ev->ptr = number ? number : slots_assign(s, 0);
        if (!ev->ptr || (block && slots_remove(s, block) < 0))
            return -ENOMEM;
    }
    if (!ev->result)
        return 1;
    ev->result = slots_assign(s, ev->result);
    return ev->result ? 1 : -ENOMEM;
}

// Drops a call and reports it as the line that a raw log would contain.
static int drop_call(struct export *x, const struct export_call *c, const char *why)
{
    char line[TEXT_EXPORT_LINE + 100], *to = line;
    struct event ev = export_event(x, &c->ev);
    to = logalloc_put(TEXT_PUT(to, "dropped \""), &logalloc_raw, c->pid, c->tid, &ev);
    snprintf(to - 1, sizeof line - (size_t)(to - line), "\": %s", why);
    return export_drop(x, line);
}

static int put_munged(struct export *x, const struct export_call *c)
{
    struct munged_process *p = get_process(x->state, c->pid);
    uint64_t thread = p ? number_thread(p, c->tid) : 0;
    struct event ev = c->ev;
    if (c->failed)
        return drop_call(x, c, "its result is NULL");
    // A result that is already live gets a new number, so the frees that the export adds are not
    // needed.
    if (c->added)
        return 0;
    // A realloc without a result freed its block.
    if (ev.kind == HT_REALLOC && !ev.result) {
        ev = (struct event){.kind = HT_FREE, .ptr = ev.ptr};
        x->losses[EXPORT_FREED_BY_REALLOC]++;
    }
    int rc = thread ? number_blocks(&p->slots, &ev) : -ENOMEM;
    if (rc == 0)
        return drop_call(x, c, "its block was never allocated");
    if (rc < 0)
        return export_no_memory(x);
    const struct munged_log *m = x->state;
    uint64_t number = (uint64_t)(p - m->processes) + 1;
    char *to = (char *)export_buffer_reserve(&x->out, TEXT_EXPORT_LINE);
    export_buffer_commit(&x->out, logalloc_put(to, &logalloc_munged, number, thread, &ev));
    return 0;
}

const struct format format_logalloc_munged = {
    .name = "logalloc-munged",
    .import =
        {
            .line = read_munged_line,
            .state_bytes = sizeof(struct munged_log),
            .release = release_log,
            .several_processes = true,
            .window = 1 << 12,
        },
    .export =
        {
            // `holds` includes failed calls, so that put_munged can drop and report them.
            .holds = LOGALLOC_HOLDS,
            .kinds = logalloc_kinds,
            .state_bytes = sizeof(struct munged_log),
            .put = put_munged,
            .release = release_log,
        },
};
