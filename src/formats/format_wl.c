// Workloads of glibc's dj/malloc branch (trace2wl, trace_run): one stream of ops per thread,
// ordered by syncs. docs/reference/foreign-formats.md, "wl".
#include "formats/export.h"
#include "formats/import.h"
#include "formats/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum wl_op {
    WL_NOP = 0,
    WL_DONE = 1,
    WL_MALLOC = 2,
    WL_CALLOC = 3,
    WL_REALLOC = 4,
    WL_FREE = 5,
    WL_SYNC_W = 6,
    WL_SYNC_R = 7,
    WL_ALLOC_PTRS = 8,
    WL_ALLOC_SYNCS = 9,
    WL_NTHREADS = 10,
    WL_START_THREAD = 11,
    WL_MEMALIGN = 12,
    WL_VALLOC = 13,
    WL_PVALLOC = 14,
    WL_POSIX_MEMALIGN = 15,
};

enum { VARINT_BYTES = 10, OP_BYTES = 1 + 3 * VARINT_BYTES };

struct op_info {
    uint8_t operands;
    uint8_t indices; // number of leading operands that are blocks
    uint8_t kind;
};

static const struct op_info op_infos[] = {
    [WL_NOP] = {0, 0, 0},
    [WL_MALLOC] = {2, 1, HT_MALLOC},
    [WL_CALLOC] = {2, 1, HT_CALLOC},
    [WL_REALLOC] = {3, 2, HT_REALLOC},
    [WL_FREE] = {1, 1, HT_FREE},
    [WL_SYNC_W] = {1, 0, 0},
    [WL_SYNC_R] = {1, 0, 0},
    [WL_MEMALIGN] = {3, 1, HT_MEMALIGN},
    [WL_VALLOC] = {2, 1, HT_VALLOC},
    [WL_PVALLOC] = {2, 1, HT_PVALLOC},
    [WL_POSIX_MEMALIGN] = {3, 1, HT_POSIX_MEMALIGN},
};

// State of a thread, used to place syncs.
struct wl_thread {
    uint64_t ops; // number of calls so far, including dropped ones
    // Maps (other thread + 1) to the number of calls that the other thread had made when it posted
    // its last sync for this thread.
    struct map known;
    // Dependencies of dropped calls, to be attached to the next call that is written.
    struct workload_dependency *dependencies;
    size_t n_dependencies, dependencies_capacity;
};

struct wl_export {
    struct streams streams;
    struct wl_thread *threads;
    size_t n, capacity;
    uint64_t highest; // highest block index
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

static struct wl_thread *get_thread(struct export *x, uint32_t thread)
{
    struct wl_export *w = x->state;
    int rc = HT_EXTEND(&w->threads, &w->n, &w->capacity, thread + 1ull);
    return rc < 0 ? NULL : &w->threads[thread];
}

static int put_sync(struct wl_export *w, uint32_t thread, enum wl_op op)
{
    uint8_t bytes[OP_BYTES] = {(uint8_t)op};
    return streams_put(&w->streams, thread, bytes,
                       (size_t)(put_varint(bytes + 1, w->syncs) - bytes));
}

// Makes the other thread post a sync at its current position. That position is after the op that
// the dependency names, because calls arrive in a valid order. If an earlier sync already implies
// the dependency, does nothing.
static int put_dependency(struct export *x, uint32_t thread, const struct workload_dependency *d)
{
    struct wl_export *w = x->state;
    struct wl_thread *self = get_thread(x, thread > d->thread ? thread : d->thread);
    if (!self)
        return export_no_memory(x);
    self = &w->threads[thread];
    if (map_get(&self->known, d->thread + 1ull) > d->op)
        return 0;
    if (map_put(&self->known, d->thread + 1ull, w->threads[d->thread].ops) < 0)
        return export_no_memory(x);
    w->syncs++;
    return put_sync(w, d->thread, WL_SYNC_W) ?: put_sync(w, thread, WL_SYNC_R);
}

static int put_dependencies(struct export *x, uint32_t thread,
                            const struct workload_dependency *dependencies, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_dependency(x, thread, &dependencies[i]);
    return rc;
}

// Writes a call's operands. A block index is slot + 1, or 0 for NULL.
static uint8_t *put_operands(uint8_t *to, enum wl_op op, const struct event *ev)
{
    if (op == WL_FREE)
        return put_varint(to, ev->ptr);
    to = put_varint(to, ev->result);
    if (op == WL_REALLOC)
        to = put_varint(to, ev->ptr);
    // The player checks block alignment with the mask align - 1, so align must not be 0.
    if (op == WL_MEMALIGN)
        to = put_varint(to, ev->align ? ev->align : 1);
    return put_varint(to, event_requested(ev->kind, ev->size, ev->count));
}

static int wl_put(struct export *x, const struct export_call *c)
{
    struct wl_export *w = x->state;
    struct wl_thread *self = get_thread(x, c->thread);
    if (!self)
        return export_no_memory(x);
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
    enum wl_op op = WL_MALLOC;
    while (op_infos[op].kind != c->ev.kind) // every kind in `kinds` has an op
        op++;
    uint8_t bytes[OP_BYTES] = {(uint8_t)op};
    return streams_put(&w->streams, c->thread, bytes,
                       (size_t)(put_operands(bytes + 1, op, &c->ev) - bytes));
}

// Transfers a dropped call's dependencies to the thread's next call.
static int wl_drop(struct export *x, const struct export_call *c)
{
    struct wl_thread *self = get_thread(x, c->thread);
    if (!self)
        return export_no_memory(x);
    self->ops++;
    for (uint32_t i = 0; i < c->n_dependencies; i++) {
        if (HT_APPEND(&self->dependencies, &self->n_dependencies, &self->dependencies_capacity,
                      c->dependencies[i]) < 0)
            return export_no_memory(x);
    }
    return 0;
}

static size_t varint_bytes(uint64_t v)
{
    uint8_t bytes[VARINT_BYTES];
    return (size_t)(put_varint(bytes, v) - bytes);
}

static void put_item(struct export_buffer *to, enum wl_op op, uint64_t v)
{
    uint8_t *at = export_buffer_reserve(to, 1 + VARINT_BYTES);
    *at++ = (uint8_t)op;
    export_buffer_commit(to, put_varint(at, v));
}

// Returns an array with the file offset of each stream, or NULL when out of memory. The caller
// frees the array. The streams follow the header. The length of the header depends on the offsets,
// so the length is increased until it no longer changes.
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
    // The player's table has one entry per sync, and syncs are numbered from 1.
    const uint64_t facts[] = {w->highest + 1, w->syncs + 1, w->streams.n};
    size_t head_bytes =
        3 + varint_bytes(facts[0]) + varint_bytes(facts[1]) + varint_bytes(facts[2]) + 1;
    uint64_t *offsets = lay_out(&w->streams, head_bytes);
    if (!offsets)
        return export_no_memory(x);
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

static void wl_release(void *state)
{
    struct wl_export *w = state;
    for (size_t i = 0; i < w->n; i++) {
        map_release(&w->threads[i].known);
        free(w->threads[i].dependencies);
    }
    free(w->threads);
    streams_release(&w->streams);
}

// Reading. Each thread's stream has a player, which executes the ops and blocks at syncs. In each
// pass, all streams advance by the same fraction of their length, because the recorded threads most
// likely did so too.

enum {
    WINDOWS_BYTES = 32 << 20, // total size of all windows
    MAX_WINDOW_BYTES = 1 << 16,
    MIN_WINDOW_BYTES = 64, // more than any op needs
    PASS_BYTES = 256,      // bytes of the longest stream that are read per pass
    NO_PLAYER = 0xffffffff,
};

struct wl_player {
    uint64_t offset;     // offset of bytes[0] in the file
    uint64_t start, end; // start and end of the stream; `end` is where the next stream begins
    uint64_t pass_bytes; // number of bytes to read per pass
    uint64_t pass_end;
    uint8_t *bytes;
    uint32_t at, n;
    uint32_t next; // next player waiting for the same sync
    uint64_t sync; // sync that this player is waiting for
    bool done;
};

struct wl_import {
    struct import *im;
    uint64_t file_bytes, n_ptrs, n_syncs, n_threads;
    struct wl_player *players;
    size_t n, capacity;
    size_t window_bytes;
    uint8_t *posted; // one bit per sync
    size_t posted_bytes;
    struct map waiting; // maps a sync to the index of the first waiting player plus 1
    uint32_t *ready;    // players that are not blocked
    size_t n_ready;
    uint32_t n_blocked;
};

// Returns the number of bytes used, or 0 if the varint is truncated or exceeds 64 bits.
static size_t get_varint(const uint8_t *at, size_t n, uint64_t *v)
{
    uint64_t r = 0;
    for (size_t i = 0; i < n && i < VARINT_BYTES; i++) {
        if (r >> 57)
            return 0;
        r = r << 7 | (at[i] & 0x7f);
        if (!(at[i] & 0x80)) {
            *v = r;
            return i + 1;
        }
    }
    return 0;
}

static int add_player(struct wl_import *w, uint64_t offset, uint64_t at)
{
    if (offset >= w->file_bytes)
        return err_set(
            w->im->e, -EBADMSG,
            "%s: expected the offset of a thread's stream inside the file, found %llu at byte %llu",
            w->im->source.in->name, (unsigned long long)offset, (unsigned long long)at);
    return HT_APPEND(&w->players, &w->n, &w->capacity,
                     (struct wl_player){.offset = offset, .start = offset}) < 0
               ? import_no_memory(w->im)
               : 0;
}

static int read_header(struct wl_import *w)
{
    struct import_source *s = &w->im->source;
    uint64_t numbers[WL_START_THREAD - WL_ALLOC_PTRS] = {0};
    for (;;) {
        ssize_t n = import_source_want(s, 1 + VARINT_BYTES, w->im->e);
        if (n < 0)
            return (int)n;
        const uint8_t *at = s->data + s->at;
        uint64_t v, offset = import_source_offset(s);
        unsigned op = n ? at[0] : WL_NOP;
        if (op == WL_DONE)
            break;
        size_t used = op >= WL_ALLOC_PTRS && op <= WL_START_THREAD
                          ? get_varint(at + 1, (size_t)n - 1, &v)
                          : 0;
        if (!used)
            return err_set(
                w->im->e, -EPROTO,
                "%s: expected the header of a wl file (codes 8 to 11, then 1) at byte %llu",
                s->in->name, (unsigned long long)offset);
        s->at += 1 + used;
        int rc = 0;
        if (op == WL_START_THREAD)
            rc = add_player(w, v, offset);
        else
            numbers[op - WL_ALLOC_PTRS] = v;
        if (rc < 0)
            return rc;
    }
    w->n_ptrs = numbers[0];
    w->n_syncs = numbers[1];
    w->n_threads = numbers[2];
    if (w->n == w->n_threads)
        return 0;
    return err_set(w->im->e, -EBADMSG,
                   "%s: expected the streams of %llu threads, found %zu at byte %llu", s->in->name,
                   (unsigned long long)w->n_threads, w->n,
                   (unsigned long long)import_source_offset(s));
}

static int by_start(const void *a, const void *b)
{
    const struct wl_player *x = *(struct wl_player *const *)a, *y = *(struct wl_player *const *)b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int set_passes(struct wl_import *w)
{
    struct wl_player **sorted = malloc(w->n * sizeof *sorted);
    uint64_t longest = 1;
    if (!sorted)
        return import_no_memory(w->im);
    for (size_t i = 0; i < w->n; i++)
        sorted[i] = &w->players[i];
    qsort(sorted, w->n, sizeof *sorted, by_start);
    for (size_t i = 0; i < w->n; i++) {
        struct wl_player *p = sorted[i];
        p->end = i + 1 < w->n ? sorted[i + 1]->start : w->file_bytes;
        longest = p->end - p->start > longest ? p->end - p->start : longest;
    }
    for (size_t i = 0; i < w->n; i++) {
        struct wl_player *p = &w->players[i];
        p->pass_bytes = (uint64_t)((double)(p->end - p->start) / (double)longest * PASS_BYTES) + 1;
        p->pass_end = p->start;
    }
    free(sorted);
    return 0;
}

static int begin_players(struct wl_import *w)
{
    int rc = set_passes(w);
    // A player that blocks and wakes up within a pass appears in the list twice.
    w->ready = rc == 0 ? malloc(2 * w->n * sizeof *w->ready) : NULL;
    if (!w->ready)
        return import_no_memory(w->im);
    size_t window = WINDOWS_BYTES / w->n;
    w->window_bytes = window < MIN_WINDOW_BYTES   ? MIN_WINDOW_BYTES
                      : window < MAX_WINDOW_BYTES ? window
                                                  : MAX_WINDOW_BYTES;
    for (size_t i = 0; i < w->n; i++)
        w->ready[w->n_ready++] = (uint32_t)i;
    return 0;
}

// Reads the stream's next op into the window, unless the file ends first.
static int fill_window(struct wl_import *w, struct wl_player *p)
{
    if (!p->bytes)
        p->bytes = malloc(w->window_bytes);
    if (!p->bytes)
        return import_no_memory(w->im);
    p->n -= p->at;
    memmove(p->bytes, p->bytes + p->at, p->n);
    p->offset += p->at;
    p->at = 0;
    while (p->n < OP_BYTES && p->offset + p->n < p->end) {
        uint64_t left = p->end - p->offset - p->n;
        size_t space = w->window_bytes - p->n, want = left < space ? left : space;
        ssize_t n = pread(w->im->source.in->fd, p->bytes + p->n, want, (off_t)(p->offset + p->n));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(w->im->e, "%s", w->im->source.in->name);
        if (n == 0)
            break;
        p->n += (uint32_t)n;
    }
    return 0;
}

static void end_player(struct wl_player *p)
{
    p->done = true;
    free(p->bytes);
    p->bytes = NULL;
}

static bool is_posted(const struct wl_import *w, uint64_t sync)
{
    return sync / 8 < w->posted_bytes && w->posted[sync / 8] >> sync % 8 & 1;
}

// Posts a sync and wakes the players waiting for it.
static int post_sync(struct wl_import *w, uint64_t sync)
{
    size_t had = w->posted_bytes;
    if (HT_GROW(&w->posted, &w->posted_bytes, sync / 8 + 1) < 0)
        return import_no_memory(w->im);
    memset(w->posted + had, 0, w->posted_bytes - had);
    w->posted[sync / 8] |= (uint8_t)(1 << sync % 8);
    uint64_t first = w->n_blocked ? map_get(&w->waiting, sync) : 0;
    for (uint32_t i = (uint32_t)first - 1; first && i != NO_PLAYER; i = w->players[i].next) {
        w->ready[w->n_ready++] = i;
        w->n_blocked--;
    }
    return first ? map_put(&w->waiting, sync, NO_PLAYER + 1ull) : 0;
}

// Returns 1 if the player must block.
static int wait_for(struct wl_import *w, struct wl_player *p, uint64_t sync)
{
    if (is_posted(w, sync))
        return 0;
    uint64_t first = map_get(&w->waiting, sync);
    p->next = first ? (uint32_t)(first - 1) : NO_PLAYER;
    p->sync = sync;
    w->n_blocked++;
    return map_put(&w->waiting, sync, (uint64_t)(p - w->players) + 1) < 0 ? import_no_memory(w->im)
                                                                          : 1;
}

static struct event make_event(unsigned op, const uint64_t v[3])
{
    const struct op_info *info = &op_infos[op];
    struct event ev = {.kind = info->kind, .size = info->operands ? v[info->operands - 1] : 0};
    if (op == WL_FREE)
        return (struct event){.kind = HT_FREE, .ptr = v[0] << 4};
    ev.result = v[0] << 4;
    ev.count = op == WL_CALLOC;
    if (op == WL_REALLOC)
        ev.ptr = v[1] << 4;
    if (op == WL_MEMALIGN || op == WL_POSIX_MEMALIGN)
        ev.align = v[1];
    return ev;
}

// Decodes the op at the start of the window. Returns 1 and sets *bytes. If the op is invalid,
// returns 0 or a negative errno, and the rest of the stream cannot be decoded.
static int decode_op(struct wl_import *w, struct wl_player *p, uint64_t v[3], size_t *bytes)
{
    const uint8_t *at = p->bytes + p->at;
    size_t n = p->n - p->at, used = 1;
    uint64_t offset = p->offset + p->at;
    if (n == 0)
        return import_cut_off(w->im, offset, "the stream of a thread");
    unsigned op = at[0];
    if (op >= sizeof op_infos / sizeof *op_infos || (op >= WL_ALLOC_PTRS && op <= WL_START_THREAD))
        return import_bad(w->im, offset, "expected an op, found code %u", op);
    for (unsigned i = 0; i < op_infos[op].operands; i++) {
        size_t got = get_varint(at + used, n - used, &v[i]);
        if (!got)
            return import_bad(w->im, offset, "expected a complete op");
        used += got;
    }
    *bytes = used;
    return 1;
}

// Checks the operands. Returns 1, or the result of import_bad.
static int check_operands(struct wl_import *w, const struct wl_player *p, unsigned op,
                          const uint64_t v[3])
{
    uint64_t offset = p->offset + p->at;
    for (unsigned i = 0; i < op_infos[op].indices; i++) {
        if (v[i] >= w->n_ptrs)
            return import_bad(w->im, offset, "expected an index below %llu, found %llu",
                              (unsigned long long)w->n_ptrs, (unsigned long long)v[i]);
    }
    bool syncs = op == WL_SYNC_R || op == WL_SYNC_W;
    // trace2wl writes a count that is one less than the number of syncs.
    if (syncs && (v[0] > w->n_syncs || v[0] > w->file_bytes))
        return import_bad(w->im, offset, "expected a sync up to %llu, found %llu",
                          (unsigned long long)w->n_syncs, (unsigned long long)v[0]);
    return 1;
}

static int do_op(struct wl_import *w, struct wl_player *p, unsigned op, const uint64_t v[3])
{
    if (op == WL_SYNC_W)
        return post_sync(w, v[0]);
    if (op == WL_SYNC_R)
        return wait_for(w, p, v[0]);
    struct event ev = make_event(op, v);
    return op == WL_NOP ? 0 : import_put(w->im, 1, (uint64_t)(p - w->players) + 1, &ev);
}

// Executes one op. Returns 0, 1 if the player is blocked, or a negative errno.
static int do_next_op(struct wl_import *w, struct wl_player *p)
{
    uint64_t v[3] = {0};
    size_t bytes = 0;
    int rc = p->n - p->at < OP_BYTES ? fill_window(w, p) : 0;
    if (rc < 0)
        return rc;
    if (p->at < p->n && p->bytes[p->at] == WL_DONE) {
        end_player(p);
        return 0;
    }
    rc = decode_op(w, p, v, &bytes);
    if (rc <= 0) {
        end_player(p);
        return rc;
    }
    unsigned op = p->bytes[p->at];
    rc = check_operands(w, p, op, v);
    if (rc > 0)
        rc = do_op(w, p, op, v);
    p->at += (uint32_t)bytes;
    return rc;
}

// Runs one pass of every player that is not blocked.
static int play_pass(struct wl_import *w)
{
    size_t kept = 0, n = w->n_ready;
    for (size_t i = 0; i < n; i++) {
        struct wl_player *p = &w->players[w->ready[i]];
        int rc = 0;
        p->pass_end += p->pass_bytes;
        while (rc == 0 && !p->done && p->offset + p->at < p->pass_end)
            rc = do_next_op(w, p);
        if (rc < 0)
            return rc;
        if (rc == 0 && !p->done)
            w->ready[kept++] = w->ready[i];
    }
    // Players that woke up during the pass are at the end of the list.
    memmove(w->ready + kept, w->ready + n, (w->n_ready - n) * sizeof *w->ready);
    w->n_ready -= n - kept;
    return 0;
}

// Called when all players are blocked. With keep_going, posts the syncs they are waiting
// for.
static int release_blocked(struct wl_import *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct wl_player *p = &w->players[i];
        if (p->done || is_posted(w, p->sync))
            continue;
        int rc = import_bad(w->im, p->offset + p->at,
                            "deadlock: a thread waits for sync %llu, which is never posted,",
                            (unsigned long long)p->sync)
                     ?: post_sync(w, p->sync);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int play_all(struct wl_import *w)
{
    int rc = 0;
    while (rc == 0 && w->n_ready) {
        rc = play_pass(w);
        if (rc == 0 && !w->n_ready && w->n_blocked)
            rc = release_blocked(w);
    }
    return rc;
}

static int wl_import(struct import *im)
{
    struct wl_import w = {.im = im, .file_bytes = im->source.in->size_bytes};
    int rc = read_header(&w);
    // An exported workload without calls has no threads.
    if (rc == 0 && w.n)
        rc = begin_players(&w);
    if (rc == 0 && w.n)
        rc = play_all(&w);
    for (size_t i = 0; i < w.n; i++)
        free(w.players[i].bytes);
    free(w.players);
    free(w.ready);
    free(w.posted);
    map_release(&w.waiting);
    return rc;
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
