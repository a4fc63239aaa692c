// Reads the segments of mimalloc 2.0 in a running process. A segment is an aligned area that begins
// with a table of its slices. A page of mimalloc is a sequence of slices with blocks of one size.
// The offset of the table differs between versions, so each possible offset is tried.
#include "base/clock.h"
#include "record/attach/remote.h"
#include "record/look/look_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    SEGMENT_BYTES = 32 << 20, // MI_SEGMENT_SIZE
    SLICE_BYTES = 64 << 10,   // MI_SEGMENT_SLICE_SIZE
    SLICES = SEGMENT_BYTES / SLICE_BYTES,
    MAX_INFO_SLICES = 8,
    MIN_OFFSET = 64,
    MAX_OFFSET = 1024,
    TRIES = 3,
};

// mi_page_t of version 2.0.
struct mimalloc_slice {
    uint32_t count, offset;
    uint8_t bits;
    uint16_t capacity, reserved;
    uint8_t flags[2];
    uint64_t free;
    uint32_t used, block_bytes;
    uint64_t local_free, thread_free, heap, next, previous, padding;
};
_Static_assert(sizeof(struct mimalloc_slice) == 80, "mi_page_t has 80 bytes");

enum { TABLE_BYTES = MAX_OFFSET + SLICES * (int)sizeof(struct mimalloc_slice) };

struct mimalloc_reading {
    struct look *l;
    struct look_maps *maps;
    const struct remote *remote;
    uint64_t offset; // offset of the table in a segment, or 0 while unknown
    uint8_t table[(TABLE_BYTES + PAGE - 1) / PAGE * PAGE];
};

static struct mimalloc_slice slice_of(const struct mimalloc_reading *r, uint64_t offset, unsigned i)
{
    struct mimalloc_slice s;
    memcpy(&s, r->table + offset + i * sizeof s, sizeof s);
    return s;
}

// Reads the start of a segment. Pages that are not resident are read as zero.
static bool read_table(struct mimalloc_reading *r, uint64_t at)
{
    for (size_t i = 0; i < sizeof r->table; i += PAGE) {
        if (!look_resident_has(&r->maps->resident, at + i))
            memset(r->table + i, 0, PAGE);
        else if (!remote_read(r->remote, at + i, r->table + i, PAGE))
            return false;
    }
    return true;
}

static bool is_page(const struct mimalloc_slice *s)
{
    return s->block_bytes > 0 && s->reserved > 0;
}

// Returns true if the table at this offset is a sequence of pages and free slices.
static bool is_table(const struct mimalloc_reading *r, uint64_t offset)
{
    struct mimalloc_slice s = slice_of(r, offset, 0);
    unsigned i = s.count, pages = 0;
    if (!i || i > MAX_INFO_SLICES || s.offset)
        return false;
    for (; i < SLICES; i += s.count) {
        s = slice_of(r, offset, i);
        if (!s.count)
            break; // the segment contains a single block
        if (s.offset || s.count > SLICES - i || s.used > s.capacity || s.capacity > s.reserved ||
            (is_page(&s) && s.reserved > 1 &&
             (uint64_t)s.reserved * s.block_bytes > (uint64_t)s.count * SLICE_BYTES))
            return false;
        pages += is_page(&s);
    }
    return pages > 0;
}

static bool find_table(struct mimalloc_reading *r)
{
    if (r->offset)
        return is_table(r, r->offset);
    for (uint64_t offset = MIN_OFFSET; offset <= MAX_OFFSET && !r->offset; offset += 8)
        r->offset = is_table(r, offset) ? offset : 0;
    return r->offset;
}

// Counts the resident bytes of a page or of free slices. Returns the end address.
static uint64_t count_span(struct mimalloc_reading *r, const struct mimalloc_slice *s, uint64_t at)
{
    struct look_heap *h = &r->l->heap;
    uint64_t *owners = r->l->owners, bytes = (uint64_t)s->count * SLICE_BYTES,
             live = (uint64_t)s->used * s->block_bytes;
    // This is a block larger than a segment.
    if (is_page(s) && s->reserved == 1 && s->block_bytes > bytes)
        bytes = s->block_bytes;
    uint64_t resident = look_resident_bytes(&r->maps->resident, at, at + bytes);
    h->arena_bytes += bytes;
    h->free_bytes += bytes > live ? bytes - live : 0;
    if (!is_page(s) || !live) {
        owners[LOOK_FREE] += resident;
        return at + bytes;
    }
    h->blocks += s->used;
    h->live_bytes += live;
    owners[LOOK_LIVE] += resident < live ? resident : live;
    owners[LOOK_PINNED] += resident > live ? resident - live : 0;
    return at + bytes;
}

// Counts a segment whose table was read. Sets *end to the end of the segment.
static int count_segment(struct mimalloc_reading *r, uint64_t at, uint64_t *end)
{
    struct mimalloc_slice s = slice_of(r, r->offset, 0);
    unsigned i = s.count;
    uint64_t next = at + (uint64_t)i * SLICE_BYTES;
    r->l->owners[LOOK_OTHER] += look_resident_bytes(&r->maps->resident, at, next);
    for (; i < SLICES; i += s.count) {
        s = slice_of(r, r->offset, i);
        if (!s.count)
            break;
        next = count_span(r, &s, next);
    }
    *end = next;
    return look_maps_add_heap(r->maps, at, next);
}

static int read_segment(struct mimalloc_reading *r, uint64_t at, uint64_t *end)
{
    bool found = false;
    *end = at + SEGMENT_BYTES;
    for (unsigned i = 0; i < TRIES && !found; i++)
        found = read_table(r, at) && find_table(r);
    if (!found)
        return 0;
    r->l->heap.heaps++;
    return count_segment(r, at, end);
}

int look_mimalloc_read(struct look *l, struct look_maps *m, const struct remote *remote,
                       uint64_t until_ns)
{
    struct mimalloc_reading *r = malloc(sizeof *r);
    int rc = r ? 0 : -ENOMEM;
    if (r)
        *r = (struct mimalloc_reading){.l = l, .maps = m, .remote = remote};
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        const struct look_map *map = &m->all[i];
        uint64_t at = (map->start + SEGMENT_BYTES - 1) & ~(uint64_t)(SEGMENT_BYTES - 1);
        if (!map->is_anonymous || !map->is_writable)
            continue;
        while (rc == 0 && at < map->end && clock_monotonic_ns() < until_ns) {
            uint64_t end = at + SEGMENT_BYTES;
            if (look_resident_has(&m->resident, at))
                rc = read_segment(r, at, &end);
            at = (end + SEGMENT_BYTES - 1) & ~(uint64_t)(SEGMENT_BYTES - 1);
        }
    }
    l->heap.has_statistics = l->heap.heaps > 0;
    free(r);
    return rc;
}
