#include "analysis/site_uses.h"

#include "analysis/by_site.h"
#include "analysis/size_classes.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void site_uses_release(struct site_uses *u)
{
    free(u->sites);
    free(u->threads);
    *u = (struct site_uses){0};
}

// If the thread's last allocation probably replaces the freed block, counts the block.
static void count_replaced(struct site_use *use, const struct live_blocks_entry *freed,
                           const struct live_blocks_entry *last)
{
    enum { MAX_FACTOR = 4 };
    if (last->site != freed->site)
        return;
    use->replaced++;
    if (last->size > freed->size && last->size / MAX_FACTOR <= freed->size) {
        use->regrown.blocks++;
        use->regrown.bytes += freed->size;
    }
}

static void count_size(struct site_use *use, uint64_t size)
{
    uint64_t lost = size_classes_above(size);
    use->above.blocks += lost > 0;
    use->above.bytes += lost;
}

int site_uses_op(struct site_uses *u, const struct live_blocks *live, uint64_t event,
                 uint32_t thread, const struct workload_op *op)
{
    bool frees = format_block_use(op) == FORMAT_SLOT_FREED;
    uint32_t site = frees ? 0 : by_site_of(op);
    const struct live_blocks_entry *freed = frees ? live_blocks_find(live, op->slot) : NULL;
    if (HT_EXTEND(&u->threads, &u->n_threads, &u->threads_capacity, thread + 1ull) < 0 ||
        HT_EXTEND(&u->sites, &u->n_sites, &u->sites_capacity, site + 1ull) < 0)
        return -ENOMEM;
    struct site_uses_thread *t = &u->threads[thread];
    if (freed) {
        struct site_use *use = &u->sites[freed->site];
        const struct live_blocks_entry *last = t->is_last ? live_blocks_find(live, t->slot) : NULL;
        use->freed++;
        use->short_lived += event - freed->event <= SITE_USES_SHORT_EVENTS;
        use->remote += freed->thread != thread;
        if (last && freed->thread == thread)
            count_replaced(use, freed, last);
    }
    bool allocates = event_infos[op->kind].class == HT_CLASS_ALLOC && op->kind != HT_PREEXISTING;
    *t = (struct site_uses_thread){op->slot, allocates};
    if (!frees && op->kind != HT_PREEXISTING)
        count_size(&u->sites[site], event_requested(op->kind, op->size, op->count));
    return 0;
}
