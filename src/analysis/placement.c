#include "analysis/placement.h"
#include "analysis/placement_arena.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BUFFER_EVENTS = 1 << 20,
    // As in most allocators, blocks of this size or more share no page with other blocks.
    BIG_GRANULES = (256 << 10) / PLACEMENT_GRANULE,
    // If a block has this size or more, the kernel can move its pages (mremap), so a resize does
    // not need memory for both sizes at the same time.
    MREMAP_GRANULES = (128 << 10) / PLACEMENT_GRANULE,
    ARENAS = 2,
    NO_ARENA = ARENAS, // arena of a block that shares no page with other blocks
};

void placement_init(struct placement_search *p, const struct placement_settings *settings)
{
    *p = (struct placement_search){.preexisting.file.fd = -1, .events.file.fd = -1};
    if (settings)
        p->settings = *settings;
    p->preexisting.limit = p->events.limit =
        p->settings.buffer_events ? p->settings.buffer_events : BUFFER_EVENTS;
}

static void events_release(struct placement_events *l)
{
    free(l->items);
    output_close(&l->file, false, NULL);
}

void placement_release(struct placement_search *p)
{
    events_release(&p->preexisting);
    events_release(&p->events);
    free(p->live);
    *p = (struct placement_search){.preexisting.file.fd = -1, .events.file.fd = -1};
}

static int write_events(struct placement_events *l, struct err *e)
{
    int rc = l->file.fd < 0 ? output_open_unnamed(&l->file, e) : 0;
    size_t bytes = l->n * sizeof *l->items;
    for (size_t done = 0; rc == 0 && done < bytes;) {
        ssize_t n = write(l->file.fd, (const char *)l->items + done, bytes - done);
        if (n < 0 && errno != EINTR)
            rc = err_set_errno(e, "cannot write the blocks of the workload to a temporary file");
        done += n > 0 ? (size_t)n : 0;
    }
    l->in_file += rc == 0 ? l->n : 0;
    l->n = 0;
    return rc;
}

static int append_event(struct placement_events *l, uint32_t slot, uint32_t granules, struct err *e)
{
    int rc = l->n == l->limit ? write_events(l, e) : 0;
    if (rc < 0)
        return rc;
    return HT_APPEND(&l->items, &l->n, &l->capacity, (struct placement_event){slot, granules}) < 0
               ? err_no_memory(e, NULL)
               : 0;
}

// Calls `apply` with each event, in order. If `apply` returns a value other than 0, stops and
// returns that value. Otherwise, returns 0.
static int each_event(struct placement_events *l,
                      int (*apply)(void *context, const struct placement_event *ev), void *context,
                      struct err *e)
{
    enum { CHUNK = 4096 };
    struct placement_event chunk[CHUNK];
    int rc = 0;
    for (uint64_t i = 0; i < l->in_file;) {
        uint64_t n = l->in_file - i < CHUNK ? l->in_file - i : CHUNK;
        ssize_t got = pread(l->file.fd, chunk, n * sizeof *chunk, (off_t)(i * sizeof *chunk));
        if (got != (ssize_t)(n * sizeof *chunk))
            return err_set(e, -EIO, "cannot read the blocks of the workload from a temporary file");
        for (uint64_t k = 0; rc == 0 && k < n; k++)
            rc = apply(context, &chunk[k]);
        if (rc < 0)
            return rc;
        i += n;
    }
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = apply(context, &l->items[i]);
    return rc;
}

static int too_big(struct err *e)
{
    return err_set(e, -EFBIG, "a block is too big for the search of a placement");
}

// Stores an allocation in `to`. Returns its size in granules, or a negative errno: -EFBIG for a
// block that does not fit in an arena.
static int64_t add_block(struct placement_search *p, struct placement_events *to, uint32_t slot,
                         uint64_t bytes, struct err *e)
{
    uint64_t granules = bytes ? (bytes - 1) / PLACEMENT_GRANULE + 1 : 1;
    if (bytes / PLACEMENT_GRANULE >= UINT32_MAX - 1)
        return too_big(e);
    if (slot >= p->n_slots && HT_EXTEND(&p->live, &p->n_slots, &p->slots_capacity, slot + 1ull) < 0)
        return err_no_memory(e, NULL);
    p->allocations++;
    int rc = append_event(to, slot, (uint32_t)granules, e);
    return rc < 0 ? rc : (int64_t)granules;
}

int placement_put(struct placement_search *p, uint32_t slot, uint64_t bytes, struct err *e)
{
    int64_t granules = add_block(p, &p->events, slot, bytes, e);
    if (granules < 0)
        return (int)granules;
    p->now += granules - p->live[slot];
    p->live[slot] = (uint32_t)granules;
    if (p->now > p->peak) {
        p->peak = p->now;
        p->peak_after = p->events.in_file + p->events.n;
    }
    return 0;
}

int placement_put_preexisting(struct placement_search *p, uint32_t slot, uint64_t bytes,
                              struct err *e)
{
    int64_t granules = add_block(p, &p->preexisting, slot, bytes, e);
    if (granules < 0)
        return (int)granules;
    p->live[slot] = (uint32_t)granules;
    p->preexisting_granules += (uint64_t)granules;
    return 0;
}

int placement_free(struct placement_search *p, uint32_t slot, struct err *e)
{
    if (slot >= p->n_slots || !p->live[slot])
        return 0;
    p->now -= p->live[slot];
    p->live[slot] = 0;
    return append_event(&p->events, slot, 0, e);
}

struct placed {
    uint64_t at;       // number of the block's first granule
    uint32_t granules; // 0 if the slot has no block
    uint32_t arena;
};

// A pass over all events that places each block at the lowest address with enough space. The first
// pass uses a single arena, and marks the blocks that are live at the peak. The second pass places
// these blocks in a separate arena until the peak is reached, so there are no holes between them.
// After the peak, new blocks fill the holes that the freed blocks leave.
struct pass {
    const struct placement_search *p;
    struct placement_arena arenas[ARENAS];
    struct placed *placed; // indexed by slot
    // Indexed by slot: number of the block's allocation; NULL if not needed.
    uint64_t *births;
    uint8_t *is_live_at_peak; // bit map, indexed by number of the allocation
    // Number of events so far, excluding preexisting blocks, and number of allocations so far.
    uint64_t event, allocated;
    uint64_t own_pages;  // pages of blocks that share no pages with other blocks
    uint64_t need_bytes; // maximum of the bytes needed so far
    bool marks, splits;
};

static uint64_t pages_of(uint32_t granules)
{
    return (granules + (uint64_t)PLACEMENT_ARENA_PAGE_GRANULES - 1) / PLACEMENT_ARENA_PAGE_GRANULES;
}

static uint32_t choose_arena(const struct pass *s, uint32_t granules)
{
    if (granules >= BIG_GRANULES && !s->p->settings.range_only)
        return NO_ARENA;
    uint64_t n = s->allocated;
    return s->splits && s->event < s->p->peak_after && !(s->is_live_at_peak[n / 8] >> n % 8 & 1);
}

static void drop_block(struct pass *s, struct placed *b)
{
    if (!b->granules)
        return;
    if (b->arena == NO_ARENA)
        s->own_pages -= pages_of(b->granules);
    else
        placement_arena_free(&s->arenas[b->arena], b->at, b->granules);
    b->granules = 0;
}

// If the block's arena stays the same and has room, resizes the block without moving it.
static bool resize_in_place(struct pass *s, struct placed *b, uint32_t granules, uint32_t arena)
{
    if (!b->granules || b->arena != arena || arena == NO_ARENA)
        return false;
    struct placement_arena *a = &s->arenas[arena];
    if (granules < b->granules)
        placement_arena_free(a, b->at + granules, b->granules - granules);
    else if (granules > b->granules &&
             !placement_arena_extend(a, b->at + b->granules, granules - b->granules))
        return false;
    b->granules = granules;
    return true;
}

static void note_need(struct pass *s)
{
    uint64_t bytes;
    if (s->p->settings.range_only)
        bytes = (placement_arena_end(&s->arenas[0]) + placement_arena_end(&s->arenas[1])) *
                PLACEMENT_GRANULE;
    else
        bytes = (s->arenas[0].used_pages + s->arenas[1].used_pages + s->own_pages) *
                PLACEMENT_ARENA_PAGE_GRANULES * PLACEMENT_GRANULE;
    s->need_bytes = bytes > s->need_bytes ? bytes : s->need_bytes;
}

static int place_block(struct pass *s, struct placed *b, uint32_t granules)
{
    struct placed new = {.granules = granules, .arena = choose_arena(s, granules)};
    if (resize_in_place(s, b, granules, new.arena))
        return 0;
    if (b->granules >= MREMAP_GRANULES && granules >= MREMAP_GRANULES)
        drop_block(s, b);
    int rc = 0;
    if (new.arena == NO_ARENA)
        s->own_pages += pages_of(granules);
    else
        rc = placement_arena_put(&s->arenas[new.arena], granules, &new.at);
    note_need(s);
    drop_block(s, b);
    *b = new;
    return rc;
}

static int apply_event(void *context, const struct placement_event *ev)
{
    struct pass *s = context;
    struct placed *b = &s->placed[ev->slot];
    if (!ev->granules) {
        drop_block(s, b);
        return 0;
    }
    int rc = place_block(s, b, ev->granules);
    note_need(s);
    if (s->births)
        s->births[ev->slot] = s->allocated;
    s->allocated++;
    return rc;
}

static void mark_live(struct pass *s)
{
    for (size_t i = 0; i < s->p->n_slots; i++) {
        if (s->placed[i].granules)
            s->is_live_at_peak[s->births[i] / 8] |= (uint8_t)(1 << s->births[i] % 8);
    }
}

static int apply_counted(void *context, const struct placement_event *ev)
{
    struct pass *s = context;
    int rc = apply_event(s, ev);
    if (++s->event == s->p->peak_after && s->births)
        mark_live(s);
    return rc;
}

static int run_pass(struct pass *s, struct placement_search *p, struct err *e)
{
    size_t n = p->n_slots + 1;
    s->p = p;
    s->placed = calloc(n, sizeof *s->placed);
    s->births = s->splits ? NULL : calloc(n, sizeof *s->births);
    int rc = s->placed && (s->births || s->splits) ? 0 : -ENOMEM;
    if (rc == 0)
        rc = each_event(&p->preexisting, apply_event, s, e);
    if (rc == 0 && !p->peak_after && s->births)
        mark_live(s);
    if (rc == 0)
        rc = each_event(&p->events, apply_counted, s, e);
    for (unsigned i = 0; i < ARENAS; i++)
        placement_arena_release(&s->arenas[i]);
    free(s->placed);
    free(s->births);
    return rc == -ENOMEM ? err_no_memory(e, NULL) : rc == -EFBIG ? too_big(e) : rc;
}

int placement_find(struct placement_search *p, struct placement_bounds *b, struct err *e)
{
    uint8_t *bits = calloc(p->allocations / 8 + 1, 1);
    struct pass first = {.is_live_at_peak = bits},
                second = {.is_live_at_peak = bits, .splits = true};
    int rc = bits ? run_pass(&first, p, e) : err_no_memory(e, NULL);
    if (rc == 0)
        rc = run_pass(&second, p, e);
    free(bits);
    *b = (struct placement_bounds){
        .lower_bytes = ((uint64_t)p->peak + p->preexisting_granules) * PLACEMENT_GRANULE,
        .found_bytes = first.need_bytes < second.need_bytes ? first.need_bytes : second.need_bytes,
        .blocks = p->allocations,
    };
    return rc;
}

struct workload_reading {
    struct placement_search placement;
    struct samples_residency residency;
    uint64_t *op_numbers; // indexed by thread: number of the thread's next op
    size_t n_threads, threads_capacity;
};

// Returns the bytes of the op's block that the program used. If the use of a big block from calloc
// is unknown, counts one page.
static uint64_t used_bytes(const struct workload_reading *d, uint32_t thread, uint64_t number,
                           const struct workload_op *op)
{
    uint64_t size = event_requested(op->kind, op->size, op->count), used = size;
    if (size < HT_BIG_BYTES || op->kind == HT_PREEXISTING)
        return size;
    const struct workload_residency *r = samples_residency_find(&d->residency, thread, number);
    if (r)
        used = (uint64_t)r->used << 10;
    else if (op->kind == HT_CALLOC)
        used = WORKLOAD_PAGE_BYTES;
    return used < size ? used : size;
}

static int read_op(struct workload_reading *d, uint32_t thread, uint64_t number,
                   const struct workload_op *op, struct err *e)
{
    struct placement_search *p = &d->placement;
    if (op->flags & WORKLOAD_FAILED || op->slot == WORKLOAD_NO_SLOT)
        return 0;
    switch (event_infos[op->kind].class) {
    case HT_CLASS_ALLOC:
        return op->kind == HT_PREEXISTING
                   ? placement_put_preexisting(p, op->slot, op->size, e)
                   : placement_put(p, op->slot, used_bytes(d, thread, number, op), e);
    case HT_CLASS_FREE:
        return placement_free(p, op->slot, e);
    case HT_CLASS_RESIZE:
        return op->flags & WORKLOAD_FREED
                   ? placement_free(p, op->slot, e)
                   : placement_put(p, op->slot, used_bytes(d, thread, number, op), e);
    }
    return 0;
}

static int read_ops(struct workload_reading *d, struct workload_reader *r, struct err *e)
{
    const struct workload_op *ops;
    uint32_t thread;
    size_t n;
    int rc;
    while ((rc = workload_next_ops(r, &thread, &ops, &n, e)) > 0) {
        if (HT_EXTEND(&d->op_numbers, &d->n_threads, &d->threads_capacity, thread + 1ull) < 0)
            return err_no_memory(e, NULL);
        for (size_t i = 0; i < n; i++) {
            rc = read_op(d, thread, d->op_numbers[thread]++, &ops[i], e);
            if (rc < 0)
                return rc;
        }
    }
    return rc;
}

int placement_read(struct workload_reader *r, struct placement_bounds *b, struct err *e)
{
    struct workload_reading d = {0};
    placement_init(&d.placement, NULL);
    int rc = workload_read_residency(r, &d.residency, e)
                 ?: read_ops(&d, r, e)
                 ?: placement_find(&d.placement, b, e);
    placement_release(&d.placement);
    samples_residency_release(&d.residency);
    free(d.op_numbers);
    return rc;
}
