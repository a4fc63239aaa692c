// Adds a workload's ops to a plan, and checks them.
#include "base/buf.h"
#include "replay/plan/build.h"
#include "workload/format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// The op being added.
struct pending_op {
    struct plan *plan;
    struct plan_stream *stream;
    // Thread in the player, and thread in the workload. The numbers differ if one thread plays all
    // ops.
    uint32_t thread, recorded;
    const struct workload_op *op;
    uint64_t number; // position in the workload's thread; set only if residency was recorded
    struct err *e;
};

__attribute__((format(printf, 2, 3))) static int refuse_op(const struct pending_op *a,
                                                           const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(a->e, -EBADMSG, "%s: op %llu of thread %u %s", a->plan->name,
                   (unsigned long long)a->stream->ops, a->thread, text);
}

static int need_stream(struct plan *p, uint64_t thread, struct plan_stream **s, struct err *e)
{
    if (thread >= PLAN_MAX_THREADS)
        return err_set(e, -EBADMSG, "%s: thread %llu: only %d threads can be replayed", p->name,
                       (unsigned long long)thread, PLAN_MAX_THREADS);
    if (HT_EXTEND(&p->streams, &p->n_streams, &p->streams_capacity, thread + 1) < 0)
        return err_no_memory(e, NULL);
    *s = p->streams[thread];
    if (*s)
        return 0;
    *s = p->streams[thread] = calloc(1, sizeof **p->streams);
    if (!*s)
        return err_no_memory(e, NULL);
    (*s)->number = (uint32_t)thread;
    (*s)->memory = p->facts.streamed ? &p->ring : &p->memory;
    return 0;
}

// Returns the op's slot, and grows the table if the slot is new. Even a tiny workload may name any
// slot, so the memory limit also applies to the table.
static int need_slot(struct pending_op *a, struct plan_slot **slot)
{
    struct plan *p = a->plan;
    uint64_t n = (uint64_t)a->op->slot + 1;
    *slot = NULL;
    if (n > p->n_slots && n > p->memory_bytes / sizeof *p->slots)
        return refuse_op(a,
                         "has slot %u: the table of slots does not fit into the memory allowed "
                         "(try a larger --memory)",
                         a->op->slot);
    if (HT_EXTEND(&p->slots, &p->n_slots, &p->slots_capacity, n) < 0)
        return err_no_memory(a->e, NULL);
    *slot = &p->slots[a->op->slot];
    return 0;
}

// Like need_slot, but refuses the op unless the slot has a block, or is empty if `empty` is true.
static int find_slot(struct pending_op *a, bool empty, struct plan_slot **slot)
{
    int rc = need_slot(a, slot);
    if (rc < 0 || !(*slot)->entry == empty)
        return rc;
    return empty ? refuse_op(a, "allocates into slot %u, which already holds a block", a->op->slot)
                 : refuse_op(a, "uses slot %u, which holds no block", a->op->slot);
}

static void count_live(struct pending_op *a, uint64_t change)
{
    struct plan *p = a->plan;
    a->stream->live_change = plan_wrapping_add(a->stream->live_change, (int64_t)change);
    p->coupling.bytes += (int64_t)change < 0 ? 0 - change : change;
    p->live = plan_wrapping_add(p->live, (int64_t)change);
    if (p->live > p->peak) {
        p->peak = p->live;
        p->facts.ops_to_peak = p->added + 1;
    }
}

static int put_counted(struct pending_op *a, const struct plan_call *c)
{
    a->stream->counted_events++;
    a->stream->unsampled_events++;
    a->plan->coupling.calls++;
    a->plan->facts.events++;
    a->plan->facts.by_kind[plan_op_info(c->op).kind]++;
    return plan_put_call(a->plan, a->stream, c, a->e);
}

// Appends an op that makes no call, so that later ops keep the numbers that they have in the
// workload.
static int put_without_call(struct pending_op *a)
{
    return plan_put_call(a->plan, a->stream, &(struct plan_call){.op = PLAN_SKIPPED}, a->e);
}

static int put_skipped(struct pending_op *a)
{
    a->plan->facts.skipped++;
    return put_without_call(a);
}

// Appends a COUNT, which plan_finish() may turn into a SAMPLE.
static int put_sample(struct pending_op *a)
{
    struct plan *p = a->plan;
    const struct plan_live_point point = {p->facts.events, p->live};
    int rc = plan_put_count(p, a->stream, a->e);
    if (rc < 0)
        return rc;
    a->stream->unsampled_events = 0;
    return HT_APPEND(&p->samples, &p->n_samples, &p->samples_capacity, a->stream->next - 2) < 0 ||
                   HT_APPEND(&p->points, &p->n_points, &p->points_capacity, point) < 0
               ? err_no_memory(a->e, NULL)
               : 0;
}

// Appends a PACE unless the stream has a recent PACE. More frequent PACEs would not help, because a
// sleep is accurate only to about 10 µs, and allocators that delay the return of memory wait at
// least 10 ms.
static int put_pace(struct pending_op *a, uint64_t stamp)
{
    enum { PACE_STEP_NS = 20000, CLOCK_STEP_NS = 500000 };
    struct plan *p = a->plan;
    if (!(p->settings.ns_per_stamp > 0) || a->op->kind == HT_PREEXISTING ||
        stamp < a->stream->pace_stamp)
        return 0;
    double ns =
        stamp > p->first_stamp ? (double)(stamp - p->first_stamp) * p->settings.ns_per_stamp : 0;
    if (ns >= (double)(1ull << 55))
        return p->settings.paced ? refuse_op(a, "is more than a year later than the first one") : 0;
    double step = (p->settings.paced ? PACE_STEP_NS : CLOCK_STEP_NS) / p->settings.ns_per_stamp;
    a->stream->pace_stamp = stamp + (uint64_t)step;
    return plan_put_word(p, a->stream, (uint64_t)PLAN_PACE | (uint64_t)ns << 8, a->e);
}

static int put_dependencies(struct pending_op *a)
{
    struct plan *p = a->plan;
    for (uint32_t i = 0; i < a->op->n_dependencies; i++) {
        const struct workload_dependency *w = &a->op->dependencies[i];
        const struct plan_stream *other = w->thread < p->n_streams ? p->streams[w->thread] : NULL;
        if (!other || w->op >= other->ops)
            return refuse_op(a, "depends on op %llu of thread %u, which does not come before it",
                             (unsigned long long)w->op, w->thread);
        int rc = plan_wait_for_op(p, a->stream, other, w->op, a->e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

// Allocates a slot table entry for the slot's new block. Call before the op is appended, because
// the entry may require a WAIT.
static int allocate_entry(struct pending_op *a, struct plan_slot *slot)
{
    struct slot_table_batch *batch;
    if (slot_table_allocate(&a->plan->slot_table, &a->stream->pool, &slot->entry, &batch) < 0)
        return err_no_memory(a->e, NULL);
    if (a->plan->slot_table.limit > a->plan->memory_bytes / 8)
        return refuse_op(a, "is one block too many: the slot table does not fit into the memory "
                            "allowed (try a larger --memory)");
    int rc = 0;
    if (batch && batch->from_thread != a->thread)
        rc = plan_put_wait(a->plan, a->stream, batch->from_thread, batch->position, a->e);
    free(batch);
    return rc;
}

// Offers surplus entries to other threads. These threads may use the entries after this thread's
// latest op.
static int share_entries(struct pending_op *a)
{
    uint64_t position = plan_stream_publish(a->stream, a->stream->ops - 1);
    return slot_table_share(&a->plan->slot_table, &a->stream->pool, a->thread, position) < 0
               ? err_no_memory(a->e, NULL)
               : 0;
}

static int free_entry(struct pending_op *a, struct plan_slot *slot)
{
    int surplus = slot_table_free(&a->stream->pool, slot->entry);
    slot->entry = 0;
    if (surplus < 0)
        return err_no_memory(a->e, NULL);
    return surplus ? share_entries(a) : 0;
}

// Sets the block's size to the size that the op requests.
static int set_size(struct pending_op *a, struct plan_slot *slot)
{
    struct plan *p = a->plan;
    uint64_t size = event_requested(a->op->kind, a->op->size, a->op->count);
    if (size > PTRDIFF_MAX)
        return refuse_op(a, "requests %llu × %llu bytes, more than any allocator can provide",
                         (unsigned long long)a->op->count, (unsigned long long)a->op->size);
    count_live(a, size - slot->size);
    slot->size = size;
    if (size > p->max_block_bytes)
        p->max_block_bytes = size;
    return 0;
}

// Converts a block's measured KiB to the number of KiB to touch. Only whole pages of the block were
// measured. The number of whole pages depends on the block's address. If all whole pages were used,
// the rest of the block was used as well. With another allocator, the rest may start a new page.
static uint64_t of_block_kib(uint64_t kib, uint64_t size)
{
    uint64_t whole = WORKLOAD_PAGE_BYTES;
    return kib / WORKLOAD_PAGE_KIB >= size / whole - 1
               ? (size + whole - 1) / whole * WORKLOAD_PAGE_KIB
               : kib;
}

// Returns the known use of other blocks from the same call site or, if the site is unknown, in the
// same size class. Blocks from calloc are counted separately. Returns NULL when out of memory.
static struct plan_use *use_by_site(struct plan *p, const struct workload_op *op, uint64_t size,
                                    bool zeroed)
{
    uint64_t site = format_op_site(op);
    unsigned class = 63 - (unsigned)__builtin_clzll(size);
    if (!site)
        return &p->uses[zeroed][class];
    uint64_t key = site << 7 | class << 1 | zeroed, number = map_get(&p->use_of_site, key);
    if (number)
        return &p->site_uses[number - 1];
    if (HT_GROW(&p->site_uses, &p->site_uses_capacity, p->n_site_uses + 1) < 0 ||
        map_put(&p->use_of_site, key, p->n_site_uses + 1) < 0)
        return NULL;
    p->site_uses[p->n_site_uses] = (struct plan_use){0};
    return &p->site_uses[p->n_site_uses++];
}

static void add_use(struct plan_use *to, uint64_t bytes, uint64_t used)
{
    uint64_t part = PLAN_USE_PARTS * used / bytes;
    to->all.bytes += bytes;
    to->all.used += used;
    to->by_part[part].bytes += bytes;
    to->by_part[part].used += used;
}

// Returns the part that contains byte `number`, if the blocks are sorted by their used share.
static unsigned part_of_byte(const struct plan_use *u, uint64_t number)
{
    unsigned part = 0;
    for (uint64_t end = u->by_part[0].bytes; end <= number && part < PLAN_USE_PARTS;
         end += u->by_part[part].bytes)
        part++;
    return part;
}

// Estimates how many bytes of a block are used. The estimate is the median used share of other
// blocks, weighted by bytes. Most blocks are used either entirely or hardly at all. A mean would be
// too low for buffers that are allocated repeatedly, because it would include pools that are set up
// once and hardly used.
static uint64_t expect_use(const struct plan_use *u, uint64_t size)
{
    const uint64_t middle[] = {(u->all.bytes - 1) / 2, u->all.bytes / 2};
    double used = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned part = part_of_byte(u, middle[i]);
        used += (double)u->by_part[part].used / (double)u->by_part[part].bytes / 2;
    }
    return (uint64_t)((double)size * used);
}

// If the use of the op's block is known or can be estimated, appends a TOUCH with the use. Without
// a TOUCH, the player guesses the use. If the block was not measured or its memory was already
// resident, estimates the use from blocks with the same call site and size class, or only the same
// size class.
static int put_touch(struct pending_op *a, struct plan_stream *s, struct plan_slot *slot)
{
    struct plan *p = a->plan;
    bool is_live_at_start = a->op->kind == HT_PREEXISTING;
    if (slot->size < HT_BIG_BYTES)
        return 0;
    bool zeroed = (is_live_at_start ? (uint8_t)a->op->value : a->op->kind) == HT_CALLOC;
    uint64_t kib = slot->size >> 10;
    struct plan_use *alike = &p->uses[zeroed][63 - __builtin_clzll(slot->size)],
                    *of_site = use_by_site(p, a->op, slot->size, zeroed);
    if (!of_site)
        return err_no_memory(a->e, NULL);
    const struct plan_use *others = of_site->all.bytes ? of_site : alike;
    const struct workload_residency *r =
        p->residency ? samples_residency_find(p->residency, a->recorded, a->number) : NULL;
    p->facts.big_bytes += slot->size;
    if (r && r->used > kib)
        r = NULL;
    bool known = r && (zeroed || r->used == r->resident);
    struct plan_late late = {.owner = s,
                             .allocation = s->ops,
                             .thread = a->recorded,
                             .entry = slot->entry,
                             .zeroed = zeroed,
                             .pages = kib / WORKLOAD_PAGE_KIB};
    if (!known && !others->all.bytes && !r) {
        late.used = zeroed ? 0 : kib / WORKLOAD_PAGE_KIB;
        return is_live_at_start ? 0 : plan_late_allocated(p, slot, &late, a->e);
    }
    uint64_t resident = r ? of_block_kib(r->resident, slot->size) : 0, used = resident;
    if (known)
        used = of_block_kib(r->used, slot->size);
    else if (others->all.bytes)
        used = expect_use(others, slot->size) >> 10;
    uint64_t front = known && r->front < r->used ? r->front : used;
    if (known) {
        uint64_t bytes = used << 10 < slot->size ? used << 10 : slot->size;
        p->facts.big_known_bytes += slot->size;
        add_use(alike, slot->size, bytes);
        if (of_site != alike)
            add_use(of_site, slot->size, bytes);
    } else {
        p->facts.big_estimated_bytes += slot->size;
        // Stay within the measured bounds.
        used = r && used < r->used ? r->used : used;
        used = r && used > resident ? resident : used;
        used = of_block_kib(used, slot->size);
        front = used;
    }
    late.used = used / WORKLOAD_PAGE_KIB;
    late.front_kib = front;
    if (known)
        late.steps = samples_residency_steps(p->residency, a->recorded, a->number, &late.n_steps);
    int rc = plan_put_touch(p, s, &late, &late.touch, a->e);
    return rc < 0 || is_live_at_start ? rc : plan_late_allocated(p, slot, &late, a->e);
}

// Returns the call for an op that allocates, which may be a realloc of NULL.
static struct plan_call allocation_call(const struct workload_op *op, uint32_t entry)
{
    struct plan_call c = {
        .op = (enum plan_op)op->kind, .entry = entry, .size = op->size, .extra = {op->align}};
    if (op->kind == HT_CALLOC && op->count != 1) {
        c.op = PLAN_CALLOC_MANY;
        c.extra[0] = op->count;
    } else if (event_infos[op->kind].class == HT_CLASS_RESIZE) {
        c.op = plan_op_for_null(op->kind);
        c.extra[0] = op->count;
    }
    return c;
}

// Records which kind of call can free the op's block, which a call of `kind` allocated.
static void note_family(struct plan_slot *slot, const struct workload_op *op, uint8_t kind)
{
    slot->free_kind = plan_freed_by(kind);
    slot->align_log2 = op->align ? (uint8_t)__builtin_ctzll(op->align) : 0;
}

static int add_allocation(struct pending_op *a)
{
    struct plan_slot *slot;
    if ((a->op->flags & WORKLOAD_FAILED) || a->op->slot == WORKLOAD_NO_SLOT)
        return put_skipped(a);
    int rc = find_slot(a, true, &slot) ?: allocate_entry(a, slot);
    if (rc < 0)
        return rc;
    slot->size = 0;
    rc = set_size(a, slot);
    note_family(slot, a->op, a->op->kind);
    struct plan_call c = allocation_call(a->op, slot->entry);
    rc = rc
             ?: plan_note_allocation(a->plan, a->recorded, a->op, a->e)
             ?: put_touch(a, a->stream, slot);
    return rc < 0 ? rc : put_counted(a, &c);
}

static int add_free(struct pending_op *a)
{
    const struct workload_op *op = a->op;
    struct plan_slot *slot;
    struct plan_call c = {.op = (enum plan_op)op->kind, .size = op->size, .extra = {op->align}};
    if (op->slot == WORKLOAD_NO_SLOT)
        return put_counted(a, &c);
    int rc = find_slot(a, false, &slot);
    if (rc < 0)
        return rc;
    c.entry = slot->entry;
    if (event_infos[op->kind].class == HT_CLASS_RESIZE)
        c.op = PLAN_REALLOC_FREE;
    rc = plan_late_released(a->plan, a->stream, slot, a->e);
    count_live(a, 0 - slot->size);
    if (rc == 0)
        rc = put_counted(a, &c);
    a->stream->freed_bytes = slot->size;
    a->stream->freed_ops = a->stream->ops;
    return rc < 0 ? rc : free_entry(a, slot);
}

static int add_realloc(struct pending_op *a)
{
    const struct workload_op *op = a->op;
    struct plan_slot *slot;
    if (op->flags & WORKLOAD_FAILED)
        return put_skipped(a);
    if (op->flags & WORKLOAD_FROM_NULL)
        return add_allocation(a);
    if (op->flags & WORKLOAD_FREED)
        return add_free(a);
    if (op->slot == WORKLOAD_NO_SLOT)
        return put_skipped(a);
    int rc = find_slot(a, false, &slot);
    if (rc < 0)
        return rc;
    struct plan_call c = {.op = (enum plan_op)op->kind,
                          .entry = slot->entry,
                          .size = op->size,
                          .extra = {slot->size}};
    if (event_infos[op->kind].fields & HT_F_COUNT) {
        c.extra[0] = op->count;
        c.extra[1] = slot->size;
    }
    rc = plan_late_released(a->plan, a->stream, slot, a->e)
             ?: set_size(a, slot)
             ?: plan_note_allocation(a->plan, a->recorded, a->op, a->e)
             ?: put_touch(a, a->stream, slot);
    return rc < 0 ? rc : put_counted(a, &c);
}

// Returns a kind of call whose blocks can be freed with free_kind.
static unsigned preexisting_kind(const struct plan_slot *slot)
{
    unsigned kind = slot->align_log2 ? HT_MEMALIGN : HT_MALLOC;
    while (plan_freed_by(kind) != slot->free_kind)
        kind++;
    return kind;
}

// Adds a preexisting block. The player allocates it before the start, so it needs an entry that no
// other block has used.
static int add_preexisting(struct pending_op *a)
{
    struct plan *p = a->plan;
    struct plan_slot *slot;
    int rc = find_slot(a, true, &slot);
    if (rc < 0)
        return rc;
    if (slot_table_allocate_fresh(&p->slot_table, &p->preexisting.pool, &slot->entry) < 0)
        return err_no_memory(a->e, NULL);
    slot->size = a->op->flags & WORKLOAD_SIZE_UNKNOWN ? PLAN_UNKNOWN_SIZE : a->op->size;
    if (slot->size > p->max_block_bytes)
        p->max_block_bytes = slot->size;
    note_family(slot, a->op,
                (uint8_t)a->op->value); // in a slice, the call that allocated the block
    unsigned kind = preexisting_kind(slot);
    p->preexisting_by[kind] = true;
    p->preexisting_bytes += slot->size;
    p->preexisting.live_change = plan_wrapping_add(p->preexisting.live_change, (int64_t)slot->size);
    p->facts.preexisting++;
    struct plan_call c = {.op = PLAN_PREEXISTING,
                          .entry = slot->entry,
                          .size = slot->size,
                          .extra = {1ull << slot->align_log2, kind}};
    rc = put_touch(a, &p->preexisting, slot)
             ?: plan_put_call(p, &p->preexisting, &c, a->e)
             ?: plan_note_allocation(p, a->recorded, a->op, a->e);
    return rc < 0 ? rc : put_without_call(a);
}

static int add_thread_create(struct pending_op *a)
{
    const struct workload_op *op = a->op;
    struct plan_stream *child;
    // Thread 0 is the player's main thread. A thread that already has ops runs from the start.
    if (a->plan->facts.one_thread)
        return put_without_call(a);
    if ((op->flags & WORKLOAD_FAILED) || op->value == 0 || op->value >= PLAN_MAX_THREADS)
        return put_skipped(a);
    int rc = need_stream(a->plan, op->value, &child, a->e);
    if (rc < 0)
        return rc;
    if (child->started_by_thread || child->ops || child == a->stream)
        return put_skipped(a);
    child->started_by_thread = true;
    const struct plan_call start = {
        .op = PLAN_START_THREAD, .entry = a->plan->n_exited, .size = op->value};
    return plan_put_call(a->plan, a->stream, &start, a->e);
}

// Adds a thread's exit. Offers all entries of the thread to other threads.
static int add_thread_exit(struct pending_op *a)
{
    struct slot_table_pool *pool = &a->stream->pool;
    a->stream->outlives = false;
    int rc = plan_late_exit(a->plan, a->stream, a->recorded, a->e) ?: put_without_call(a);
    a->plan->current_exited = true;
    if (a->plan->facts.one_thread)
        return rc;
    a->plan->n_exited += a->stream->number && !a->stream->ops_at_exit;
    a->stream->ops_at_exit = a->stream->ops;
    while (rc == 0 && pool->fresh < pool->fresh_end)
        rc = slot_table_free(pool, pool->fresh++) < 0 ? err_no_memory(a->e, NULL) : 0;
    while (rc == 0 && pool->n)
        rc = share_entries(a);
    return rc;
}

static int add_by_class(struct pending_op *a)
{
    switch ((enum event_class)event_infos[a->op->kind].class) {
    case HT_CLASS_ALLOC:
        return a->op->kind == HT_PREEXISTING ? add_preexisting(a) : add_allocation(a);
    case HT_CLASS_FREE:
        return add_free(a);
    case HT_CLASS_RESIZE:
        return add_realloc(a);
    case HT_CLASS_THREAD:
        a->stream->outlives |= a->op->kind == HT_THREAD_START;
        if (a->op->kind == HT_THREAD_CREATE)
            return add_thread_create(a);
        return a->op->kind == HT_THREAD_END ? add_thread_exit(a) : put_without_call(a);
    case HT_CLASS_MARK:
    case HT_CLASS_POOL: // a pool's memory comes from calls that are recorded as ops
        return put_without_call(a);
    case HT_CLASS_MAP:
    case HT_CLASS_META:
        return put_skipped(a);
    case HT_CLASS_NONE:
    case HT_CLASS_HALF:
        break;
    }
    return refuse_op(a, "has kind %u, which cannot occur in a workload", a->op->kind);
}

// If one thread plays all ops, appends a SWITCH when the recorded thread changes. WAITs are not
// needed, because the order of the ops satisfies all dependencies.
static int put_switch(struct pending_op *a, uint32_t thread)
{
    struct plan *p = a->plan;
    if (thread >= PLAN_MAX_THREADS)
        return refuse_op(a, "is of thread %u: only %d threads can be replayed", thread,
                         PLAN_MAX_THREADS);
    if (thread >= p->n_threads)
        p->n_threads = thread + 1;
    if (thread == p->current || a->op->kind == HT_PREEXISTING)
        return 0;
    uint64_t exited = p->current_exited ? PLAN_SWITCH_EXITED : 0;
    p->current = thread;
    p->current_exited = false;
    p->facts.thread_switches++;
    return plan_put_word(p, a->stream, (uint64_t)PLAN_SWITCH | exited | (uint64_t)thread << 9,
                         a->e);
}

// Appends any TRIM and STATS ops that are due.
static int put_periodic(struct pending_op *a)
{
    struct plan *p = a->plan;
    int rc = 0;
    bool is_mark = event_infos[a->op->kind].class == HT_CLASS_MARK;
    // The recorded program called malloc_stats at this point.
    bool asks = a->op->kind == HT_MALLOC_STATS && p->facts.stats_samples < PLAN_MAX_STATS;
    if (p->settings.trim_every && p->facts.events >= p->next_trim) {
        p->next_trim += p->settings.trim_every;
        rc = plan_put_word(p, a->stream, PLAN_TRIM, a->e);
    }
    if (rc == 0 && asks)
        return plan_put_stats(p, a->stream, a->e);
    if (rc < 0 || !p->settings.stats_every || (!is_mark && p->facts.events < p->next_stats))
        return rc;
    if (p->facts.stats_samples >= PLAN_MAX_STATS)
        return err_set(
            a->e, -EINVAL,
            "%s: more than %d samples of the allocator's statistics (try a larger --stats-every)",
            p->name, PLAN_MAX_STATS);
    if (!is_mark)
        p->next_stats += p->settings.stats_every;
    return plan_put_stats(p, a->stream, a->e);
}

// Appends a sample at each point where the program's memory was sampled.
static int put_recorded_samples(struct pending_op *a)
{
    struct plan *p = a->plan;
    const struct workload_sample *sample;
    int rc = 0;
    while (rc == 0 && (sample = plan_pass_sample(p, a->op))) {
        plan_late_sample(p, sample);
        rc = put_pace(a, sample->stamp) ?: plan_late_put(p, a->stream, a->e);
        if (rc == 0 && p->facts.events)
            rc = put_sample(a);
    }
    if (rc < 0 || !p->n_lates)
        return rc;
    if (a->op->stamp >= p->next_step)
        plan_late_step(p, a->op->stamp);
    if (p->whole && p->n_passed == p->n_recorded)
        plan_late_use_all(p);
    return plan_late_put(p, a->stream, a->e);
}

static int add_op(struct plan *p, uint32_t thread, uint64_t op_number, const struct workload_op *op,
                  struct err *e)
{
    struct pending_op a = {.plan = p,
                           .thread = p->facts.one_thread ? 0 : thread,
                           .recorded = thread,
                           .op = op,
                           .number = op_number,
                           .e = e};
    int rc = need_stream(p, a.thread, &a.stream, e);
    if (rc == 0 && p->facts.one_thread)
        rc = put_switch(&a, thread);
    if (rc < 0)
        return rc;
    if (p->facts.events == 0 && !p->first_stamp && op->kind != HT_PREEXISTING)
        p->first_stamp = op->stamp;
    rc = put_periodic(&a);
    if (rc == 0 && !p->facts.one_thread)
        rc = plan_couple(p, a.stream, op, e);
    if (rc == 0)
        rc = put_recorded_samples(&a);
    plan_follow(p, &a.stream->span, op);
    if (rc == 0)
        rc = put_pace(&a, op->stamp);
    if (rc == 0 && a.stream->unsampled_events >= PLAN_SAMPLE_EVENTS)
        rc = put_sample(&a);
    if (rc == 0 && op->n_dependencies && !p->facts.one_thread)
        rc = put_dependencies(&a);
    if (rc == 0 && p->settings.snapshots)
        rc = plan_snapshot_before(p, a.stream, e);
    if (rc == 0)
        rc = add_by_class(&a);
    if (rc == 0 && p->settings.snapshots)
        rc = plan_snapshot_after(p, a.stream, e);
    p->added++;
    return rc;
}

// If residency was recorded, numbers the thread's next `n` ops and sets *first to the first number.
static int number_ops(struct plan *p, uint32_t thread, size_t n, uint64_t *first, struct err *e)
{
    if (!p->residency)
        return 0;
    if (thread >= PLAN_MAX_THREADS)
        return err_set(e, -EBADMSG, "%s: thread %u: only %d threads can be replayed", p->name,
                       thread, PLAN_MAX_THREADS);
    if (HT_EXTEND(&p->op_numbers, &p->n_op_numbers, &p->op_numbers_capacity, (size_t)thread + 1) <
        0)
        return err_no_memory(e, NULL);
    *first = p->op_numbers[thread];
    p->op_numbers[thread] += n;
    return 0;
}

int plan_add_ops(struct plan *p, uint32_t thread, const struct workload_op *ops, size_t n,
                 struct err *e)
{
    uint32_t number = p->facts.one_thread ? 0 : thread;
    uint64_t op_number = 0;
    int rc = number_ops(p, thread, n, &op_number, e);
    while (rc == 0 && n) {
        struct plan_stream *s = number < p->n_streams ? p->streams[number] : NULL;
        size_t plain = s ? plan_add_plain(p, s, thread, ops, n) : 0;
        ops += plain;
        n -= plain;
        op_number += plain;
        if (n) {
            rc = add_op(p, thread, op_number++, ops++, e);
            n--;
        }
    }
    return rc;
}

// Adds all remaining ops of the workload.
static int read_ops(struct plan *p, struct workload_reader *r, struct progress *progress,
                    struct err *e)
{
    enum { REPORT_EVERY = 1 << 16 };
    uint32_t thread;
    const struct workload_op *ops;
    size_t n;
    uint64_t reported = 0;
    int rc;
    while ((rc = workload_next_ops(r, &thread, &ops, &n, e)) > 0) {
        rc = plan_add_ops(p, thread, ops, n, e);
        if (rc < 0)
            return rc;
        if (p->added - reported >= REPORT_EVERY)
            progress_update(progress, reported = p->added);
    }
    p->facts.unproved = !workload_reader_proved_order(r);
    return rc;
}

// Adds the samples and touches that follow the program's last call.
int plan_put_end(struct plan *p, struct err *e)
{
    const struct workload_sample *sample;
    struct pending_op a = {.plan = p, .e = e};
    int rc = 0;
    while (rc == 0 && (a.stream = plan_late_stream(p)) && (sample = plan_pass_sample(p, NULL))) {
        plan_late_sample(p, sample);
        rc = plan_late_put(p, NULL, e) ?: put_sample(&a);
    }
    plan_late_step(p, UINT64_MAX);
    plan_late_use_all(p);
    return rc < 0 ? rc : plan_late_put(p, NULL, e);
}

// Reads residency only if the workload's index lists it. If the file is damaged, the reader of the
// ops reports the damage in more detail.
int plan_read(struct plan *p, struct workload_reader *r, struct progress *progress, struct err *e)
{
    struct samples_residency residency;
    struct workload_summary summary;
    bool known = workload_read_residency(r, &residency, NULL) == 0 && residency.n > 0;
    p->residency = known ? &residency : NULL;
    p->whole = workload_read_summary(r, &summary, NULL) == 0 && !summary.recorded_to;
    int rc = read_ops(p, r, progress, e);
    if (rc == 0 && p->whole)
        rc = plan_put_end(p, e);
    p->residency = NULL;
    samples_residency_release(&residency);
    return rc < 0 ? rc : plan_finish(p, e);
}
