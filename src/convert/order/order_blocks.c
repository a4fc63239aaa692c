// Finds the block that an address refers to.
#include "base/pages.h"
#include "convert/order/order_private.h"

#include <errno.h>

static uint32_t last_thread(const struct table_block *s)
{
    return (uint32_t)(s->last >> TABLE_OP_BITS);
}

static uint64_t last_op(const struct table_block *s)
{
    return s->last & ((1ull << TABLE_OP_BITS) - 1);
}

// Makes the current op depend on the block's previous use.
static inline int use_block(struct order *o, struct order_thread *t, uint32_t slot)
{
    const struct table_block *s = &o->slots[slot];
    uint32_t thread = last_thread(s);
    return thread == t->number ? 0 : order_depend(o, t, thread, last_op(s));
}

static int slot_new(struct order *o, uint32_t *slot)
{
    if (o->n_slots == WORKLOAD_NO_SLOT)
        return -EOVERFLOW;
    if (HT_PAGES_GROW(&o->slots, &o->slots_capacity, o->n_slots + 1) < 0)
        return -ENOMEM;
    *slot = (uint32_t)o->n_slots++;
    o->slots[*slot] = (struct table_block){0};
    return 0;
}

// Allocates a slot for the thread. This may add a dependency to the current op.
static int slot_allocate(struct order *o, struct order_thread *t, uint32_t *slot)
{
    if (__builtin_expect(!t->pool.n, 0)) {
        uint32_t thread;
        uint64_t op = t->next_op;
        int rc = pool_adopt(&t->pool, &o->shared, &thread, &op);
        if (rc == 0)
            return slot_new(o, slot);
        if (rc > 0 && thread != t->number)
            rc = order_depend(o, t, thread, op);
        if (rc < 0)
            return rc;
    }
    *slot = t->pool.slots[--t->pool.n];
    return 0;
}

// Releases the slot of the block that the current op frees.
static int slot_release(struct order *o, struct order_thread *t, uint32_t slot)
{
    o->slots[slot].address = 0;
    int rc = 0;
    if (__builtin_expect(t->pool.n == t->pool.capacity || t->pool.n >= POOL_MAX_SLOTS, 0))
        rc = pool_make_room(&t->pool, &o->shared, t->number, t->next_op);
    if (rc == 0)
        pool_put(&t->pool, slot, t->next_op);
    return rc;
}

// Returns the duplicate in this slot, or NULL.
static struct order_duplicate *duplicate_of(struct order *o, uint32_t slot)
{
    for (size_t i = 0; i < o->n_duplicates; i++) {
        if (o->duplicates[i].slot == slot)
            return &o->duplicates[i];
    }
    return NULL;
}

static void duplicate_forget(struct order *o, struct order_duplicate *d)
{
    o->n_duplicates--;
    memmove(d, d + 1, (size_t)(o->duplicates + o->n_duplicates - d) * sizeof *d);
    order_deadline(o);
}

// Returns the address's oldest duplicate, or NULL.
static struct order_duplicate *duplicate_first(struct order *o, uint64_t address)
{
    for (size_t i = 0; i < o->n_duplicates; i++) {
        if (o->duplicates[i].address == address)
            return &o->duplicates[i];
    }
    return NULL;
}

// Returns the cell of the address's oldest block, which is not a duplicate.
static uint32_t *oldest_cell(struct order *o, uint64_t address)
{
    uint32_t *cell = table_find(&o->table, o->slots, address);
    while (cell && duplicate_of(o, *cell))
        cell = table_find_next(&o->table, o->slots, address, cell);
    return cell;
}

// Returns the cell of the block at this address that the thread used last, or NULL.
static uint32_t *own_cell(struct order *o, const struct order_thread *t, uint64_t address)
{
    uint32_t *best = NULL, *cell = table_find(&o->table, o->slots, address);
    for (; cell; cell = table_find_next(&o->table, o->slots, address, cell)) {
        const struct table_block *s = &o->slots[*cell];
        if (last_thread(s) == t->number && (!best || last_op(s) > last_op(&o->slots[*best])))
            best = cell;
    }
    return best;
}

// Returns true if the stamps of the block and of the duplicate are too close to prove which of them
// was allocated first.
static bool too_close(const struct order *o, uint32_t slot, const struct order_duplicate *d)
{
    const struct order_thread *t = order_numbered(o, last_thread(&o->slots[slot]));
    uint64_t op = last_op(&o->slots[slot]);
    if (!t->recent || op + ORDER_RECENT < t->next_op)
        return false;
    uint64_t stamp = t->recent[op % ORDER_RECENT];
    return stamp + o->options.skid > d->stamp;
}

// Returns the duplicate's cell.
static uint32_t *duplicate_cell(struct order *o, const struct order_duplicate *d)
{
    uint32_t *cell = table_find(&o->table, o->slots, d->address);
    while (*cell != d->slot)
        cell = table_find_next(&o->table, o->slots, d->address, cell);
    return cell;
}

// Chooses which of the address's blocks a free refers to. If the thread allocated one of the
// blocks, chooses that block, because all earlier blocks were freed before that allocation.
// Otherwise chooses the oldest block, unless another thread frees it with a later stamp.
static uint32_t *choose_block(struct order *o, const struct merge_stream *s, uint64_t stamp,
                              uint64_t address)
{
    const struct order_thread *t = s->user;
    struct order_duplicate *d = duplicate_first(o, address);
    uint32_t *own = own_cell(o, t, address);
    struct order_duplicate *mine = own ? duplicate_of(o, *own) : NULL;
    if (mine) {
        duplicate_forget(o, mine);
        return own;
    }
    uint32_t *oldest = oldest_cell(o, address);
    if (!own && order_overtakes(o, s, stamp, address)) {
        uint32_t *later = duplicate_cell(o, d);
        duplicate_forget(o, d);
        return later;
    }
    if (!own && too_close(o, *oldest, d))
        order_count(&o->counts.ambiguous, 1, t, stamp, address);
    duplicate_forget(o, d);
    return oldest;
}

// The free of the oldest block at this address was lost. To keep the workload valid, the thread
// that next allocated the address frees the block.
int order_duplicate_lost(struct order *o, size_t i)
{
    struct order_duplicate d = o->duplicates[i];
    struct order_thread *t = order_numbered(o, d.thread);
    uint32_t *cell = oldest_cell(o, d.address), slot = *cell;
    struct workload_op op = {.kind = HT_FREE, .slot = slot, .stamp = d.stamp};
    o->counts.repaired--;
    order_count(&o->counts.ambiguous, 1, t, d.stamp, d.address);
    duplicate_forget(o, &o->duplicates[i]);
    table_remove(&o->table, d.address, cell);
    o->n_dependencies = 0;
    int rc = use_block(o, t, slot);
    if (rc == 0)
        rc = slot_release(o, t, slot);
    return rc < 0 ? rc : order_emit_apart(o, t, &op, d.address);
}

static int duplicate_begin(struct order *o, const struct order_thread *t, uint64_t stamp,
                           uint64_t address, uint32_t slot)
{
    uint64_t deadline = stamp + 2 * o->options.window;
    o->duplicates[o->n_duplicates++] = (struct order_duplicate){
        address, stamp, deadline < stamp ? UINT64_MAX - 1 : deadline, slot, t->number};
    o->counts.repaired++;
    order_deadline(o);
    // Drop the oldest duplicate only after the insertion, because the new duplicate may have the
    // same address.
    return o->n_duplicates > ORDER_MAX_DUPLICATES ? order_duplicate_lost(o, 0) : 0;
}

// Inserts the block that the current op allocates. Sets *duplicated if the address already had a
// block.
static inline int bind_address(struct order *o, struct order_thread *t, uint64_t address,
                               uint32_t slot, bool *duplicated)
{
    struct table *table = &o->table;
    if (__builtin_expect(table->n >= table->limit, 0) && table_grow(table, o->slots) < 0)
        return -ENOMEM;
    *duplicated = table_find(table, o->slots, address);
    table_put(table, address, slot);
    o->slots[slot] = (struct table_block){address, order_use(t)};
    return 0;
}

// Handles a second block at the address, and any streams that wait for the allocation.
static int after_allocation(struct order *o, struct order_thread *t, uint64_t stamp,
                            uint64_t address, uint32_t slot, bool duplicated)
{
    int rc = duplicated ? duplicate_begin(o, t, stamp, address, slot) : 0;
    // With one thread, no later record can free the first block, so its free was lost.
    if (rc == 0 && duplicated && o->open_threads <= 1)
        rc = order_duplicate_lost(o, o->n_duplicates - 1);
    if (o->n_held)
        order_wake(o, ORDER_HOLD_RELEASE, address);
    return rc;
}

int order_allocate(struct order *o, struct order_thread *t, struct workload_op *op,
                   uint64_t address)
{
    uint64_t stamp = op->stamp;
    uint32_t slot = 0;
    bool duplicated = false;
    int rc = order_thread_name(o, t);
    if (rc == 0)
        rc = slot_allocate(o, t, &slot);
    if (rc == 0)
        rc = bind_address(o, t, address, slot, &duplicated);
    op->slot = slot;
    if (rc == 0)
        rc = order_emit(o, t, op);
    if (__builtin_expect(rc < 0 || (!duplicated && !o->n_held), 1))
        return rc;
    return after_allocation(o, t, stamp, address, slot, duplicated);
}

// Emits a block that existed before the recording, with its usable size if known. The block gets a
// new slot because it is live from the start.
static int preexisting(struct order *o, struct order_thread *t, uint64_t stamp, uint64_t address,
                       uint32_t *slot)
{
    int rc = order_thread_name(o, t);
    if (rc == 0)
        rc = slot_new(o, slot);
    if (rc < 0)
        return rc;
    order_count(&o->counts.unmatched, 1, t, stamp, address);
    o->slots[*slot] = (struct table_block){address, order_use(t)};
    struct workload_op op = {.kind = HT_PREEXISTING,
                             .flags = o->usable ? 0 : WORKLOAD_SIZE_UNKNOWN,
                             .size = o->usable,
                             .slot = *slot,
                             .stamp = stamp,
                             .allocator = event_allocator(o->call.notes)};
    return order_emit_apart(o, t, &op, address);
}

int order_inherit(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t address)
{
    bool duplicated = table_find(&o->table, o->slots, address);
    if (duplicated)
        return 0;
    int rc = slot_new(o, &op->slot);
    if (rc == 0)
        rc = bind_address(o, t, address, op->slot, &duplicated);
    o->call = (struct order_call){.ptr = address, .added = true};
    if (rc == 0)
        rc = order_emit(o, t, op);
    o->call = (struct order_call){0};
    return rc;
}

int order_listed(struct order *o, struct order_thread *t, struct workload_op *op, uint64_t address)
{
    int rc = address ? order_thread_name(o, t) : 0;
    // The function is unknown, so assume malloc. The higher bits contain the site.
    op->value = HT_MALLOC | op->value << 8;
    return rc < 0 || !address ? rc : order_inherit(o, t, op, address);
}

// Finds the block that the thread frees and removes it from the table. Returns 0, ORDER_HELD, or a
// negative errno.
static inline int unbind_address(struct order *o, struct merge_stream *s, uint64_t stamp,
                                 uint64_t address, uint32_t *slot)
{
    struct order_thread *t = s->user;
    uint32_t *cell = table_find(&o->table, o->slots, address);
    if (__builtin_expect(!cell, 0)) {
        if (s->forced || o->open_threads <= 1 || o->options.no_early_frees)
            return preexisting(o, t, stamp, address, slot);
        order_count_ambiguity(o, t, stamp, address);
        return order_hold(o, s, ORDER_HOLD_RELEASE, stamp, address);
    }
    if (__builtin_expect(o->n_duplicates && duplicate_first(o, address), 0))
        cell = choose_block(o, s, stamp, address);
    else if (o->open_threads > 1 && last_thread(&o->slots[*cell]) != t->number && !s->forced &&
             order_overtakes(o, s, stamp, address))
        return order_hold(o, s, ORDER_HOLD_RELEASE, stamp, address);
    *slot = *cell;
    table_remove(&o->table, address, cell);
    if (__builtin_expect(o->cut_off && o->open_threads > 1, 0))
        order_count(&o->counts.ambiguous, 1, t, stamp, address);
    order_note_release(o, t, stamp, address);
    return 0;
}

int order_release(struct order *o, struct merge_stream *s, struct workload_op *op, uint64_t address)
{
    struct order_thread *t = s->user;
    int rc = unbind_address(o, s, op->stamp, address, &op->slot);
    if (rc == 0)
        rc = order_thread_name(o, t);
    if (rc == 0)
        rc = use_block(o, t, op->slot);
    if (rc == 0)
        rc = slot_release(o, t, op->slot);
    return rc ? rc : order_emit(o, t, op);
}

int order_resize_begin(struct order *o, struct merge_stream *s, uint64_t stamp, uint64_t address)
{
    struct order_thread *t = s->user;
    uint32_t slot;
    int rc = unbind_address(o, s, stamp, address, &slot);
    if (rc)
        return rc;
    if (t->n_pending == ORDER_PENDING) {
        // The oldest pending realloc was abandoned, for example by longjmp. Its block stays live.
        memmove(t->pending, t->pending + 1, (ORDER_PENDING - 1) * sizeof *t->pending);
        t->n_pending--;
    }
    t->pending[t->n_pending++] = (struct order_pending){slot, address};
    return 0;
}

static uint32_t to_kib(uint64_t bytes)
{
    return bytes >> 10 > UINT32_MAX ? UINT32_MAX : (uint32_t)(bytes >> 10);
}

int order_note_residency(struct order *o, const struct workload_op *op, uint64_t ptr)
{
    // While there are duplicates, the address may have two blocks, so ignore the record.
    const uint32_t *cell = o->n_duplicates ? NULL : table_find(&o->table, o->slots, ptr);
    bool is_step = op->kind != HT_RESIDENCY;
    if (!cell || (!is_step && (op->align > op->count || op->value > op->align)))
        return 0;
    struct table_block b = o->slots[*cell];
    uint64_t origin = map_get(&o->failed_resizes, b.last);
    b.last = origin ? origin - 1 : b.last;
    if (is_step) {
        bool is_earlier = op->kind == HT_RESIDENCY_UNCHANGED;
        const struct workload_residency_step step = {
            .op = last_op(&b),
            .thread = last_thread(&b),
            .stamp = op->stamp - (is_earlier ? op->value : 0),
            .used = to_kib(is_earlier ? op->count : op->value),
        };
        if (step.stamp > op->stamp)
            return 0;
        return samples_residency_add_step(&o->residency, &step);
    }
    // If the first page that belongs only to this block is used, the part before that page is
    // assumed to be used as well.
    uint64_t before = op->value ? -ptr & (WORKLOAD_PAGE_BYTES - 1) : 0;
    const struct workload_residency r = {.op = last_op(&b),
                                         .thread = last_thread(&b),
                                         .used = to_kib(before + op->align),
                                         .resident = to_kib(before + op->count),
                                         .front = to_kib(before + op->value)};
    return samples_residency_add(&o->residency, &r);
}

static int resize_of_null(struct order *o, struct order_thread *t, struct workload_op *op,
                          uint64_t result)
{
    op->flags |= WORKLOAD_FROM_NULL;
    if (result)
        return order_allocate(o, t, op, result);
    op->flags |= WORKLOAD_FAILED;
    return order_emit(o, t, op);
}

// Residency belongs to the op that allocated the block. A failed realloc is a later use of the
// block, so this function stores the last use before the failed reallocs.
static int note_failed_resize(struct order *o, uint32_t slot, uint64_t last)
{
    uint64_t origin = map_get(&o->failed_resizes, last);
    return map_put(&o->failed_resizes, o->slots[slot].last, origin ? origin : last + 1);
}

int order_resize_end(struct order *o, struct order_thread *t, struct workload_op *op,
                     uint64_t result)
{
    if (!t->n_pending)
        return resize_of_null(o, t, op, result);
    struct order_pending from = t->pending[--t->n_pending];
    o->call.ptr = from.address;
    uint64_t stamp = op->stamp, address = result ? result : from.address,
             last = o->slots[from.slot].last;
    bool duplicated = false;
    op->slot = from.slot;
    int rc = order_thread_name(o, t);
    if (rc == 0)
        rc = use_block(o, t, from.slot);
    if (rc < 0)
        return rc;
    if (!result && !op->error) {
        op->flags |= WORKLOAD_FREED;
        rc = slot_release(o, t, from.slot);
        return rc < 0 ? rc : order_emit(o, t, op);
    }
    if (!result)
        op->flags |= WORKLOAD_FAILED;
    else if (result != from.address)
        op->flags |= WORKLOAD_MOVED;
    rc = bind_address(o, t, address, from.slot, &duplicated);
    if (rc == 0 && !result)
        rc = note_failed_resize(o, from.slot, last);
    if (rc == 0)
        rc = order_emit(o, t, op);
    return rc < 0 || (!duplicated && !o->n_held)
               ? rc
               : after_allocation(o, t, stamp, address, from.slot, duplicated);
}
