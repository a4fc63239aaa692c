// Late use of big blocks. The player touches a block when it is allocated, but the program may have
// used it later, or piece by piece. The samples of the program's memory reveal such use. If a
// sample has less private memory than the live and used blocks would need, parts of the newest big
// blocks were not used yet. If a later sample has more private memory, the oldest of these blocks
// were used between the two samples. A block that was measured several times while it was live has
// steps. For such a block, samples decide only the use between two steps. Any remaining pages are
// touched right before the block is freed or resized, or before its thread exits.
//
// Pages are touched only while the block is live. The thread of the next op touches the pages that
// are due in the blocks of all threads, because the blocks' own threads may sleep until other
// blocks are freed. Each touch of a block depends on its previous touch or, for the first touch, on
// its allocation. The block's release depends on the last touch.
#include "base/buf.h"
#include "replay/plan/build.h"

enum {
    MAX_LATE = 1024, // additional blocks are touched when they are allocated
    // Blocks count as late only if a sample's memory is below the expected memory by more than this
    // limit. The kernel counts resident pages per thread or CPU, and adds several dozen pages to
    // the total at a time.
    SLACK_BYTES = 512 << 10,
    SLACK_PART = 32, // plus 1/SLACK_PART of the used bytes
};

static uint64_t unused_bytes(const struct plan_slot *slot)
{
    return (uint64_t)((double)slot->size * slot->unused / PLAN_UNUSED_ALL);
}

// Returns the maximum number of pages used before the next step. After the last step, returns the
// number of all used pages.
static uint64_t most_pages(const struct plan_late *l)
{
    uint64_t pages = l->n_steps ? l->steps->used / WORKLOAD_PAGE_KIB : l->used;
    return pages < l->used ? pages : l->used;
}

// Reduces the number of pages that the block's TOUCH writes. Call before another op touches the
// block.
static void touch_first(struct plan *p, struct plan_late *l, uint64_t pages)
{
    p->late_bytes += (l->due - pages) * WORKLOAD_PAGE_BYTES;
    l->due = l->touched = pages;
    p->memory.words[l->touch] = (uint32_t)p->memory.words[l->touch] | (l->used - pages) << 32;
}

int plan_late_allocated(struct plan *p, struct plan_slot *slot, const struct plan_late *late,
                        struct err *e)
{
    uint64_t used = late->used * WORKLOAD_PAGE_BYTES < slot->size ? late->used * WORKLOAD_PAGE_BYTES
                                                                  : slot->size;
    slot->unused = (uint16_t)((double)(slot->size - used) / (double)slot->size * PLAN_UNUSED_ALL);
    p->unused += unused_bytes(slot);
    if (!late->touch || !late->used || p->facts.streamed || late->pages > INT32_MAX ||
        late->entry >> PLAN_ENTRY_BITS || p->n_lates == MAX_LATE ||
        (!late->n_steps && p->n_passed == p->n_recorded))
        return 0;
    if (HT_APPEND(&p->lates, &p->n_lates, &p->lates_capacity, *late) < 0)
        return err_no_memory(e, NULL);
    struct plan_late *l = &p->lates[p->n_lates - 1];
    l->due = l->used;
    touch_first(p, l, most_pages(l));
    if (l->n_steps && l->steps->stamp < p->next_step)
        p->next_step = l->steps->stamp;
    return 0;
}

enum { OP_BITS = 44 }; // bits for the op number in a value of late_uses
_Static_assert(PLAN_MAX_THREADS <= 1 << (64 - OP_BITS),
               "a thread number and an op number fit into a value");

// Makes the next op of `s` wait for the last TOUCH_LATE of the block in `entry`. Returns 1 if the
// block has no TOUCH_LATE.
static int wait_for_use(struct plan *p, struct plan_stream *s, uint32_t entry, struct err *e)
{
    uint64_t use = map_get(&p->late_uses, entry);
    uint64_t op = (use & ((1ull << OP_BITS) - 1)) - 1;
    return use ? plan_wait_for_op(p, s, p->streams[use >> OP_BITS], op, e) : 1;
}

// Appends a TOUCH_LATE to `s`, up to used page number `to`. The block's next touch by another
// thread and the block's release depend on the next op of `s`, which follows the TOUCH_LATE.
static int put_touch(struct plan *p, struct plan_stream *s, struct plan_late *l, uint64_t to,
                     struct err *e)
{
    if (to == l->touched)
        return 0;
    int rc = wait_for_use(p, s, l->entry, e);
    if (rc > 0)
        rc = plan_wait_for_op(p, s, l->owner, l->allocation, e);
    if (rc == 0)
        rc = plan_put_touch_late(p, s, l, to, e);
    l->touched = to;
    if (rc == 0 &&
        map_put(&p->late_uses, l->entry, (uint64_t)s->number << OP_BITS | (s->ops + 1)) < 0)
        rc = err_no_memory(e, NULL);
    return rc;
}

int plan_late_released(struct plan *p, struct plan_stream *s, struct plan_slot *slot, struct err *e)
{
    if (slot->size < HT_BIG_BYTES)
        return 0;
    p->unused -= unused_bytes(slot);
    slot->unused = 0;
    int rc = wait_for_use(p, s, slot->entry, e);
    if (rc == 0)
        map_remove(&p->late_uses, slot->entry);
    rc = rc > 0 ? 0 : rc;
    for (size_t i = p->n_lates; i-- > 0;) {
        struct plan_late *l = &p->lates[i];
        if (l->entry != slot->entry)
            continue;
        p->late_bytes -= (l->used - l->due) * WORKLOAD_PAGE_BYTES;
        if (rc == 0 && l->touched < l->used)
            rc = plan_put_touch_late(p, s, l, l->used, e);
        memmove(l, l + 1, (--p->n_lates - i) * sizeof *l);
        break;
    }
    return rc;
}

// Defers the use of `bytes` bytes, starting with the newest block.
static void defer_use(struct plan *p, uint64_t bytes)
{
    for (size_t i = p->n_lates; i-- > 0 && bytes >= WORKLOAD_PAGE_BYTES;) {
        struct plan_late *l = &p->lates[i];
        uint64_t pages =
            bytes / WORKLOAD_PAGE_BYTES < l->due ? bytes / WORKLOAD_PAGE_BYTES : l->due;
        if (l->sampled)
            continue;
        touch_first(p, l, l->due - pages);
        bytes -= pages * WORKLOAD_PAGE_BYTES;
    }
}

// Raises the number of due pages to `pages`. Returns the increase.
static uint64_t raise_due(struct plan *p, struct plan_late *l, uint64_t pages)
{
    uint64_t more = pages > l->due ? pages - l->due : 0;
    l->due += more;
    p->late_bytes -= more * WORKLOAD_PAGE_BYTES;
    return more;
}

static void apply_use(struct plan *p, uint64_t bytes)
{
    for (size_t i = 0; i < p->n_lates && bytes >= WORKLOAD_PAGE_BYTES; i++) {
        struct plan_late *l = &p->lates[i];
        uint64_t most = most_pages(l), wanted = l->due + bytes / WORKLOAD_PAGE_BYTES;
        bytes -= raise_due(p, l, wanted < most ? wanted : most) * WORKLOAD_PAGE_BYTES;
    }
}

void plan_late_sample(struct plan *p, const struct workload_sample *sample)
{
    // Bytes that the replay uses at this point, and bytes that the program used.
    int64_t is = p->live - (int64_t)p->unused - (int64_t)p->late_bytes,
            was = (int64_t)sample->anon_bytes;
    // The allocations of preexisting blocks are unknown, and the ops of these blocks may have late
    // timestamps.
    if (p->facts.preexisting || is < 0)
        return;
    if (!p->has_beside) {
        p->has_beside = true;
        p->beside_heap = was > is ? was - is : 0;
    }
    was -= p->beside_heap;
    if (was > is)
        apply_use(p, (uint64_t)(was - is));
    else if (is - was > SLACK_BYTES + is / SLACK_PART)
        defer_use(p, (uint64_t)(is - was));
    size_t n = 0;
    for (size_t i = 0; i < p->n_lates; i++) {
        struct plan_late *l = &p->lates[i];
        l->sampled = true;
        if (l->touched < l->used)
            p->lates[n++] = *l;
    }
    p->n_lates = n;
}

void plan_late_step(struct plan *p, uint64_t stamp)
{
    p->next_step = UINT64_MAX;
    for (size_t i = 0; i < p->n_lates; i++) {
        struct plan_late *l = &p->lates[i];
        for (; l->n_steps && l->steps->stamp <= stamp; l->n_steps--, l->steps++) {
            raise_due(p, l, most_pages(l));
            l->sampled = true;
        }
        if (l->n_steps && l->steps->stamp < p->next_step)
            p->next_step = l->steps->stamp;
    }
}

void plan_late_use_all(struct plan *p)
{
    for (size_t i = 0; i < p->n_lates; i++)
        raise_due(p, &p->lates[i], most_pages(&p->lates[i]));
}

struct plan_stream *plan_late_stream(const struct plan *p)
{
    for (size_t i = 0; i < p->n_lates; i++) {
        if (!p->lates[i].sampled || p->lates[i].touched < p->lates[i].used)
            return p->lates[i].owner;
    }
    return NULL;
}

int plan_late_put(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < p->n_lates && rc == 0; i++)
        rc = put_touch(p, s ? s : p->lates[i].owner, &p->lates[i], p->lates[i].due, e);
    return rc;
}

int plan_late_exit(struct plan *p, struct plan_stream *s, uint32_t thread, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < p->n_lates && rc == 0; i++) {
        struct plan_late *l = &p->lates[i];
        if (l->owner != s || l->thread != thread)
            continue;
        raise_due(p, l, l->used);
        rc = put_touch(p, s, l, l->due, e);
    }
    return rc;
}
