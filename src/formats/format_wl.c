// The workload of glibc's dj/malloc branch (trace2wl, trace_run): a stream of ops for each thread, parted by syncs.
// docs/reference/foreign-formats.md, "wl". Reading: format_wl_import.c.
#include "formats/format_wl.h"
#include "formats/streams.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_OP_BYTES = 1 + 3 * WL_VARINT_BYTES };

// How far a thread has come, for the syncs.
struct wl_thread {
    uint64_t ops;     // calls seen, the dropped ones included
    struct map known; // other thread + 1 → how many of its calls the last sync with it comes after
    struct workload_dependency *dependencies; // of dropped calls, for the next one written
    size_t n_dependencies, dependencies_capacity;
};

struct wl_export {
    struct streams streams;
    struct wl_thread *threads;
    size_t n, capacity;
    uint64_t highest; // index
    uint64_t syncs;
};

static uint8_t *put_varint(uint8_t *to, uint64_t v)
{
    unsigned groups = v ? (70u - (unsigned)__builtin_clzll(v)) / 7 : 1;
    while (--groups)
        *to++ = (uint8_t)(0x80 | v >> 7 * groups);
    *to++ = v & 0x7f;
    return to;
}

static int no_memory(struct export *x)
{
    return err_set(x->e, -ENOMEM, "%s: out of memory", x->out.out->name);
}

static struct wl_thread *thread_of(struct export *x, uint32_t thread)
{
    struct wl_export *w = x->state;
    if (HT_GROW(&w->threads, &w->capacity, thread + 1ull) < 0)
        return NULL;
    for (; w->n <= thread; w->n++)
        w->threads[w->n] = (struct wl_thread){0};
    return &w->threads[thread];
}

static int put_sync(struct wl_export *w, uint32_t thread, enum wl_op op)
{
    uint8_t bytes[MOST_OP_BYTES] = {(uint8_t)op};
    return streams_put(&w->streams, thread, bytes,
                       (size_t)(put_varint(bytes + 1, w->syncs) - bytes));
}

// The other thread posts a sync where it is now, which is behind the op that is depended on: all calls come in a valid
// order. A dependency that an earlier sync implies needs none.
static int put_dependency(struct export *x, uint32_t thread, const struct workload_dependency *d)
{
    struct wl_export *w = x->state;
    struct wl_thread *self = thread_of(x, thread > d->thread ? thread : d->thread);
    if (!self)
        return no_memory(x);
    self = &w->threads[thread];
    if (map_get(&self->known, d->thread + 1ull) > d->op)
        return 0;
    if (map_put(&self->known, d->thread + 1ull, w->threads[d->thread].ops) < 0)
        return no_memory(x);
    w->syncs++;
    int rc = put_sync(w, d->thread, WL_SYNC_W);
    return rc < 0 ? rc : put_sync(w, thread, WL_SYNC_R);
}

static int put_dependencies(struct export *x, uint32_t thread,
                            const struct workload_dependency *dependencies, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_dependency(x, thread, &dependencies[i]);
    return rc;
}

static enum wl_op op_of(const struct event *ev)
{
    switch (ev->kind) {
    case HT_CALLOC:
        return WL_CALLOC;
    case HT_REALLOC:
        return WL_REALLOC;
    case HT_FREE:
        return WL_FREE;
    case HT_MEMALIGN:
        return WL_MEMALIGN;
    }
    return WL_MALLOC;
}

// The indices are slots + 1; 0 stands for NULL.
static uint8_t *put_operands(uint8_t *to, enum wl_op op, const struct event *ev)
{
    if (op == WL_FREE)
        return put_varint(to, ev->ptr);
    to = put_varint(to, ev->result);
    if (op == WL_REALLOC)
        to = put_varint(to, ev->ptr);
    // The player checks the alignment of what it gets, by a mask that 0 would make of all bits.
    if (op == WL_MEMALIGN)
        to = put_varint(to, ev->align ? ev->align : 1);
    return put_varint(to, event_requested(ev->kind, ev->size, ev->count));
}

static int wl_put(struct export *x, const struct export_call *c)
{
    struct wl_export *w = x->state;
    struct wl_thread *self = thread_of(x, c->thread);
    if (!self)
        return no_memory(x);
    int rc = self->n_dependencies
                 ? put_dependencies(x, c->thread, self->dependencies, self->n_dependencies)
                 : 0;
    if (rc == 0 && c->n_dependencies)
        rc = put_dependencies(x, c->thread, c->dependencies, c->n_dependencies);
    if (rc < 0)
        return rc;
    self = &w->threads[c->thread];
    self->n_dependencies = 0;
    self->ops++;
    if (c->ev.result > w->highest)
        w->highest = c->ev.result;
    enum wl_op op = op_of(&c->ev);
    uint8_t bytes[MOST_OP_BYTES] = {(uint8_t)op};
    return streams_put(&w->streams, c->thread, bytes,
                       (size_t)(put_operands(bytes + 1, op, &c->ev) - bytes));
}

// The next call of the thread gets the dependencies of a dropped one.
static int wl_drop(struct export *x, const struct export_call *c)
{
    struct wl_thread *self = thread_of(x, c->thread);
    if (!self)
        return no_memory(x);
    self->ops++;
    for (uint32_t i = 0; i < c->n_dependencies; i++) {
        if (HT_GROW(&self->dependencies, &self->dependencies_capacity, self->n_dependencies + 1) <
            0)
            return no_memory(x);
        self->dependencies[self->n_dependencies++] = c->dependencies[i];
    }
    return 0;
}

static size_t varint_bytes(uint64_t v)
{
    uint8_t bytes[WL_VARINT_BYTES];
    return (size_t)(put_varint(bytes, v) - bytes);
}

static void put_item(struct export_buffer *to, enum wl_op op, uint64_t v)
{
    uint8_t *at = export_buffer_reserve(to, 1 + WL_VARINT_BYTES);
    *at++ = (uint8_t)op;
    export_buffer_commit(to, put_varint(at, v));
}

// Offsets of the streams in the file, in an array that the caller frees; NULL when out of memory. They follow the header,
// whose length depends on how many bytes they have: it grows until all fits.
static uint64_t *lay_out(const struct streams *s, size_t head_bytes)
{
    uint64_t *offsets = malloc((s->n + 1) * sizeof *offsets);
    size_t guess = 0, bytes = head_bytes;
    while (offsets && bytes != guess) {
        uint64_t at = guess = bytes;
        bytes = head_bytes;
        for (size_t i = 0; i < s->n; i++) {
            offsets[i] = at;
            at += streams_bytes(s, i);
            bytes += 1 + varint_bytes(offsets[i]);
        }
    }
    return offsets;
}

static int wl_end(struct export *x)
{
    struct wl_export *w = x->state;
    const uint8_t done = WL_DONE;
    for (size_t i = 0; i < w->streams.n; i++) {
        int rc = streams_put(&w->streams, i, &done, 1);
        if (rc < 0)
            return rc;
    }
    // The player's table of syncs is as long as stated, and they begin with 1.
    const uint64_t facts[] = {w->highest + 1, w->syncs + 1, w->streams.n};
    size_t head_bytes =
        3 + varint_bytes(facts[0]) + varint_bytes(facts[1]) + varint_bytes(facts[2]) + 1;
    uint64_t *offsets = lay_out(&w->streams, head_bytes);
    if (!offsets)
        return no_memory(x);
    put_item(&x->out, WL_ALLOC_PTRS, facts[0]);
    put_item(&x->out, WL_ALLOC_SYNCS, facts[1]);
    put_item(&x->out, WL_NTHREADS, facts[2]);
    for (size_t i = 0; i < w->streams.n; i++)
        put_item(&x->out, WL_START_THREAD, offsets[i]);
    free(offsets);
    export_buffer_put(&x->out, &done, 1);
    return streams_write(&w->streams, &x->out);
}

static int wl_begin(struct export *x)
{
    struct wl_export *w = x->state;
    w->streams.e = x->e;
    return 0;
}

static void wl_release(struct export *x)
{
    struct wl_export *w = x->state;
    for (size_t i = 0; i < w->n; i++) {
        map_release(&w->threads[i].known);
        free(w->threads[i].dependencies);
    }
    free(w->threads);
    streams_release(&w->streams);
}

static const uint8_t kinds[] = {HT_MALLOC, HT_CALLOC, HT_FREE, HT_REALLOC, HT_MEMALIGN, 0};

const struct format format_wl = {
    .name = "wl",
    .import =
        {
            .read = wl_import,
            .seeks = true,
            .window = 1 << 16,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_NULL,
            .kinds = kinds,
            .state_bytes = sizeof(struct wl_export),
            .begin = wl_begin,
            .put = wl_put,
            .drop = wl_drop,
            .end = wl_end,
            .release = wl_release,
        },
};
