// Reads wl files: plays the threads' streams against their syncs. The threads advance alike, each by the same part of its
// stream at a time, because that is how they are most likely to have run.
#include "formats/format_wl.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WINDOWS_BYTES = 32 << 20, // for what is read of all streams at a time
    MAX_WINDOW_BYTES = 1 << 16,
    MIN_WINDOW_BYTES = 64, // holds any op
    OP_BYTES = 1 + 3 * WL_VARINT_BYTES,
    PASS_BYTES = 256, // of the longest stream that are played before the other streams go on
    NOBODY = 0xffffffff,
};

struct wl_player {
    uint64_t offset;     // of bytes[0] in the file
    uint64_t start, end; // of the stream: it ends where the next one begins at the latest
    uint64_t pass_bytes; // how much of it is played in a pass
    uint64_t pass_end;
    uint8_t *bytes;
    uint32_t at, n;
    uint32_t next; // waiting for the same sync
    uint64_t sync; // waited for
    bool done;
};

struct wl_import {
    struct import *im;
    uint64_t file_bytes, n_ptrs, n_syncs, n_threads;
    struct wl_player *players;
    size_t n, capacity;
    size_t window_bytes;
    uint8_t *posted; // one bit a sync
    size_t posted_bytes;
    struct map waiting; // sync → first player that waits for it + 1
    uint32_t *ready;    // players that can go on
    size_t n_ready;
    uint32_t n_blocked;
};

// The bytes used, 0 when it is cut off or has more than 64 bits.
static size_t get_varint(const uint8_t *at, size_t n, uint64_t *v)
{
    uint64_t r = 0;
    for (size_t i = 0; i < n && i < WL_VARINT_BYTES; i++) {
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

static int no_memory(struct wl_import *w)
{
    return err_set(w->im->e, -ENOMEM, "%s: out of memory", w->im->source.in->name);
}

static int add_player(struct wl_import *w, uint64_t offset, uint64_t at)
{
    if (offset >= w->file_bytes)
        return err_set(
            w->im->e, -EBADMSG,
            "%s: expected the offset of a thread's stream inside the file, found %llu at byte %llu",
            w->im->source.in->name, (unsigned long long)offset, (unsigned long long)at);
    if (HT_GROW(&w->players, &w->capacity, w->n + 1) < 0)
        return no_memory(w);
    w->players[w->n++] = (struct wl_player){.offset = offset, .start = offset};
    return 0;
}

static int header_item(struct wl_import *w, unsigned op, uint64_t v, uint64_t at)
{
    switch (op) {
    case WL_ALLOC_PTRS:
        w->n_ptrs = v;
        return 0;
    case WL_ALLOC_SYNCS:
        w->n_syncs = v;
        return 0;
    case WL_NTHREADS:
        w->n_threads = v;
        return 0;
    case WL_START_THREAD:
        return add_player(w, v, at);
    }
    return 0;
}

static int not_wl(struct wl_import *w, uint64_t at)
{
    return err_set(w->im->e, -EPROTO,
                   "%s: expected the header of a wl file (codes 8 to 11, then 1) at byte %llu",
                   w->im->source.in->name, (unsigned long long)at);
}

static int read_header(struct wl_import *w)
{
    struct import_source *s = &w->im->source;
    for (;;) {
        ssize_t n = import_source_want(s, 1 + WL_VARINT_BYTES, w->im->e);
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
            return not_wl(w, offset);
        s->at += 1 + used;
        int rc = header_item(w, op, v, offset);
        if (rc < 0)
            return rc;
    }
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
        return no_memory(w);
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
    // Twice: one that blocks and is woken within a pass stands in it twice.
    w->ready = rc == 0 ? malloc(2 * w->n * sizeof *w->ready) : NULL;
    if (!w->ready)
        return no_memory(w);
    size_t window = WINDOWS_BYTES / w->n;
    w->window_bytes = window < MIN_WINDOW_BYTES   ? MIN_WINDOW_BYTES
                      : window < MAX_WINDOW_BYTES ? window
                                                  : MAX_WINDOW_BYTES;
    for (size_t i = 0; i < w->n; i++)
        w->ready[w->n_ready++] = (uint32_t)i;
    return 0;
}

// Makes sure that the next op is in the window, as far as the file has it.
static int fill(struct wl_import *w, struct wl_player *p)
{
    if (!p->bytes)
        p->bytes = malloc(w->window_bytes);
    if (!p->bytes)
        return no_memory(w);
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

// All that wait for it can go on.
static int post(struct wl_import *w, uint64_t sync)
{
    size_t had = w->posted_bytes;
    if (HT_GROW(&w->posted, &w->posted_bytes, sync / 8 + 1) < 0)
        return no_memory(w);
    memset(w->posted + had, 0, w->posted_bytes - had);
    w->posted[sync / 8] |= (uint8_t)(1 << sync % 8);
    uint64_t first = w->n_blocked ? map_get(&w->waiting, sync) : 0;
    for (uint32_t i = (uint32_t)first - 1; first && i != NOBODY; i = w->players[i].next) {
        w->ready[w->n_ready++] = i;
        w->n_blocked--;
    }
    return first ? map_put(&w->waiting, sync, NOBODY + 1ull) : 0;
}

// 1: the player is put aside.
static int wait_for(struct wl_import *w, struct wl_player *p, uint64_t sync)
{
    if (is_posted(w, sync))
        return 0;
    uint64_t first = map_get(&w->waiting, sync);
    p->next = first ? (uint32_t)(first - 1) : NOBODY;
    p->sync = sync;
    w->n_blocked++;
    return map_put(&w->waiting, sync, (uint64_t)(p - w->players) + 1) < 0 ? no_memory(w) : 1;
}

struct op_info {
    uint8_t operands;
    uint8_t indices; // how many of them, the first ones, name blocks
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

static struct event event_of(unsigned op, const uint64_t v[3])
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

// The op at the window's start: 1 when it is whole and its operands can be, and *bytes is set; else 0 or a negative errno:
// what follows in the stream cannot be made out.
static int decode(struct wl_import *w, struct wl_player *p, uint64_t v[3], size_t *bytes)
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

// A bad operand: the op is skipped under keep_going.
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
    // The stock converter states one less than the number of syncs.
    if (syncs && (v[0] > w->n_syncs || v[0] > w->file_bytes))
        return import_bad(w->im, offset, "expected a sync up to %llu, found %llu",
                          (unsigned long long)w->n_syncs, (unsigned long long)v[0]);
    return 1;
}

static int do_op(struct wl_import *w, struct wl_player *p, unsigned op, const uint64_t v[3])
{
    switch (op) {
    case WL_NOP:
        return 0;
    case WL_SYNC_W:
        return post(w, v[0]);
    case WL_SYNC_R:
        return wait_for(w, p, v[0]);
    }
    struct event ev = event_of(op, v);
    return import_put(w->im, 1, (uint64_t)(p - w->players) + 1, &ev);
}

// One op: 0 to go on, 1 when the player has to wait, or a negative errno.
static int step(struct wl_import *w, struct wl_player *p)
{
    uint64_t v[3] = {0};
    size_t bytes = 0;
    int rc = p->n - p->at < OP_BYTES ? fill(w, p) : 0;
    if (rc < 0)
        return rc;
    if (p->at < p->n && p->bytes[p->at] == WL_DONE) {
        end_player(p);
        return 0;
    }
    rc = decode(w, p, v, &bytes);
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

// Plays one pass of each player that can go on.
static int play_pass(struct wl_import *w)
{
    size_t kept = 0, n = w->n_ready;
    for (size_t i = 0; i < n; i++) {
        struct wl_player *p = &w->players[w->ready[i]];
        int rc = 0;
        p->pass_end += p->pass_bytes;
        while (rc == 0 && !p->done && p->offset + p->at < p->pass_end)
            rc = step(w, p);
        if (rc < 0)
            return rc;
        if (rc == 0 && !p->done)
            w->ready[kept++] = w->ready[i];
    }
    // Those that were woken stand behind the others.
    memmove(w->ready + kept, w->ready + n, (w->n_ready - n) * sizeof *w->ready);
    w->n_ready -= n - kept;
    return 0;
}

// No player can go on. Under keep_going the syncs that are waited for count as posted.
static int release_blocked(struct wl_import *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct wl_player *p = &w->players[i];
        if (p->done || is_posted(w, p->sync))
            continue;
        int rc = import_bad(w->im, p->offset + p->at,
                            "deadlock: sync %llu is never posted, and a thread waits for it",
                            (unsigned long long)p->sync);
        if (rc == 0)
            rc = post(w, p->sync);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int play(struct wl_import *w)
{
    int rc = 0;
    while (rc == 0 && w->n_ready) {
        rc = play_pass(w);
        if (rc == 0 && !w->n_ready && w->n_blocked)
            rc = release_blocked(w);
    }
    return rc;
}

int wl_import(struct import *im)
{
    struct wl_import w = {.im = im, .file_bytes = im->source.in->size_bytes};
    int rc = read_header(&w);
    // The export of a workload without calls has no threads.
    if (rc == 0 && w.n)
        rc = begin_players(&w);
    if (rc == 0 && w.n)
        rc = play(&w);
    for (size_t i = 0; i < w.n; i++)
        free(w.players[i].bytes);
    free(w.players);
    free(w.ready);
    free(w.posted);
    map_release(&w.waiting);
    return rc;
}
