#include "analysis/memory/fragmentation.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>

struct placed_block {
    uint64_t address, bytes; // `bytes` is at least 1
    uint32_t groups[FRAGMENTATION_GROUPINGS];
};

// The part of a block that lies in the current page.
struct block_part {
    const struct placed_block *block;
    uint64_t bytes;
};

struct finding {
    struct fragmentation *out;
    const struct fragmentation_heap *heap;
    // Maps the key of a group to the group's number plus 1.
    struct map index[FRAGMENTATION_GROUPINGS];
    struct placed_block *blocks;
    size_t n;
    uint64_t page;
    struct block_part *pieces;
    size_t n_pieces, pieces_capacity;
};

static uint64_t key_of(const struct fragmentation_heap *h, const struct fragmentation_block *b,
                       enum fragmentation_by grouping)
{
    uint64_t key = 0, age = b->allocated_at < h->event ? h->event - b->allocated_at - 1 : h->event;
    switch (grouping) {
    case FRAGMENTATION_BY_SIZE:
        return b->size ? 64 - (uint64_t)__builtin_clzll(b->size) : 0;
    case FRAGMENTATION_BY_AGE:
        for (; age >= 10; age /= 10)
            key++;
        return key;
    case FRAGMENTATION_BY_THREAD:
        return b->allocated_at == FRAGMENTATION_BEFORE_START ? FRAGMENTATION_UNKNOWN : b->thread;
    case FRAGMENTATION_BY_SITE:
    case FRAGMENTATION_GROUPINGS:
        break;
    }
    return b->site;
}

static int group_of(struct finding *f, enum fragmentation_by grouping, uint64_t key,
                    uint32_t *number)
{
    struct fragmentation_groups *g = &f->out->by[grouping];
    struct fragmentation_group *found =
        MAP_ITEM(&f->index[grouping], key, &g->groups, &g->n, &g->capacity);
    if (!found)
        return -ENOMEM;
    if (!found->blocks)
        *found = (struct fragmentation_group){.key = key, .latest_page = UINT64_MAX};
    *number = (uint32_t)(found - g->groups);
    return 0;
}

static int add_block(struct finding *f, const struct fragmentation_block *from)
{
    struct placed_block *b = &f->blocks[f->n++];
    *b = (struct placed_block){.address = from->address, .bytes = from->bytes ? from->bytes : 1};
    f->out->blocks++;
    f->out->live_bytes += from->size;
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++) {
        if (group_of(f, grouping, key_of(f->heap, from, grouping), &b->groups[grouping]) < 0)
            return -ENOMEM;
        struct fragmentation_group *g = &f->out->by[grouping].groups[b->groups[grouping]];
        g->blocks++;
        g->live_bytes += from->size;
    }
    return 0;
}

static void add_share(struct finding *f, const struct block_part *p, uint64_t bytes)
{
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++) {
        struct fragmentation_group *g = &f->out->by[grouping].groups[p->block->groups[grouping]];
        g->stranded_bytes += bytes;
        g->sparse_pages += g->latest_page != f->page;
        g->latest_page = f->page;
    }
}

// Attributes the free bytes of a completed sparse page to its blocks, in proportion to the bytes of
// each block in the page. Each share is the difference between two rounded running sums, so the sum
// of the shares is exact.
static void end_page(struct finding *f)
{
    uint64_t page_bytes = f->out->page_bytes, live = 0, before = 0, shared = 0;
    for (size_t i = 0; i < f->n_pieces; i++)
        live += f->pieces[i].bytes;
    f->out->pages += f->n_pieces > 0;
    const struct fragmentation_heap *h = f->heap;
    if (f->n_pieces && live < page_bytes / 2 && (!h->counts || h->counts(h->context, f->page))) {
        f->out->sparse_pages++;
        f->out->stranded_bytes += page_bytes - live;
        for (size_t i = 0; i < f->n_pieces; i++) {
            before += f->pieces[i].bytes;
            uint64_t up_to_here = (page_bytes - live) * before / live;
            add_share(f, &f->pieces[i], up_to_here - shared);
            shared = up_to_here;
        }
    }
    f->n_pieces = 0;
}

static int add_piece(struct finding *f, const struct placed_block *b, uint64_t page, uint64_t bytes)
{
    if (page != f->page)
        end_page(f);
    f->page = page;
    return HT_APPEND(&f->pieces, &f->n_pieces, &f->pieces_capacity, (struct block_part){b, bytes});
}

// Adds only the first and the last page of a large block. Its other pages cannot be sparse.
static int add_pieces(struct finding *f, const struct placed_block *b)
{
    uint64_t page_bytes = f->out->page_bytes, end = b->address + b->bytes - 1;
    uint64_t first = b->address / page_bytes, last = end / page_bytes;
    if (end < b->address)
        return 0; // the address is not valid
    if (first == last)
        return add_piece(f, b, first, b->bytes);
    int rc = add_piece(f, b, first, page_bytes - b->address % page_bytes);
    if (rc < 0)
        return rc;
    f->out->pages += last - first - 1;
    return add_piece(f, b, last, end % page_bytes + 1);
}

static int by_address(const void *a, const void *b)
{
    const struct fragmentation_block *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

int fragmentation_find(struct fragmentation *out, const struct fragmentation_heap *h)
{
    struct finding f = {
        .out = out, .heap = h, .blocks = calloc(h->n + 1, sizeof *f.blocks), .page = UINT64_MAX};
    int rc = f.blocks ? 0 : -ENOMEM;
    *out = (struct fragmentation){.event = h->event, .page_bytes = h->page_bytes};
    if (h->n > 1)
        qsort(h->blocks, h->n, sizeof *h->blocks, by_address);
    for (size_t i = 0; rc == 0 && i < h->n; i++)
        rc = h->blocks[i].address ? add_block(&f, &h->blocks[i]) : 0;
    for (size_t i = 0; rc == 0 && i < f.n; i++)
        rc = add_pieces(&f, &f.blocks[i]);
    end_page(&f);
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++)
        map_release(&f.index[grouping]);
    free(f.blocks);
    free(f.pieces);
    return rc;
}

void fragmentation_release(struct fragmentation *h)
{
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++)
        free(h->by[grouping].groups);
    *h = (struct fragmentation){0};
}

void fragmentation_sort(struct fragmentation *h)
{
    for (unsigned grouping = 0; grouping < FRAGMENTATION_GROUPINGS; grouping++) {
        struct fragmentation_groups *g = &h->by[grouping];
        if (grouping != FRAGMENTATION_BY_SIZE && grouping != FRAGMENTATION_BY_AGE)
            HT_SORT(g->groups, g->n, SORT_DOWN(struct fragmentation_group, stranded_bytes),
                    SORT_UP(struct fragmentation_group, key));
        else
            HT_SORT(g->groups, g->n, SORT_UP(struct fragmentation_group, key));
    }
}

bool fragmentation_has_sites(const struct fragmentation_groups *g)
{
    return g->n > 1 || (g->n == 1 && g->groups[0].key);
}

void fragmentation_size_range(uint64_t key, uint64_t range[2])
{
    range[0] = key ? 1ull << (key - 1) : 0;
    range[1] = key ? range[0] - 1 + range[0] : 0;
}

void fragmentation_age_range(uint64_t key, uint64_t range[2])
{
    uint64_t from = 1;
    for (uint64_t i = 0; i < key && from <= UINT64_MAX / 10; i++)
        from *= 10;
    range[0] = key ? from : 0;
    range[1] = from > UINT64_MAX / 10 ? UINT64_MAX : from * 10 - 1;
}
