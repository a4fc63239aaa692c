// Snapshots of the live blocks. A snapshot consists of the blocks that are live at a point in the
// total order, and an op that copies the slot table at that point while no other thread is running.
#include "base/buf.h"
#include "replay/plan/build.h"
#include "workload/format.h"

static int append_block(struct plan *p, struct plan_snapshot *s, uint32_t slot, struct err *e)
{
    const struct plan_allocation *a = &p->allocations[slot];
    const struct plan_snapshot_block block = {.size = p->slots[slot].size,
                                              .allocated_at = a->at,
                                              .site = a->site,
                                              .thread = a->thread,
                                              .entry = p->slots[slot].entry};
    return HT_APPEND(&s->blocks, &s->n, &s->capacity, block) < 0 ? err_no_memory(e, NULL) : 0;
}

int plan_note_allocation(struct plan *p, uint32_t thread, const struct workload_op *op,
                         struct err *e)
{
    bool before = op->kind == HT_PREEXISTING;
    if (!p->settings.snapshots)
        return 0;
    if (HT_GROW(&p->allocations, &p->allocations_capacity, (size_t)op->slot + 1) < 0)
        return err_no_memory(e, NULL);
    p->allocations[op->slot] =
        (struct plan_allocation){.at = before ? PLAN_BEFORE_START : p->facts.events,
                                 .site = format_op_site(op),
                                 .thread = thread};
    // The preexisting block was already live at the snapshot, although its op comes later.
    return before && p->has_snapshot
               ? append_block(p, &p->snapshots[PLAN_SNAPSHOT_PEAK], op->slot, e)
               : 0;
}

static int collect_blocks(struct plan *p, unsigned which, struct err *e)
{
    int rc = 0;
    p->snapshots[which].event = p->facts.events;
    for (size_t i = 0; rc == 0 && i < p->n_slots; i++)
        rc = p->slots[i].entry ? append_block(p, &p->snapshots[which], (uint32_t)i, e) : 0;
    return rc;
}

// Makes the SNAPSHOT wait for all ops so far.
static int add_snapshot(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = collect_blocks(p, PLAN_SNAPSHOT_PEAK, e);
    for (size_t i = 0; rc == 0 && i < p->n_streams; i++) {
        const struct plan_stream *other = p->streams[i];
        if (other && other->ops)
            rc = plan_wait_for_op(p, s, other, other->ops - 1, e);
    }
    p->has_snapshot = true;
    p->snapshot_thread = s->number;
    p->snapshot_op = s->ops;
    return rc < 0 ? rc : plan_put_word(p, s, PLAN_SNAPSHOT, e);
}

int plan_snapshot_before(struct plan *p, struct plan_stream *s, struct err *e)
{
    if (p->added == p->settings.snapshot_after_ops)
        return add_snapshot(p, s, e);
    // The first op of a thread may have no dependency. Without this wait, the thread could start
    // before the snapshot.
    return p->added > p->settings.snapshot_after_ops && !s->ops
               ? plan_wait_for_op(p, s, p->streams[p->snapshot_thread], p->snapshot_op, e)
               : 0;
}

int plan_snapshot_after(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = 0;
    if (p->added != p->settings.snapshot_after_ops)
        return 0;
    for (size_t i = 0; rc == 0 && i < p->n_streams; i++) {
        struct plan_stream *other = p->streams[i];
        if (other && other->ops)
            rc = plan_wait_for_op(p, other, s, p->snapshot_op, e);
    }
    return rc;
}

int plan_finish_snapshots(struct plan *p, struct err *e)
{
    return p->settings.snapshots ? collect_blocks(p, PLAN_SNAPSHOT_END, e) : 0;
}

const struct plan_snapshot *plan_snapshots(const struct plan *p, unsigned which, unsigned *copy)
{
    *copy = p->has_snapshot ? which : PLAN_SNAPSHOT_END;
    return &p->snapshots[*copy];
}
