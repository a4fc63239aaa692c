// Firefox's logalloc as logalloc_munge.py leaves it: processes, threads and blocks are numbered.
//
// The numbering is the script's: processes and, in each, threads from 1 on in the order in which they appear; blocks as in
// slots.h, NULL as an argument being a block that is never given up. Two faults of the script are not: a realloc that failed
// leaves its block as it was, and a result that is live already gets a number of its own.
#include "base/buf.h"
#include "formats/export.h"
#include "formats/logalloc.h"
#include "formats/slots.h"
#include "formats/text.h"
#include "formats/text_import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// The blocks of a process that are live in a log under import, by slot. Slots are small numbers, unless a log is damaged:
// those beyond what its length explains are kept apart.
struct live {
    uint8_t *bits;
    size_t bytes;
    struct map far;
};

struct processes {
    struct map by_pid; // place in `live` + 1
    struct live *live;
    size_t n, capacity;
    uint64_t last_pid;
    struct live *last; // NULL: none
};

enum { LIVE_BITS_A_LINE = 64, LIVE_FIRST_BYTES = 4096 };

static struct live *live_new(struct processes *p, uint64_t pid)
{
    if (HT_GROW(&p->live, &p->capacity, p->n + 1) < 0 || map_put(&p->by_pid, pid, p->n + 1) < 0)
        return NULL;
    p->live[p->n] = (struct live){0};
    return &p->live[p->n++];
}

static struct live *live_of(struct processes *p, uint64_t pid)
{
    if (!p->last || p->last_pid != pid) {
        uint64_t at = map_get(&p->by_pid, pid);
        p->last_pid = pid;
        p->last = at ? &p->live[at - 1] : live_new(p, pid);
    }
    return p->last;
}

static void release_processes(struct processes *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->live[i].bits);
        map_release(&p->live[i].far);
    }
    free(p->live);
    map_release(&p->by_pid);
}

// Makes the bits reach to the slot if so many lines explain it.
static int live_grow(struct live *l, uint64_t slot, uint64_t lines)
{
    size_t had = l->bytes;
    if (slot / 8 < had || slot / LIVE_BITS_A_LINE > lines + LIVE_FIRST_BYTES)
        return 0;
    size_t want = slot / 8 + 1 > LIVE_FIRST_BYTES ? slot / 8 + 1 : LIVE_FIRST_BYTES;
    if (HT_GROW(&l->bits, &l->bytes, want) < 0)
        return -ENOMEM;
    memset(l->bits + had, 0, l->bytes - had);
    // What was beyond the bits is looked for there from now on.
    for (size_t i = 0; i < l->far.capacity; i++) {
        uint64_t far = l->far.cells[i].key;
        if (l->far.cells[i].value && far / 8 < l->bytes)
            l->bits[far / 8] |= (uint8_t)(1 << far % 8);
    }
    return 0;
}

// True when the slot was live; it is no longer.
static bool live_give(struct live *l, uint64_t slot)
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

static int live_take(struct live *l, uint64_t slot, uint64_t lines)
{
    if (live_grow(l, slot, lines) < 0)
        return -ENOMEM;
    if (slot / 8 >= l->bytes)
        return map_put(&l->far, slot, 1);
    l->bits[slot / 8] |= (uint8_t)(1 << slot % 8);
    return 0;
}

// A block that is not live is NULL's: calls with others that were not seen taken are in no munged log. 0 or -ENOMEM.
static int name_blocks(struct processes *p, struct text_call *call, uint64_t lines)
{
    struct event *ev = &call->event;
    struct live *l = live_of(p, call->pid);
    if (!l)
        return -ENOMEM;
    if (ev->ptr && !live_give(l, text_slot_of(ev->ptr)))
        ev->ptr = 0;
    return ev->result ? live_take(l, text_slot_of(ev->result), lines) : 0;
}

static int import_lines(struct import *im, struct processes *processes)
{
    struct text_line line;
    struct text_call call;
    int rc;
    while ((rc = text_next(im, &line)) > 0) {
        const char *at = line.text, *expected = logalloc_parse(&at, line.end, true, &call);
        if (!expected && name_blocks(processes, &call, im->source.line) < 0)
            return err_set(im->e, -ENOMEM, "%s: out of memory", im->source.in->name);
        rc = expected ? text_bad(im, &line, at, expected) : import_put(im, (uint32_t)call.pid, call.tid, &call.event);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int import_munged(struct import *im)
{
    struct processes processes = {0};
    int rc = import_lines(im, &processes);
    release_processes(&processes);
    return rc;
}

struct munged_process {
    uint64_t number;
    struct map threads; // tid + 1 → number
    struct slots slots;
};

struct munged_export {
    struct map by_pid; // pid → place in processes + 1
    struct munged_process **processes;
    size_t n, capacity;
    uint32_t last_pid;
    struct munged_process *last; // NULL: none
};

static struct munged_process *process_new(struct munged_export *m, uint32_t pid)
{
    struct munged_process *p = NULL;
    if (HT_GROW(&m->processes, &m->capacity, m->n + 1) < 0 || map_put(&m->by_pid, pid, m->n + 1) < 0 ||
        !(p = calloc(1, sizeof *p)))
        return NULL;
    m->processes[m->n++] = p;
    p->number = m->n;
    return p;
}

static struct munged_process *process_of(struct munged_export *m, uint32_t pid)
{
    if (m->last && m->last_pid == pid)
        return m->last;
    uint64_t at = map_get(&m->by_pid, pid);
    m->last_pid = pid;
    m->last = at ? m->processes[at - 1] : process_new(m, pid);
    return m->last;
}

static uint64_t thread_of(struct munged_process *p, uint32_t tid)
{
    uint64_t number = map_get(&p->threads, tid + 1ull);
    if (number)
        return number;
    number = p->threads.n + 1;
    return map_put(&p->threads, tid + 1ull, number) < 0 ? 0 : number;
}

// The event's blocks become their numbers. 1; 0 when the call is to be dropped; -ENOMEM.
static int number_blocks(struct slots *s, struct event *ev)
{
    if (event_infos[ev->kind].fields & HT_F_PTR) {
        uint64_t block = ev->ptr, number = slots_get(s, block);
        if (!number && block)
            return 0;
        ev->ptr = number ? number : slots_take(s, 0);
        if (!ev->ptr || (block && slots_give(s, block) < 0))
            return -ENOMEM;
    }
    if (!ev->result)
        return 1;
    ev->result = slots_take(s, ev->result);
    return ev->result ? 1 : -ENOMEM;
}

static char *put_block(char *to, uint64_t number)
{
    *to++ = '#';
    return text_decimal(to, number);
}

// Names the line that a raw log would have.
static int drop(struct export *x, const struct call *c, const char *why)
{
    char line[TEXT_EXPORT_LINE + 100], *to = line;
    to = text_decimal(TEXT_PUT(to, "dropped \""), c->pid);
    *to++ = ' ';
    to = text_decimal(to, c->tid);
    *to++ = ' ';
    struct event ev = c->ev;
    ev.ptr = export_address(x, ev.ptr);
    ev.result = export_address(x, ev.result);
    to = logalloc_put_call(to, &ev, logalloc_put_address);
    snprintf(to - 1, sizeof line - (size_t)(to - line), "\": %s", why);
    return export_drop(x, line);
}

static int put_munged(struct export *x, const struct call *c)
{
    struct munged_process *p = process_of(x->state, c->pid);
    uint64_t thread = p ? thread_of(p, c->tid) : 0;
    struct event ev = c->ev;
    if (c->failed)
        return drop(x, c, "its result is NULL");
    // What is left of a realloc without a result has freed its block.
    if (ev.kind == HT_REALLOC && !ev.result) {
        ev = (struct event){.kind = HT_FREE, .ptr = ev.ptr};
        x->freed_by_realloc++;
    }
    int rc = thread ? number_blocks(&p->slots, &ev) : -ENOMEM;
    if (rc == 0)
        return drop(x, c, "its block was never allocated");
    if (rc < 0)
        return err_set(x->e, rc, "%s: out of memory", x->out.out->name);
    char *to = (char *)sink_room(&x->out, TEXT_EXPORT_LINE);
    to = text_decimal(to, p->number);
    *to++ = ' ';
    to = text_decimal(to, thread);
    *to++ = ' ';
    sink_used(&x->out, logalloc_put_call(to, &ev, put_block));
    return 0;
}

static void release_munged(struct export *x)
{
    struct munged_export *m = x->state;
    for (size_t i = 0; i < m->n; i++) {
        map_release(&m->processes[i]->threads);
        slots_release(&m->processes[i]->slots);
        free(m->processes[i]);
    }
    free(m->processes);
    map_release(&m->by_pid);
}

const struct format format_logalloc_munged = {
    .name = "logalloc-munged",
    .import = import_munged,
    .several_processes = true,
    .window = 1 << 12,
    // Failed calls are dropped here, to be named.
    .holds = FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL |
             FORMAT_HOLDS_ADDRESSES | FORMAT_ALTERNATES,
    .kinds = logalloc_kinds,
    .state_bytes = sizeof(struct munged_export),
    .put = put_munged,
    .release = release_munged,
};
