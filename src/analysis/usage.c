#include "analysis/usage.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const double usage_growth_limits[USAGE_GROWTHS - 1] = {1.125, 1.25, 1.5, 1.75, 2, 3, 4, 8};

// Upper limits of the groups: 32 bytes, 256 bytes, 2 KiB, 16 KiB, 128 KiB, 1 MiB, 32 MiB, and no
// limit. glibc's thread cache ends at 1 KiB, and its mmap threshold varies between 128 KiB and 32
// MiB.
const unsigned usage_group_last[TIMELINE_GROUPS] = {2, 5, 8, 11, 14, 17, 22, USAGE_CLASSES - 1};

static const uint8_t group_of[USAGE_CLASSES] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5,
                                                5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7};

void usage_init(struct usage *u, struct usage_sums *sums, uint64_t start_stamp, double ns_per_stamp)
{
    *u = (struct usage){.sums = sums, .start_stamp = start_stamp, .ns_per_stamp = ns_per_stamp};
    u->next_event = timeline_end(&u->by_event);
    u->next_stamp = timeline_end(&u->by_time);
    u->peak.number = 1;
}

void usage_release(struct usage *u)
{
    live_blocks_release(&u->live_blocks);
    free(u->threads);
    free(u->pairs);
    map_release(&u->pair_of);
    timeline_release(&u->by_event);
    timeline_release(&u->by_time);
    *u = (struct usage){0};
}

// Returns 0 for spans up to 1, and n for longer spans up to 2^n.
static inline unsigned span_class(uint64_t span)
{
    unsigned class = span <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(span - 1);
    return class < USAGE_SPANS ? class : USAGE_SPANS - 1;
}

static int reserve_threads(struct usage *u, uint32_t thread)
{
    return thread < u->n_threads
               ? 0
               : HT_EXTEND(&u->threads, &u->n_threads, &u->threads_capacity, thread + 1ull);
}

static int count_pair(struct usage *u, uint32_t from, uint32_t to, uint64_t bytes)
{
    uint64_t key = (uint64_t)from << 32 | to;
    if (u->n_pairs == USAGE_MAX_PAIRS && !map_get(&u->pair_of, key)) {
        usage_count_block(&u->other_pairs, bytes);
        return 0;
    }
    struct usage_pair *p = MAP_ITEM(&u->pair_of, key, &u->pairs, &u->n_pairs, &u->pairs_capacity);
    if (!p)
        return -ENOMEM;
    p->from = from;
    p->to = to;
    usage_count_block(&p->count, bytes);
    return 0;
}

// If necessary, saves the figures that the class had at the peak. Call before the class changes.
static inline struct usage_count *change_class(const struct usage *u, struct usage_class *c)
{
    if (c->saved_at != u->peak.number) {
        c->peak = c->live;
        c->saved_at = u->peak.number;
    }
    return &c->live;
}

static struct usage_count at_peak(const struct usage *u, const struct usage_class *c)
{
    return c->saved_at == u->peak.number ? c->peak : c->live;
}

struct usage_count usage_at_peak(const struct usage *u, unsigned class)
{
    return at_peak(u, &u->classes[class]);
}

static struct usage_count subtract(struct usage_count from, struct usage_count c)
{
    return (struct usage_count){from.blocks - c.blocks, from.bytes - c.bytes};
}

struct usage_allocator_figures usage_of_allocator(const struct usage *u, unsigned allocator)
{
    const struct usage_allocator *a = &u->allocators[allocator];
    struct usage_allocator_figures f = {a->calls, a->blocks.live, at_peak(u, &a->blocks)};
    if (allocator)
        return f;
    f.live = u->live;
    f.peak = (struct usage_count){u->peak.blocks, u->peak.bytes};
    for (unsigned i = 1; i < HT_ALLOCATORS; i++) {
        a = &u->allocators[i];
        f.live = subtract(f.live, a->blocks.live);
        f.peak = subtract(f.peak, at_peak(u, &a->blocks));
    }
    return f;
}

bool usage_has_allocators(const struct usage *u)
{
    uint64_t any = 0;
    for (unsigned i = 1; i < HT_ALLOCATORS; i++)
        any |= u->allocators[i].calls | at_peak(u, &u->allocators[i].blocks).blocks;
    return any;
}

static inline void add_live(struct usage *u, const struct live_blocks_entry *b)
{
    usage_count_block(change_class(u, &u->classes[usage_size_class(b->size)]), b->size);
    if (__builtin_expect(b->allocator, 0))
        usage_count_block(change_class(u, &u->allocators[b->allocator].blocks), b->size);
    usage_count_block(&u->live, b->size);
    u->threads[b->thread].live_bytes += b->size;
}

static inline void uncount_block(struct usage_count *c, uint64_t bytes)
{
    c->blocks--;
    c->bytes -= bytes;
}

static inline void remove_live(struct usage *u, const struct live_blocks_entry *b)
{
    uncount_block(change_class(u, &u->classes[usage_size_class(b->size)]), b->size);
    if (__builtin_expect(b->allocator, 0))
        uncount_block(change_class(u, &u->allocators[b->allocator].blocks), b->size);
    uncount_block(&u->live, b->size);
    u->threads[b->thread].live_bytes -= b->size;
}

static inline void note_peak(struct usage *u, uint64_t event)
{
    if (u->live.blocks > u->max_blocks)
        u->max_blocks = u->live.blocks;
    if (u->live.bytes > u->peak.bytes) {
        u->peak = (struct usage_peak){
            u->peak.number + 1, event, u->last_stamp, u->live.bytes, u->live.blocks,
        };
    }
}

static void count_large(struct usage_sums *s, uint64_t size)
{
    unsigned doubling = 63 - (unsigned)__builtin_clzll(size - 1);
    unsigned i = (doubling - 13) * 4 + ((size - 1) >> (doubling - 2) & 3);
    usage_count_block(&s->large[i], size);
    // A glibc chunk is a multiple of 16 bytes, including an 8-byte header.
    s->large_rounding_bytes += (8 - size) & 15;
    frequent_add(&s->frequent, size);
}

static void count_align(struct usage_sums *s, uint64_t align, uint64_t size)
{
    unsigned i = align ? 63 - (unsigned)__builtin_clzll(align) : 0;
    usage_count_block(&s->aligns[i < USAGE_ALIGNS ? i : USAGE_ALIGNS - 1], size);
    if (align && !(align & (align - 1)))
        s->align_padding_bytes += -size & (align - 1);
}

static inline void count_request(struct usage *u, uint32_t thread, const struct workload_op *op,
                                 uint64_t size)
{
    struct usage_sums *s = u->sums;
    struct usage_kind *k = &s->kinds[op->kind];
    if (size < k->min_bytes || !k->sized)
        k->min_bytes = size;
    if (size > k->max_bytes)
        k->max_bytes = size;
    k->sized++;
    k->bytes += size;
    if (size <= USAGE_EXACT)
        s->exact[size]++;
    else
        count_large(s, size);
    if (op->align)
        count_align(s, op->align, size);
    if (op->count > s->calloc_elements_max && op->kind == HT_CALLOC)
        s->calloc_elements_max = op->count;
    u->threads[thread].allocs++;
    u->threads[thread].allocated_bytes += size;
    u->counts.allocs++;
    u->counts.allocated_bytes += size;
}

static int add_block(struct usage *u, uint32_t thread, const struct workload_op *op, uint64_t event)
{
    uint64_t size = event_requested(op->kind, op->size, op->count);
    bool preexisting = op->kind == HT_PREEXISTING;
    struct live_blocks_entry *b = live_blocks_at(&u->live_blocks, op->slot);
    if (!b)
        return -ENOMEM;
    if (__builtin_expect(b->is_live, 0)) // the workload is corrupt
        remove_live(u, b);
    *b = (struct live_blocks_entry){.size = size,
                                    .event = event,
                                    .stamp = u->last_stamp,
                                    .thread = thread,
                                    .is_live = true,
                                    .is_preexisting = preexisting,
                                    .allocator = op->allocator};
    if (!preexisting) {
        u->allocators[op->allocator].calls++;
        count_request(u, thread, op, size);
    }
    add_live(u, b);
    note_peak(u, event);
    return 0;
}

static inline int count_use(struct usage *u, uint32_t thread, const struct workload_op *op,
                            const struct live_blocks_entry *b)
{
    u->allocators[op->allocator].calls++;
    u->mismatched_frees += b->allocator != op->allocator;
    if (__builtin_expect(b->thread == thread, 1)) {
        u->threads[thread].local_frees++;
        return 0;
    }
    u->threads[thread].remote_frees++;
    u->threads[b->thread].remotely_freed++;
    return count_pair(u, b->thread, thread, b->size);
}

static inline void count_life(struct usage *u, const struct live_blocks_entry *b, uint64_t event)
{
    struct usage_sums *s = u->sums;
    if (b->is_preexisting)
        return;
    unsigned life = span_class(event - b->event);
    unsigned time = span_class((uint64_t)((double)(u->last_stamp - b->stamp) * u->ns_per_stamp));
    s->lifetimes[life][usage_size_class(b->size)]++;
    s->lifetime_bytes[life] += b->size;
    usage_count_block(&s->times[time], b->size);
}

static int release_block(struct usage *u, uint32_t thread, const struct workload_op *op,
                         uint64_t event)
{
    struct live_blocks_entry *b = live_blocks_find(&u->live_blocks, op->slot);
    if (!b) // the workload is corrupt
        return 0;
    int rc = count_use(u, thread, op, b);
    u->counts.frees++;
    count_life(u, b, event);
    remove_live(u, b);
    b->is_live = false;
    return rc;
}

static void count_resize(struct usage_resizes *r, uint64_t from, uint64_t to, bool moved)
{
    unsigned i = 0;
    if (to == from)
        r->same++;
    if (to < from)
        usage_count_block(moved ? &r->shrunk_moved : &r->shrunk_in_place, to);
    if (to <= from)
        return;
    usage_count_block(moved ? &r->grown_moved : &r->grown_in_place, from);
    while (i < USAGE_GROWTHS - 1 && (double)to > usage_growth_limits[i] * (double)from)
        i++;
    r->growths[i]++;
}

// Counts a realloc of a live block. The block keeps its age and now belongs to `thread`.
static int resize_block(struct usage *u, uint32_t thread, const struct workload_op *op,
                        uint64_t event)
{
    struct live_blocks_entry *b = live_blocks_find(&u->live_blocks, op->slot);
    uint64_t size = event_requested(op->kind, op->size, op->count);
    if (!b)
        return add_block(u, thread, op, event);
    int rc = count_use(u, thread, op, b);
    count_resize(&u->sums->resizes, b->size, size, op->flags & WORKLOAD_MOVED);
    count_request(u, thread, op, size);
    remove_live(u, b);
    b->size = size;
    b->thread = thread;
    add_live(u, b);
    note_peak(u, event);
    return rc;
}

void usage_name_thread(struct usage_thread *t, const char *name, size_t n)
{
    n = n < sizeof t->name ? n : sizeof t->name - 1;
    if (n)
        memcpy(t->name, name, n);
    t->name[n] = 0;
}

static int apply_resize(struct usage *u, uint32_t thread, const struct workload_op *op,
                        uint64_t event)
{
    struct usage_resizes *r = &u->sums->resizes;
    r->from_null += !!(op->flags & WORKLOAD_FROM_NULL);
    r->failed += !!(op->flags & WORKLOAD_FAILED);
    r->freed += !!(op->flags & WORKLOAD_FREED);
    if (op->flags & WORKLOAD_FAILED) {
        u->sums->kinds[op->kind].failed++;
        return 0;
    }
    if (op->flags & WORKLOAD_FREED)
        return release_block(u, thread, op, event);
    return op->flags & WORKLOAD_FROM_NULL ? add_block(u, thread, op, event)
                                          : resize_block(u, thread, op, event);
}

static inline int apply_op(struct usage *u, uint32_t thread, const struct workload_op *op,
                           uint64_t event)
{
    switch (event_infos[op->kind].class) {
    case HT_CLASS_ALLOC:
        if (!(op->flags & WORKLOAD_FAILED))
            return add_block(u, thread, op, event);
        u->sums->kinds[op->kind].failed++;
        return 0;
    case HT_CLASS_FREE:
        if (op->slot != WORKLOAD_NO_SLOT)
            return release_block(u, thread, op, event);
        u->sums->null_frees++;
        return 0;
    case HT_CLASS_RESIZE:
        return apply_resize(u, thread, op, event);
    case HT_CLASS_THREAD:
        if (op->kind == HT_THREAD_END)
            usage_name_thread(&u->threads[thread], op->text, op->text_bytes);
        return 0;
    }
    return 0;
}

static void fill_end(const struct usage *u, struct timeline_bin *b, uint64_t stamp)
{
    b->end_bytes = u->live.bytes;
    b->end_blocks = u->live.blocks;
    b->end_event = u->events;
    b->end_stamp = stamp;
    memset(b->groups, 0, sizeof b->groups);
    for (unsigned class = 0; class < USAGE_CLASSES; class ++)
        b->groups[group_of[class]] += u->classes[class].live.bytes;
}

static void flush_counts(struct usage *u)
{
    // The first bins start at the level of the first counts, not at 0.
    if (u->events == u->counts.events)
        u->by_event.open.counts = u->by_time.open.counts =
            (struct timeline_counts){UINT64_MAX, 0, UINT64_MAX, 0};
    timeline_counts_add(&u->by_event.open.counts, &u->counts);
    timeline_counts_add(&u->by_time.open.counts, &u->counts);
    timeline_counts_init(&u->counts, u->live.bytes, u->live.blocks);
}

// Adds the product of the live bytes and the time, in stamps, from the last op to `stamp`.
static inline void add_stamp_bytes(const struct usage *u, struct timeline_counts *c, uint64_t stamp)
{
    c->stamp_bytes += (double)u->live.bytes * (double)(stamp - u->last_stamp);
}

// Closes the bins of both timelines that end before event u->events, whose stamp is `stamp`.
static int close_bins(struct usage *u, uint64_t stamp)
{
    int rc = 0;
    flush_counts(u);
    if (u->events >= u->next_event) {
        fill_end(u, &u->by_event.open, u->last_stamp);
        rc = timeline_close(&u->by_event);
    }
    timeline_reach(&u->by_time, stamp);
    for (uint64_t end; rc == 0 && stamp >= (end = timeline_end(&u->by_time));) {
        if (end > u->last_stamp) {
            add_stamp_bytes(u, &u->by_time.open.counts, end);
            u->last_stamp = end;
        }
        fill_end(u, &u->by_time.open, end);
        rc = timeline_close(&u->by_time);
    }
    u->next_event = timeline_end(&u->by_event);
    u->next_stamp = timeline_end(&u->by_time);
    return rc;
}

static void set_start(struct usage *u, uint64_t stamp)
{
    u->started = true;
    if (!u->start_stamp || u->start_stamp > stamp)
        u->start_stamp = stamp;
}

// Prevents bin ends from overflowing on corrupt input.
#define MAX_STAMP (1ull << 62)

static inline int count_op(struct usage *u, uint32_t thread, const struct workload_op *op)
{
    if (!u->started)
        set_start(u, op->stamp);
    if (__builtin_expect(op->kind == HT_PREEXISTING, 0)) {
        int rc = apply_op(u, thread, op, u->events);
        if (!u->events) // blocks that exist before the first event determine the initial level
            timeline_counts_init(&u->counts, u->live.bytes, u->live.blocks);
        return rc;
    }
    uint64_t stamp = op->stamp - u->start_stamp;
    if (op->stamp < u->start_stamp || stamp < u->last_stamp)
        stamp = u->last_stamp;
    if (__builtin_expect(stamp > MAX_STAMP, 0))
        stamp = MAX_STAMP;
    if (__builtin_expect(u->events >= u->next_event || stamp >= u->next_stamp, 0) &&
        close_bins(u, stamp) < 0)
        return -ENOMEM;
    struct timeline_counts *c = &u->counts;
    add_stamp_bytes(u, c, stamp);
    u->last_stamp = stamp;
    int rc = apply_op(u, thread, op, u->events++);
    u->sums->kinds[op->kind].calls++;
    u->threads[thread].events++;
    c->events++;
    c->event_bytes += (double)u->live.bytes;
    c->min_bytes = u->live.bytes < c->min_bytes ? u->live.bytes : c->min_bytes;
    c->max_bytes = u->live.bytes > c->max_bytes ? u->live.bytes : c->max_bytes;
    c->min_blocks = u->live.blocks < c->min_blocks ? u->live.blocks : c->min_blocks;
    c->max_blocks = u->live.blocks > c->max_blocks ? u->live.blocks : c->max_blocks;
    return rc;
}

// Prefetch distance for live blocks, in ops. The table of blocks can be larger than the caches.
enum { AHEAD = 8 };

int usage_ops(struct usage *u, const struct workload_thread_op *ops, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i + AHEAD < n)
            live_blocks_prefetch(&u->live_blocks, ops[i + AHEAD].op.slot);
        rc = reserve_threads(u, ops[i].thread) ?: count_op(u, ops[i].thread, &ops[i].op);
    }
    return rc;
}

int usage_run(struct usage *u, uint32_t thread, const struct workload_op *ops, size_t n)
{
    int rc = reserve_threads(u, thread);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i + AHEAD < n)
            live_blocks_prefetch(&u->live_blocks, ops[i + AHEAD].slot);
        rc = count_op(u, thread, &ops[i]);
    }
    return rc;
}

// Closes a timeline's last bin, which may be narrower than the others.
static int finish_timeline(const struct usage *u, struct timeline *t)
{
    fill_end(u, &t->open, u->last_stamp);
    if (!t->open.counts.events && t->n)
        return 0;
    return HT_APPEND(&t->bins, &t->n, &t->capacity, t->open);
}

static void count_left(struct usage *u)
{
    for (size_t i = 0; i < u->live_blocks.n; i++) {
        const struct live_blocks_entry *b = &u->live_blocks.items[i];
        if (!b->is_live)
            continue;
        usage_count_block(&u->sums->never_freed_sizes[usage_size_class(b->size)], b->size);
        usage_count_block(&u->sums->never_freed_ages[span_class(u->events - b->event)], b->size);
    }
}

int usage_finish(struct usage *u)
{
    flush_counts(u);
    count_left(u);
    int rc = finish_timeline(u, &u->by_event);
    return rc < 0 ? rc : finish_timeline(u, &u->by_time);
}

uint64_t usage_freed_after(const struct usage_sums *s, unsigned span)
{
    uint64_t n = 0;
    for (unsigned class = 0; class < USAGE_CLASSES; class ++)
        n += s->lifetimes[span][class];
    return n;
}
