#include "analysis/site_uses.h"

#include "analysis/by_site.h"
#include "analysis/size_classes.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void site_uses_release(struct site_uses *u)
{
    free(u->sites);
    free(u->slots);
    free(u->threads);
    *u = (struct site_uses){0};
}

static int make_room(struct site_uses *u, uint32_t thread, uint32_t slot, uint32_t site)
{
    if (HT_EXTEND(&u->threads, &u->n_threads, &u->threads_capacity, (size_t)thread + 1) < 0 ||
        HT_EXTEND(&u->slots, &u->n_slots, &u->slots_capacity, (size_t)slot + 1) < 0)
        return -ENOMEM;
    return HT_EXTEND(&u->sites, &u->n_sites, &u->sites_capacity, (size_t)site + 1);
}

// The block that the thread has just allocated may be what replaces this one.
static bool is_regrown(const struct site_uses *u, uint32_t thread,
                       const struct site_uses_slot *freed)
{
    enum { MAX_FACTOR = 4 };
    const struct site_uses_thread *t = &u->threads[thread];
    const struct site_uses_slot *larger = &u->slots[t->slot];
    return t->is_last && larger->live && larger->site == freed->site &&
           larger->size > freed->size && larger->size / MAX_FACTOR <= freed->size &&
           freed->thread == thread;
}

static void count_free(struct site_uses *u, uint32_t thread, struct site_uses_slot *s)
{
    struct site_use *use = &u->sites[s->site];
    if (!s->live)
        return;
    s->live = false;
    use->freed++;
    use->short_lived += u->events - s->event <= SITE_USES_SHORT_EVENTS;
    use->remote += s->thread != thread;
    if (is_regrown(u, thread, s)) {
        use->regrown.blocks++;
        use->regrown.bytes += s->size;
    }
}

static void count_size(struct site_use *use, uint64_t size)
{
    uint64_t lost = size_classes_above(size);
    use->above.blocks += lost > 0;
    use->above.bytes += lost;
}

int site_uses_op(struct site_uses *u, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    bool before = op->kind == HT_PREEXISTING;
    uint64_t site = before ? op->value >> 8 : op->value;
    u->events += !before;
    if (class > HT_CLASS_RESIZE || class == HT_CLASS_NONE || op->slot == WORKLOAD_NO_SLOT ||
        op->flags & WORKLOAD_FAILED)
        return 0;
    site = class == HT_CLASS_FREE || site > BY_SITE_MAX ? 0 : site;
    if (make_room(u, thread, op->slot, (uint32_t)site) < 0)
        return -ENOMEM;
    struct site_uses_slot *s = &u->slots[op->slot];
    if (class == HT_CLASS_FREE || op->flags & WORKLOAD_FREED) {
        count_free(u, thread, s);
        u->threads[thread].is_last = false;
        return 0;
    }
    uint64_t size = event_requested(op->kind, op->size, op->count);
    *s = (struct site_uses_slot){size, u->events, (uint32_t)site, thread, true};
    u->threads[thread] = (struct site_uses_thread){op->slot, class == HT_CLASS_ALLOC && !before};
    if (!before)
        count_size(&u->sites[site], size);
    return 0;
}
