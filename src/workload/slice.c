#include "workload/slice.h"

#include "base/buf.h"
#include "workload/format.h"
#include "workload/slice_private.h"

#include <errno.h>
#include <stdlib.h>

struct slice *slice_new(const struct slice_options *options, const struct slice_sink *sink)
{
    struct slice *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->options = *options;
    s->sink = *sink;
    s->some_thread = SLICE_NO_NUMBER;
    s->has_gaps = options->threads || options->choice;
    if (!options->threads) {
        s->options.n_threads = 0;
        return s;
    }
    s->ranges = calloc(options->n_threads, sizeof *s->ranges);
    if (!s->ranges) {
        free(s);
        return NULL;
    }
    memcpy(s->ranges, options->threads, options->n_threads * sizeof *s->ranges);
    return s;
}

void slice_free(struct slice *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_threads; i++) {
        free(s->threads[i].shifts);
        free(s->threads[i].waited);
    }
    free(s->threads);
    free(s->slots);
    free(s->left);
    free(s->dependencies);
    free(s->ranges);
    free(s);
}

struct slice_counts slice_counts(const struct slice *s)
{
    struct slice_counts c = s->counts;
    c.begun = s->begun;
    c.ended = s->over;
    return c;
}

void slice_point_resolve(struct slice_point *p, uint64_t start_stamp, uint64_t clock_hz,
                         unsigned stamp_shift)
{
    unsigned __int128 ticks = (unsigned __int128)p->number * clock_hz / 1000000000u >> stamp_shift;
    if (p->at != SLICE_AT_TIME)
        return;
    p->at = SLICE_AT_STAMP;
    p->number = ticks > UINT64_MAX - start_stamp ? UINT64_MAX : start_stamp + (uint64_t)ticks;
}

bool slice_point_reached(const struct slice_point *p, const struct workload_op *op, uint64_t events)
{
    switch (p->at) {
    case SLICE_AT_EDGE:
        return false;
    case SLICE_AT_EVENT:
        return op->kind != HT_PREEXISTING && events >= p->number;
    case SLICE_AT_STAMP:
    case SLICE_AT_TIME: // slice_point_resolve has converted the time to a stamp
        return op->stamp >= p->number;
    case SLICE_AT_MARK:
        return op->kind == HT_MARK && op->text_bytes == strlen(p->mark) &&
               memcmp(op->text, p->mark, op->text_bytes) == 0;
    }
    return false;
}

bool slice_point_ends(const struct slice_point *to, const struct workload_op *op, uint64_t events,
                      bool begins)
{
    return !(begins && to->at == SLICE_AT_MARK) && slice_point_reached(to, op, events);
}

static struct slice_slot *slot_get(struct slice *s, uint32_t slot)
{
    size_t n = (size_t)slot + 1;
    if (n > s->n_slots) {
        if (HT_GROW(&s->slots, &s->slots_capacity, n) < 0)
            return NULL;
        for (; s->n_slots < n; s->n_slots++)
            s->slots[s->n_slots] =
                (struct slice_slot){.number = SLICE_NO_NUMBER, .last_thread = SLICE_NO_NUMBER};
    }
    return &s->slots[slot];
}

// Calls `placed` of the sink for the block of *slot, which the last op allocated or resized.
static int call_placed(const struct slice *s, uint32_t thread, const struct slice_slot *slot)
{
    const struct slice_thread *t = &s->threads[thread];
    if (!s->sink.placed || slot->unknown_size || slot->size < HT_BIG_BYTES)
        return 0;
    return s->sink.placed(s->sink.context, slot->from,
                          (struct workload_dependency){t->number, t->next_op - 1});
}

// Emits the block of *slot as preexisting. `thread` is a thread of the source.
static int put_preexisting(struct slice *s, uint32_t thread, struct slice_slot *slot,
                           uint64_t stamp)
{
    // Use a new slot number, because the part may use the old one for other blocks.
    slot->number = s->next_slot++;
    slot->last_thread = SLICE_NO_NUMBER;
    slot->state = SLICE_INSIDE;
    slot->stale = false;
    struct workload_op op = {
        .kind = HT_PREEXISTING,
        .flags = slot->unknown_size ? WORKLOAD_SIZE_UNKNOWN : 0,
        .slot = slot->number,
        .stamp = stamp,
        .size = slot->size,
        .align = slot->align_log2 ? 1ull << slot->align_log2 : 0,
        .value = slot->allocated_by | (uint64_t)slot->site << 8,
        .allocator = slot->allocator,
    };
    s->counts.preexisting++;
    int rc = slice_emit(s, thread, &op, true);
    return rc < 0 ? rc : call_placed(s, thread, slot);
}

// Stores the properties of the block that the op allocated or resized. The op may be outside the
// part.
static void note_block(const struct slice *s, uint32_t thread, struct slice_slot *slot,
                       const struct workload_op *op)
{
    slot->from = (struct workload_dependency){thread, s->threads[thread].read - 1};
    slot->unknown_size = op->flags & WORKLOAD_SIZE_UNKNOWN;
    slot->size = event_requested(op->kind, op->size, op->count);
    bool before = op->kind == HT_PREEXISTING;
    slot->allocated_by = before ? (uint8_t)op->value : op->kind;
    slot->site = (uint32_t)format_op_site(op);
    slot->allocator = op->allocator;
    uint64_t align =
        op->kind == HT_VALLOC || op->kind == HT_PVALLOC ? WORKLOAD_PAGE_BYTES : op->align;
    slot->align_log2 = align ? (uint8_t)__builtin_ctzll(align) : 0;
}

// Handles an op of a dropped thread, or an op before the start of the part.
static int use_outside(struct slice *s, uint32_t thread, struct slice_slot *slot,
                       const struct workload_op *op)
{
    bool wanted = s->threads[thread].wanted;
    switch (format_slot_use(op->kind, op->flags)) {
    case FORMAT_SLOT_NONE:
        return 0;
    case FORMAT_SLOT_ALLOCATED:
        slot->state = SLICE_OUTSIDE;
        slot->own = !s->begun && wanted;
        note_block(s, thread, slot, op);
        return 0;
    case FORMAT_SLOT_KEEP:
        if (op->flags & WORKLOAD_FAILED)
            return 0;
        slot->stale = slot->state == SLICE_INSIDE;
        if (slot->state == SLICE_OUTSIDE)
            note_block(s, thread, slot, op);
        return 0;
    case FORMAT_SLOT_FREED:
        break;
    }
    if (slot->state == SLICE_INSIDE) {
        // The part does not contain this free, so the block stays live in its slot of the part.
        slot->number = slot->last_thread = SLICE_NO_NUMBER;
        s->counts.left++;
    } else if (s->begun && slot->own) {
        if (HT_APPEND(&s->left, &s->n_left, &s->left_capacity, *slot) < 0)
            return -ENOMEM;
        s->counts.left++;
    }
    slot->state = SLICE_EMPTY;
    return 0;
}

// If another thread of the part was the last to use the slot, makes the op depend on that use.
static int wait_for_last(struct slice *s, uint32_t thread, const struct slice_slot *slot)
{
    if (slot->last_thread == SLICE_NO_NUMBER || slot->last_thread == thread)
        return 0;
    s->needed += slot->state == SLICE_INSIDE;
    // The source's dependencies imply this dependency, unless they lead through dropped ops.
    return s->has_gaps ? slice_depend(s, thread, slot->last_thread, slot->last_op) : 0;
}

// Renumbers the slot of an op in the part. Call before slice_keep_dependencies.
static int use_inside(struct slice *s, uint32_t thread, struct slice_slot *slot,
                      struct workload_op *op)
{
    enum format_slot_use use = format_slot_use(op->kind, op->flags);
    int rc = use != FORMAT_SLOT_ALLOCATED && slot->state == SLICE_OUTSIDE
                 ? put_preexisting(s, thread, slot, op->stamp)
                 : 0;
    if (rc == 0)
        rc = wait_for_last(s, thread, slot);
    if (rc < 0)
        return rc;
    if (slot->number == SLICE_NO_NUMBER)
        slot->number = s->next_slot++;
    if (use == FORMAT_SLOT_FREED && slot->stale && event_infos[op->kind].fields & HT_F_SIZE)
        op->size = slot->size;
    if (use != FORMAT_SLOT_FREED && !(op->flags & WORKLOAD_FAILED)) {
        note_block(s, thread, slot, op);
        slot->stale = false;
    }
    slot->state = use == FORMAT_SLOT_FREED ? SLICE_EMPTY : SLICE_INSIDE;
    slot->last_thread = thread;
    slot->last_op = s->threads[thread].next_op;
    op->slot = slot->number;
    return 0;
}

// Renumbers the thread that a THREAD_CREATE or THREAD_START names. Returns 1, or 0 if the op is
// dropped.
static int name_thread(struct slice *s, uint32_t thread, struct workload_op *op)
{
    uint32_t other = op->value < SLICE_NO_NUMBER ? (uint32_t)op->value : SLICE_NO_NUMBER;
    if (op->kind == HT_THREAD_CREATE) {
        struct slice_thread *child = slice_thread_get(s, other);
        if (!child)
            return -ENOMEM;
        if (!child->wanted)
            return 0;
        child->created = true;
        slice_thread_number(s, thread);
        op->value = slice_thread_number(s, other);
    } else if (op->kind == HT_THREAD_START) {
        bool known = s->threads[thread].created && other < s->n_threads;
        op->value = known ? s->threads[other].number : SLICE_NO_NUMBER;
    }
    return 1;
}

static bool is_chosen_thread(const struct slice_choice *c, uint64_t thread)
{
    return thread < c->n_threads && c->threads[thread];
}

// Returns true if an op that has no block belongs to the part.
static bool is_chosen(const struct slice_choice *c, uint32_t thread, const struct workload_op *op)
{
    if (!c)
        return true;
    if (event_infos[op->kind].class != HT_CLASS_THREAD)
        return c->others;
    return is_chosen_thread(c, thread) &&
           (op->kind != HT_THREAD_CREATE || is_chosen_thread(c, op->value));
}

static int put_op(struct slice *s, uint32_t thread, const struct workload_op *from)
{
    struct workload_op op = *from;
    if (op.slot == WORKLOAD_NO_SLOT && !is_chosen(s->options.choice, thread, &op))
        return slice_drop(s, thread);
    s->needed = s->threads[thread].created && !s->threads[thread].in_part;
    int rc = name_thread(s, thread, &op);
    if (rc <= 0)
        return rc < 0 ? rc : slice_drop(s, thread);
    rc = op.slot == WORKLOAD_NO_SLOT ? 0 : use_inside(s, thread, &s->slots[op.slot], &op);
    if (rc == 0)
        rc = slice_keep_dependencies(s, thread, from);
    if (rc < 0)
        return rc;
    s->counts.events++;
    s->counts.dependencies_needed += s->n_dependencies > s->needed ? s->n_dependencies : s->needed;
    s->counts.last_stamp = from->stamp > s->counts.last_stamp ? from->stamp : s->counts.last_stamp;
    rc = slice_emit(s, thread, &op, false);
    enum format_slot_use use = format_slot_use(from->kind, from->flags);
    bool placed = from->slot != WORKLOAD_NO_SLOT && !(from->flags & WORKLOAD_FAILED) &&
                  (use == FORMAT_SLOT_ALLOCATED || use == FORMAT_SLOT_KEEP);
    return rc < 0 || !placed ? rc : call_placed(s, thread, &s->slots[from->slot]);
}

static void begin_part(struct slice *s, const struct workload_op *op)
{
    s->begun = true;
    s->counts.first_stamp = s->counts.last_stamp = op->stamp;
    s->rebase = s->options.rebase ? s->options.rebase_to - op->stamp : 0;
}

// Returns true if the format allows the op in the slot's current state.
static bool slot_valid(const struct slice_slot *slot, const struct workload_op *op)
{
    return (slot->state == SLICE_EMPTY) ==
           (format_slot_use(op->kind, op->flags) == FORMAT_SLOT_ALLOCATED);
}

// Drops an op on a block that was not chosen. If the op is a free, also empties the slot.
static int use_dropped(struct slice *s, uint32_t thread, struct slice_slot *slot,
                       enum format_slot_use use)
{
    slot->state = use == FORMAT_SLOT_FREED ? SLICE_EMPTY : SLICE_OUTSIDE;
    slot->own = false;
    return s->begun && s->threads[thread].wanted ? slice_drop(s, thread) : 0;
}

// Returns true if the op's block is dropped.
static bool is_dropped(struct slice *s, struct slice_slot *slot, enum format_slot_use use)
{
    const struct slice_choice *c = s->options.choice;
    if (c && c->blocks && use == FORMAT_SLOT_ALLOCATED) {
        slot->dropped = s->n_blocks >= c->n_blocks || !c->blocks[s->n_blocks];
        s->n_blocks++;
    }
    return slot->dropped;
}

int slice_op(struct slice *s, uint32_t thread, const struct workload_op *op)
{
    struct slice_thread *t = slice_thread_get(s, thread);
    struct slice_slot *slot = NULL;
    if (!t)
        return -ENOMEM;
    t->read++;
    bool begins = !s->begun && (s->options.from.at == SLICE_AT_EDGE ||
                                slice_point_reached(&s->options.from, op, s->events));
    if (begins)
        begin_part(s, op);
    if (s->begun && slice_point_ends(&s->options.to, op, s->events, begins))
        s->over = true;
    if (s->over)
        return 1;
    s->events += op->kind != HT_PREEXISTING;
    if (op->slot != WORKLOAD_NO_SLOT) {
        slot = slot_get(s, op->slot);
        if (!slot)
            return -ENOMEM;
        if (!slot_valid(slot, op))
            return -EBADMSG;
        enum format_slot_use use = format_slot_use(op->kind, op->flags);
        if (is_dropped(s, slot, use))
            return use_dropped(s, thread, slot, use);
    }
    if (op->kind == HT_PREEXISTING && slot) {
        // Preexisting blocks of the source are emitted when the part first uses them.
        slot->state = SLICE_OUTSIDE;
        slot->own = t->wanted;
        note_block(s, thread, slot, op);
        return t->wanted && s->begun ? slice_drop(s, thread) : 0;
    }
    if (s->begun && t->wanted)
        return put_op(s, thread, op);
    return slot ? use_outside(s, thread, slot, op) : 0;
}

int slice_finish(struct slice *s)
{
    int rc = 0;
    if (s->some_thread == SLICE_NO_NUMBER)
        return 0;
    uint64_t stamp = s->counts.last_stamp;
    for (size_t i = 0; rc == 0 && i < s->n_slots; i++) {
        if (s->slots[i].state == SLICE_OUTSIDE && s->slots[i].own)
            rc = put_preexisting(s, s->some_thread, &s->slots[i], stamp);
    }
    for (size_t i = 0; rc == 0 && i < s->n_left; i++)
        rc = put_preexisting(s, s->some_thread, &s->left[i], stamp);
    return rc;
}
