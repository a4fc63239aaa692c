// The call sites that ops name: numbered as they come, and put together at the end, because a thread may use a site
// before the definition in another thread's stream.
#include "base/bytes.h"
#include "convert/order_private.h"

#include <errno.h>
#include <stdlib.h>

// What the producer writes has no more frames; in what others write this bounds loops.
enum { MAX_FRAMES = 128 };

void order_sites_release(struct order *o)
{
    map_release(&o->site_numbers);
    map_release(&o->frame_numbers);
    free(o->frames);
    workload_sites_release(&o->sites);
    names_release(&o->names);
}

uint32_t order_number_site(struct order *o, uint64_t id)
{
    uint64_t number = map_get(&o->site_numbers, id);
    if (!number) {
        number = o->site_numbers.n + 1;
        // Its definition may be lost, but the number is one of a site.
        if (number >= UINT32_MAX || workload_sites_define(&o->sites, (uint32_t)number, NULL, 0) < 0 ||
            map_put(&o->site_numbers, id, number) < 0)
            return 0;
    }
    return (uint32_t)number;
}

int order_define_frame(struct order *o, uint64_t id, const struct order_frame *frame)
{
    if (map_get(&o->frame_numbers, id))
        return 0;
    if (HT_GROW(&o->frames, &o->frames_capacity, o->n_frames + 1) < 0 ||
        map_put(&o->frame_numbers, id, o->n_frames + 1) < 0)
        return -ENOMEM;
    o->frames[o->n_frames++] = *frame;
    return 0;
}

static int define_frames(struct order *o, const struct workload_op *op)
{
    uint64_t outer = op->size;
    int rc = 0;
    for (uint32_t i = op->text_bytes / 8; rc == 0 && i-- > 0;) {
        uint64_t address = get_u64((const uint8_t *)op->text + 8 * i), id = codec_site(outer, address);
        rc = order_define_frame(o, id, &(struct order_frame){outer, workload_sites_locate(&o->sites, address)});
        outer = id;
    }
    return rc;
}

int order_define_site(struct order *o, const struct workload_op *op, uint64_t ptr)
{
    if (op->kind == HT_MODULE) {
        const struct workload_module m = {.start = ptr, .bytes = op->size, .offset = op->value};
        return workload_sites_module(&o->sites, &m, op->text, op->text_bytes);
    }
    if (op->kind == HT_FRAMES)
        return define_frames(o, op);
    if (op->kind == HT_FRAME)
        return order_define_frame(o, op->value, &(struct order_frame){op->size, workload_sites_locate(&o->sites, ptr)});
    uint32_t number = order_number_site(o, op->value);
    return number ? workload_sites_define(&o->sites, number, op->text, op->text_bytes / 8) : -ENOMEM;
}

static int set_frames(struct order *o, uint64_t id, uint32_t number)
{
    struct workload_frame frames[MAX_FRAMES];
    uint32_t n = 0;
    for (size_t i; n < MAX_FRAMES && (i = map_get(&o->frame_numbers, id)); id = o->frames[i - 1].parent)
        frames[n++] = o->frames[i - 1].frame;
    return n ? workload_sites_set(&o->sites, number, frames, n) : 0;
}

int order_finish_sites(struct order *o)
{
    int rc = names_copy(&o->sites.names, &o->names, o->inherited_modules);
    for (size_t i = 0; rc == 0 && o->n_frames && i < o->site_numbers.capacity; i++) {
        const struct map_cell *c = &o->site_numbers.cells[i];
        rc = c->value ? set_frames(o, c->key, (uint32_t)c->value) : 0;
    }
    return rc;
}
