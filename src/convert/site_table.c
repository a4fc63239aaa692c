#include "convert/site_table.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include <errno.h>
#include <stdlib.h>

// The producer never writes more frames per stack than this. The limit bounds loops over malicious
// input.
enum { MAX_FRAMES = 128 };

void site_table_release(struct site_table *t)
{
    map_release(&t->numbers);
    map_release(&t->frame_numbers);
    free(t->frames);
    workload_sites_release(&t->all);
    *t = (struct site_table){0};
}

uint32_t site_table_number(struct site_table *t, uint64_t id)
{
    uint64_t number = map_get(&t->numbers, id);
    if (!number) {
        number = t->numbers.n + 1;
        // The definition may have been lost, but the number must still name a site.
        if (number >= UINT32_MAX || workload_sites_define(&t->all, (uint32_t)number, NULL, 0) < 0 ||
            map_put(&t->numbers, id, number) < 0)
            return 0;
    }
    return (uint32_t)number;
}

int site_table_frame(struct site_table *t, uint64_t id, const struct site_table_frame *frame)
{
    if (map_get(&t->frame_numbers, id))
        return 0;
    if (HT_GROW(&t->frames, &t->frames_capacity, t->n_frames + 1) < 0 ||
        map_put(&t->frame_numbers, id, t->n_frames + 1) < 0)
        return -ENOMEM;
    t->frames[t->n_frames++] = *frame;
    return 0;
}

static int define_frames(struct site_table *t, const struct site_table_record *r)
{
    uint64_t outer = r->size;
    int rc = 0;
    for (uint32_t i = r->text_bytes / 8; rc == 0 && i-- > 0;) {
        uint64_t address = get_u64((const uint8_t *)r->text + 8 * i),
                 id = codec_site(outer, address);
        rc = site_table_frame(
            t, id, &(struct site_table_frame){outer, workload_sites_locate(&t->all, address)});
        outer = id;
    }
    return rc;
}

int site_table_define(struct site_table *t, const struct site_table_record *r)
{
    if (r->kind == HT_MODULE && codec_is_script(r->ptr))
        return 0; // the names are in a NAMES frame
    if (r->kind == HT_MODULE) {
        const struct workload_module m = {.start = r->ptr, .bytes = r->size, .offset = r->value};
        return workload_sites_module(&t->all, &m, r->text, r->text_bytes);
    }
    if (r->kind == HT_FRAMES)
        return define_frames(t, r);
    if (r->kind == HT_FRAME)
        return site_table_frame(
            t, r->value,
            &(struct site_table_frame){r->size, workload_sites_locate(&t->all, r->ptr)});
    uint32_t number = site_table_number(t, r->value);
    return number ? workload_sites_define(&t->all, number, r->text, r->text_bytes / 8) : -ENOMEM;
}

// Collects the defined frames, innermost first. Sets *outer to the id of the first undefined
// caller, or to 0 if the stack is complete.
static uint32_t collect_frames(const struct site_table *t, uint64_t id,
                               struct workload_frame frames[MAX_FRAMES], uint64_t *outer)
{
    uint32_t n = 0;
    for (size_t i; n < MAX_FRAMES && (i = map_get(&t->frame_numbers, id));
         id = t->frames[i - 1].parent)
        frames[n++] = t->frames[i - 1].frame;
    *outer = n < MAX_FRAMES && id >= CODEC_GENERATIONS ? id : 0;
    return n;
}

int site_table_resolve(struct site_table *t, uint64_t id, uint32_t number)
{
    struct workload_frame frames[MAX_FRAMES];
    uint64_t outer;
    uint32_t n = collect_frames(t, id, frames, &outer);
    return n ? workload_sites_set(&t->all, number, frames, n) : 0;
}

// Returns the ids of the sites by their numbers, which begin at 1, or NULL if out of memory. Sites
// are resolved in this order, so that the same trace always gives the same workload.
static uint64_t *list_ids(const struct site_table *t)
{
    uint64_t *ids = calloc(t->numbers.n + 1, sizeof *ids);
    for (size_t i = 0; ids && i < t->numbers.capacity; i++) {
        if (t->numbers.cells[i].value)
            ids[t->numbers.cells[i].value] = t->numbers.cells[i].key;
    }
    return ids;
}

int site_table_resolve_all(struct site_table *t)
{
    uint64_t *ids = list_ids(t);
    int rc = ids ? 0 : -ENOMEM;
    for (uint32_t number = 1; rc == 0 && t->n_frames && number <= t->numbers.n; number++)
        rc = site_table_resolve(t, ids[number], number);
    free(ids);
    return rc;
}

int site_table_resolve_whole(const struct site_table *t, struct workload_sites *to)
{
    struct workload_frame frames[MAX_FRAMES];
    uint64_t outer, *ids = list_ids(t);
    int rc = ids ? 0 : -ENOMEM;
    for (uint32_t number = 1; rc == 0 && t->n_frames && number <= t->numbers.n; number++) {
        uint32_t n = collect_frames(t, ids[number], frames, &outer);
        rc = n && !outer ? workload_sites_set(to, number, frames, n) : 0;
    }
    free(ids);
    return rc;
}
