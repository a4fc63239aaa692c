#include "convert/heap.h"

#include "base/buf.h"
#include "convert/order/order_private.h"
#include "workload/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_FREED = 1 << 22, // limits the memory to 160 MiB if a process frees blocks very fast
};

void heap_notes_release(struct heap_notes *h)
{
    free(h->items);
    free(h->freed);
    *h = (struct heap_notes){0};
}

static void note_block(struct heap_note *n, const struct workload_op *op)
{
    bool before = op->kind == HT_PREEXISTING;
    uint64_t align =
        op->kind == HT_VALLOC || op->kind == HT_PVALLOC ? WORKLOAD_PAGE_BYTES : op->align;
    *n = (struct heap_note){.size = event_requested(op->kind, op->size, op->count),
                            .stamp = op->stamp,
                            .site = (uint32_t)format_op_site(op),
                            .kind = before ? (uint8_t)op->value : op->kind,
                            .align_log2 = align ? (uint8_t)__builtin_ctzll(align) : 0,
                            .allocator = op->allocator,
                            .size_unknown = op->flags & WORKLOAD_SIZE_UNKNOWN};
}

static int note_freed(struct heap_notes *h, const struct workload_op *op,
                      const struct order_call *call)
{
    if (op->slot >= h->n)
        return 0;
    h->first_freed += h->n_freed - h->first_freed == MAX_FREED;
    if (h->n_freed == h->freed_capacity && h->first_freed > h->n_freed / 2) {
        h->n_freed -= h->first_freed;
        memmove(h->freed, h->freed + h->first_freed, h->n_freed * sizeof *h->freed);
        h->first_freed = 0;
    }
    return HT_APPEND(&h->freed, &h->n_freed, &h->freed_capacity,
                     (struct heap_freed){op->stamp, call->ptr, h->items[op->slot]});
}

void heap_forget_freed(struct heap_notes *h, uint64_t stamp)
{
    while (h->first_freed < h->n_freed && h->freed[h->first_freed].stamp < stamp)
        h->first_freed++;
}

int heap_note_ops(struct heap_notes *h, const struct workload_thread_op *ops,
                  const struct order_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct workload_op *op = &ops[i].op;
        enum format_slot_use use = format_block_use(op);
        bool frees = use == FORMAT_SLOT_FREED || use == FORMAT_SLOT_KEEP;
        if (calls && frees && note_freed(h, op, &calls[i]) < 0)
            return -ENOMEM;
        if (use != FORMAT_SLOT_ALLOCATED && use != FORMAT_SLOT_KEEP)
            continue;
        if (HT_EXTEND(&h->items, &h->n, &h->capacity, op->slot + 1ull) < 0)
            return -ENOMEM;
        note_block(&h->items[op->slot], op);
    }
    return 0;
}

void heap_release(struct heap *h)
{
    free(h->blocks);
    free(h->frames);
    workload_sites_release(&h->modules);
    *h = (struct heap){0};
}

// Returns the trace ids of the sites, indexed by site number, or NULL when out of memory. The
// caller frees the array.
static uint64_t *site_ids(const struct order *o)
{
    uint64_t *ids = calloc(o->sites.numbers.n + 1, sizeof *ids);
    for (size_t i = 0; ids && i < o->sites.numbers.capacity; i++)
        ids[o->sites.numbers.cells[i].value] = o->sites.numbers.cells[i].key;
    return ids;
}

static int copy_sites_from(struct heap *h, const struct order *o)
{
    if (o->sites.n_frames && HT_GROW(&h->frames, &h->frames_capacity, o->sites.n_frames) < 0)
        return -ENOMEM;
    for (size_t i = 0; o->sites.n_frames && i < o->sites.frame_numbers.capacity; i++) {
        const struct map_cell *c = &o->sites.frame_numbers.cells[i];
        if (!c->value)
            continue;
        const struct site_table_frame *f = &o->sites.frames[c->value - 1];
        h->frames[h->n_frames++] = (struct heap_frame){c->key, f->parent, f->frame};
    }
    return workload_sites_copy_modules(&h->modules, &o->sites.all);
}

// Returns true if a later block has the same address.
static bool is_replaced(const struct order *o, uint32_t slot)
{
    bool later = true;
    for (size_t i = o->n_duplicates; i-- > 0 && later;) {
        later = o->duplicates[i].slot != slot;
        if (later && o->duplicates[i].address == o->slots[slot].address)
            return true;
    }
    return false;
}

static struct heap_block make_block(const struct order *o, const uint64_t *ids,
                                    const struct heap_note *n, uint64_t address)
{
    return (struct heap_block){.address = address,
                               .size = n->size,
                               .stamp = n->stamp,
                               .site = n->site <= o->sites.numbers.n ? ids[n->site] : 0,
                               .kind = n->kind,
                               .align_log2 = n->align_log2,
                               .allocator = n->allocator,
                               .size_unknown = n->size_unknown};
}

int heap_each(const struct order *o, const struct heap_notes *notes,
              int (*visit)(void *context, const struct heap_block *b), void *context)
{
    uint64_t *ids = site_ids(o);
    int rc = ids ? 0 : -ENOMEM;
    for (uint32_t slot = 0; rc == 0 && slot < o->n_slots && slot < notes->n; slot++) {
        if (!o->slots[slot].address || is_replaced(o, slot))
            continue;
        const struct heap_block b = make_block(o, ids, &notes->items[slot], o->slots[slot].address);
        rc = visit(context, &b);
    }
    free(ids);
    return rc;
}

static int copy_block(void *context, const struct heap_block *b)
{
    struct heap *h = context;
    if (b->stamp > h->limit)
        return 0;
    return HT_APPEND(&h->blocks, &h->n_blocks, &h->blocks_capacity, *b);
}

// Copies the blocks that were live at the fork and have been freed since the fork.
static int copy_freed(struct heap *h, const struct order *parent, const struct heap_notes *notes)
{
    uint64_t *ids = site_ids(parent);
    int rc = ids ? 0 : -ENOMEM;
    for (size_t i = notes->first_freed; rc == 0 && i < notes->n_freed; i++) {
        const struct heap_freed *f = &notes->freed[i];
        const struct heap_block b = make_block(parent, ids, &f->note, f->address);
        rc = f->stamp > h->limit ? copy_block(h, &b) : 0;
    }
    free(ids);
    return rc;
}

int heap_copy(struct heap *h, struct order *parent, const struct heap_notes *notes, uint64_t stamp)
{
    int rc = order_settle(parent, stamp);
    h->stamp = stamp;
    // Allocations up to this stamp count as earlier than the fork.
    h->limit = stamp + parent->options.skid;
    if (rc == 0)
        rc = heap_each(parent, notes, copy_block, h);
    if (rc == 0)
        rc = copy_freed(h, parent, notes);
    return rc < 0 ? rc : copy_sites_from(h, parent);
}

static int copy_sites_to(const struct heap *h, struct order *o)
{
    int rc = workload_sites_copy_modules(&o->sites.all, &h->modules);
    o->inherited_modules = (uint32_t)o->sites.all.n_modules;
    for (size_t i = 0; rc == 0 && i < h->n_frames; i++)
        rc = site_table_frame(&o->sites, h->frames[i].id,
                              &(struct site_table_frame){h->frames[i].parent, h->frames[i].frame});
    return rc;
}

static int emit_block(const struct heap *h, struct order *o, struct order_thread *t,
                      const struct heap_block *b)
{
    uint32_t site = b->site ? site_table_number(&o->sites, b->site) : 0;
    struct workload_op op = {.kind = HT_PREEXISTING,
                             .flags = b->size_unknown ? WORKLOAD_SIZE_UNKNOWN : 0,
                             .stamp = h->stamp,
                             .size = b->size,
                             .align = b->align_log2 ? 1ull << b->align_log2 : 0,
                             .value = b->kind | (uint64_t)site << 8,
                             .allocator = b->allocator};
    return b->site && !site ? -ENOMEM : order_inherit(o, t, &op, b->address);
}

int heap_restore(const struct heap *h, struct order *child)
{
    struct order_thread *t = order_thread_get(child, 0);
    int rc = t ? order_thread_name(child, t) : -ENOMEM;
    if (rc == 0)
        rc = copy_sites_to(h, child);
    for (size_t i = 0; rc == 0 && i < h->n_blocks; i++)
        rc = emit_block(h, child, t, &h->blocks[i]);
    // Flush, so that the sink fills in the notes, which the caller needs in order to list the
    // blocks.
    return rc < 0 ? rc : order_flush(child);
}
