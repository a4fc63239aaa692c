// Reads the arenas of glibc's malloc in a running process. Threads allocate and free during the
// walk, so after a contradiction the memory is read again. If the contradiction persists, the walk
// continues at the next sequence of valid chunks, and the memory before that sequence counts as
// lost.
#include "base/buf.h"
#include "base/clock.h"
#include "record/attach/arena.h"
#include "record/attach/remote.h"
#include "record/look/look_private.h"
#include "record/processes/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    WINDOW = 64 << 10,
    MIN_GOOD_BINS = 100, // minimum number of consistent bins if threads change the arena
    MAX_HEAPS = 1 << 16,
    // Maximum number of pages read while searching for separately mapped blocks.
    MAX_PAGES = 1 << 16,
    TRIES = 3,
    TRY_NS = 2000000,
    CHAIN = 8, // number of valid chunks that confirm a position
    MAX_SKIPPED = 4 << 20,
    MAX_LOSSES = 1 << 16,
    CHUNK_FIELDS = 48, // header of a free chunk; malloc_trim keeps its page
    CHUNKS_PER_CHECK = 4096,
    CACHE_CHUNK = 656, // struct arena_cache with its header
    MAX_LIBC_BYTES = 4 << 20,
    MUCH_FREE = 256 << 10,
};

struct heap_reading {
    struct look *l;
    struct look_maps *maps;
    struct remote *remote;
    uint64_t until_ns;
    struct arena_data data;
    uint64_t main_arena;
    bool has_parameters;
    struct arena_parameters parameters;
    uint64_t window_at;
    size_t window_bytes, window_next;
    uint8_t *window;
    unsigned losses;
    uint64_t cached_blocks;
    bool has_long_lists; // not all lists of freed blocks were read before the time limit
    uint64_t page, page_bytes, page_blocks; // live bytes and blocks in the current page of the walk
};

// Part of an arena whose memory is contiguous.
struct segment {
    uint64_t start, end; // range of the chunks
    uint64_t flag;       // flag of chunks in use
    bool is_last;        // the segment ends with the top chunk
};

static bool is_late(const struct heap_reading *r)
{
    return clock_monotonic_ns() > r->until_ns;
}

static int set_why(struct heap_reading *r, bool corrupt, const char *why)
{
    r->l->heap.is_corrupt |= corrupt;
    snprintf(r->l->heap.why_not, sizeof r->l->heap.why_not, "%.*s",
             (int)sizeof r->l->heap.why_not - 1, why);
    return 0;
}

static bool read_resident(const struct heap_reading *r, uint64_t at, void *to, size_t bytes)
{
    const struct look_resident *pages = &r->maps->resident;
    return look_resident_has(pages, at) && look_resident_has(pages, at + bytes - 1) &&
           remote_read(r->remote, at, to, bytes);
}

static unsigned count_good_bins(const struct heap_reading *r, const struct arena *a, uint64_t at)
{
    unsigned good = 0;
    for (unsigned i = 0; i < ARENA_BINS; i++) {
        uint64_t self = arena_bin(at, i), first = a->bins[2 * i], back;
        good += first == self ? a->bins[2 * i + 1] == self
                              : read_resident(r, first + 24, &back, sizeof back) && back == self;
    }
    return good;
}

static bool has_sizes(const struct arena *a)
{
    return a->system_mem % PAGE == 0 && a->system_mem <= a->max_system_mem &&
           a->attached_threads < UINT32_MAX;
}

// Finds the main arena: the address in libc's variables with the most bins that are rings.
static void find_main_arena(struct heap_reading *r)
{
    unsigned most = MIN_GOOD_BINS;
    for (uint64_t at = r->data.start; at + sizeof(struct arena) <= r->data.end; at += 8) {
        const struct arena *a =
            (const struct arena *)(const void *)(r->data.bytes + (at - r->data.start));
        unsigned good = arena_has_empty_bin(a, at) && has_sizes(a) ? count_good_bins(r, a, at) : 0;
        if (good > most) {
            most = good;
            r->main_arena = at;
        }
    }
}

// Reads two words. Uses larger windows while the walk is sequential.
static bool read_head(struct heap_reading *r, uint64_t at, uint64_t end, uint64_t head[2])
{
    uint64_t offset = at - r->window_at;
    if (offset > r->window_bytes || r->window_bytes - offset < 16) {
        bool follows = offset <= r->window_bytes + PAGE;
        r->window_next = follows && r->window_next < WINDOW ? 2 * r->window_next
                         : follows                          ? WINDOW
                                                            : PAGE;
        uint64_t last = look_resident_end(&r->maps->resident, at);
        last = last < end ? last : end;
        r->window_at = at;
        r->window_bytes = last - at < r->window_next ? (size_t)(last - at) : r->window_next;
        offset = 0;
        if (last <= at || r->window_bytes < 16 ||
            !remote_read(r->remote, at, r->window, r->window_bytes)) {
            r->window_bytes = 0;
            return false;
        }
    }
    memcpy(head, r->window + offset, 16);
    return true;
}

// State of the chunk at an address, according to the next header.
enum chunk { CHUNK_BAD, CHUNK_USED, CHUNK_UNUSED, CHUNK_LAST };

static bool is_size(const struct segment *s, uint64_t at, uint64_t bytes)
{
    return bytes >= 32 && bytes % 16 == 0 && bytes <= s->end - at - 16;
}

static enum chunk read_chunk(struct heap_reading *r, const struct segment *s, uint64_t at,
                             uint64_t *bytes)
{
    uint64_t head[2], next[2];
    *bytes = 0;
    if (at >= s->end || s->end - at < 32)
        return CHUNK_LAST;
    if (!read_head(r, at, s->end, head))
        return CHUNK_BAD;
    uint64_t size = head[1] & ~ARENA_SIZE_FLAGS, flags = head[1] & (ARENA_MMAPPED | ARENA_NON_MAIN);
    *bytes = size;
    // The top chunk ends at the end of the heap, which may have grown. Other heaps end with two
    // small chunks (fenceposts).
    if (s->is_last ? size >= s->end - at && size - (s->end - at) < ARENA_HEAP_BYTES &&
                         size % 16 == 0 && head[1] & ARENA_PREV_INUSE
                   : s->end - at <= 64 && size < s->end - at)
        return CHUNK_LAST;
    if (!is_size(s, at, size) || !read_head(r, at + size, s->end, next))
        return CHUNK_BAD;
    if (next[1] & ARENA_PREV_INUSE)
        return flags == s->flag ? CHUNK_USED : CHUNK_BAD;
    return next[0] == size && !(flags & ARENA_MMAPPED) ? CHUNK_UNUSED : CHUNK_BAD;
}

static bool is_chain(struct heap_reading *r, const struct segment *s, uint64_t at)
{
    for (unsigned i = 0; i < CHAIN; i++) {
        uint64_t bytes;
        enum chunk c = read_chunk(r, s, at, &bytes);
        if (c == CHUNK_BAD || c == CHUNK_LAST)
            return c == CHUNK_LAST;
        at += bytes;
    }
    return true;
}

// Remembers the first invalid chunk. If the chunk at the address has a valid size but the next
// chunk does not, the invalid chunk is the next one; otherwise, it is the chunk at the address.
// Ignores headers in swapped-out pages. Also ignores chunks of 16 bytes, which malloc writes at the
// end of its memory when the program itself has called sbrk.
static void keep_bad(struct heap_reading *r, const struct segment *s, uint64_t at, uint64_t bytes)
{
    struct look_heap *h = &r->l->heap;
    uint64_t head[2];
    bool next = is_size(s, at, bytes);
    if (h->bad_at || !read_resident(r, next ? at + bytes : at, head, sizeof head))
        return;
    uint64_t size = head[1] & ~ARENA_SIZE_FLAGS;
    if (next && is_size(s, at + bytes, size)) {
        h->bad_at = at;
        h->bad_size = bytes;
    } else if (size != 16) {
        h->bad_at = next ? at + bytes : at;
        h->bad_size = size;
    }
}

// Returns the next position from which valid chunks follow, or 0.
static uint64_t skip_bad(struct heap_reading *r, const struct segment *s, uint64_t at)
{
    struct look_heap *h = &r->l->heap;
    uint64_t bytes;
    for (unsigned i = 0; i < TRIES; i++) {
        r->window_bytes = 0;
        if (read_chunk(r, s, at, &bytes) != CHUNK_BAD)
            return at;
    }
    keep_bad(r, s, at, bytes);
    if (++r->losses > MAX_LOSSES)
        return 0;
    const struct look_resident *pages = &r->maps->resident;
    for (uint64_t next = at + 16, tried = 0; tried < MAX_SKIPPED && !is_late(r); next += 16) {
        next = look_resident_next(pages, next);
        if (next >= s->end)
            return 0;
        if (is_chain(r, s, next)) {
            uint64_t lost = look_resident_bytes(pages, at, next);
            h->lost_bytes += lost;
            r->l->owners[LOOK_UNREAD] += lost;
            return next;
        }
        tried += 16;
    }
    return 0;
}

// Adds a block to the counts of the pages that contain it. A block is in at most two pages.
static void count_in_page(struct heap_reading *r, uint64_t at, uint64_t size)
{
    struct look_heap *h = &r->l->heap;
    for (uint64_t end = at + size, next; at < end; at = next) {
        next = (at / PAGE + 1) * PAGE < end ? (at / PAGE + 1) * PAGE : end;
        if (at / PAGE != r->page) {
            bool pins = r->page_bytes < PAGE / 2;
            h->pinning_blocks += pins ? r->page_blocks : 0;
            h->pinning_bytes += pins ? r->page_bytes : 0;
            r->page = at / PAGE;
            r->page_bytes = r->page_blocks = 0;
        }
        r->page_bytes += next - at;
        r->page_blocks += next == end;
    }
}

static void count_used(struct heap_reading *r, uint64_t at, uint64_t size)
{
    struct look_heap *h = &r->l->heap;
    struct arena_cache c;
    h->blocks++;
    h->live_bytes += size - 8;
    h->largest_bytes = size - 8 > h->largest_bytes ? size - 8 : h->largest_bytes;
    // The page of the chunk's header is resident, so small blocks count as resident.
    r->l->owners[LOOK_LIVE] +=
        size < PAGE ? size : look_resident_bytes(&r->maps->resident, at, at + size + PAGE - 1);
    if (size < PAGE)
        count_in_page(r, at, size);
    else
        r->page_blocks = r->page_bytes = 0;
    if (size != CACHE_CHUNK || !read_resident(r, at + 16, &c, sizeof c))
        return;
    uint64_t bytes = 0, blocks = 0;
    for (unsigned i = 0; i < ARENA_CACHED_SIZES; i++) {
        if (c.counts[i] > 127 || c.entries[i] % 16 || !c.counts[i] != !c.entries[i])
            return; // the block belongs to the program
        bytes += c.counts[i] * (32 + 16ull * i);
        blocks += c.counts[i];
    }
    r->l->owners[LOOK_CACHED] += bytes;
    r->cached_blocks += blocks;
}

static void count_unused(struct heap_reading *r, uint64_t at, uint64_t size)
{
    r->l->heap.free_bytes += size;
    if (size > PAGE)
        r->l->owners[LOOK_FREE] +=
            look_resident_bytes(&r->maps->resident, at + CHUNK_FIELDS, at + size);
}

static void count_top(struct heap_reading *r, const struct segment *s, uint64_t at)
{
    uint64_t resident = look_resident_bytes(&r->maps->resident, at + CHUNK_FIELDS, s->end);
    bool is_main = !s->flag;
    r->l->heap.free_bytes += s->end - at;
    r->l->heap.main_top_bytes += is_main ? resident : 0;
    r->l->owners[is_main ? LOOK_FREE : LOOK_TOP] += resident;
}

// Counts the chunks of a segment. After the time limit, the rest of the segment counts as unread.
static void walk_segment(struct heap_reading *r, const struct segment *s)
{
    uint64_t at = s->start, bytes;
    r->window_bytes = 0;
    r->window_next = PAGE;
    for (unsigned n = 1; at < s->end; n++) {
        enum chunk c =
            n % CHUNKS_PER_CHECK == 0 && is_late(r) ? CHUNK_BAD : read_chunk(r, s, at, &bytes);
        if (c == CHUNK_LAST) {
            if (s->is_last && at < s->end)
                count_top(r, s, at);
            at = s->end;
        } else if (c == CHUNK_BAD) {
            uint64_t next = is_late(r) ? 0 : skip_bad(r, s, at);
            if (!next)
                break;
            at = next;
        } else {
            (c == CHUNK_USED ? count_used : count_unused)(r, at, bytes);
            at += bytes;
        }
    }
    const struct look_resident *pages = &r->maps->resident;
    r->l->owners[LOOK_UNREAD] += look_resident_bytes(pages, at, s->end + PAGE - 1);
    r->l->heap.read_bytes += look_resident_bytes(pages, s->start & ~(uint64_t)(PAGE - 1), at);
}

static uint64_t sum_counted(const uint64_t owners[LOOK_OWNERS])
{
    return owners[LOOK_LIVE] + owners[LOOK_FREE] + owners[LOOK_TOP] + owners[LOOK_UNREAD];
}

static int walk_range(struct heap_reading *r, const struct segment *s, uint64_t from)
{
    uint64_t *owners = r->l->owners, before = sum_counted(owners);
    walk_segment(r, s);
    uint64_t counted = sum_counted(owners) - before;
    uint64_t resident = look_resident_bytes(&r->maps->resident, from, s->end);
    owners[LOOK_PINNED] += resident > counted ? resident - counted : 0;
    r->l->heap.arena_bytes += s->end - from;
    return look_maps_add_heap(r->maps, from, s->end);
}

// Finds the brk area. In a forked process that has grown its heap, the area consists of two
// mappings. The end is 0 if there is no such area.
static struct look_range find_brk(const struct look_maps *m)
{
    struct look_range brk = {0, 0};
    for (size_t i = 0; i < m->n; i++) {
        if (!m->all[i].is_brk)
            continue;
        brk.start = brk.end ? brk.start : m->all[i].start;
        brk.end = m->all[i].end;
    }
    return brk;
}

static int walk_main(struct heap_reading *r, const struct arena *a)
{
    struct look_range brk = find_brk(r->maps);
    if (a->top == arena_bin(r->main_arena, 0) || !brk.end) // never used
        return 0;
    struct segment s = {.start = brk.start, .end = brk.end, .is_last = true};
    if (r->has_parameters && r->parameters.sbrk_base >= brk.start &&
        r->parameters.sbrk_base < brk.end)
        s.start = (r->parameters.sbrk_base + 15) & ~15ull;
    // After a failed sbrk, the main arena continues in mappings.
    s.is_last = a->top >= s.start && a->top < s.end;
    if (s.is_last && s.start + a->system_mem > a->top && s.start + a->system_mem < s.end)
        s.end = s.start + a->system_mem;
    return walk_range(r, &s, s.start);
}

// Reads the heaps from the last to the first. The first heap contains the arena.
static int walk_heaps(struct heap_reading *r, uint64_t arena, const struct arena *a)
{
    uint64_t at = a->top & ~(ARENA_HEAP_BYTES - 1);
    for (unsigned i = 0; at && i < MAX_HEAPS; i++) {
        struct arena_heap h;
        if (!read_resident(r, at, &h, sizeof h) || h.arena != arena || h.size > ARENA_HEAP_BYTES ||
            h.size < PAGE || h.size % PAGE || h.prev % ARENA_HEAP_BYTES)
            return -EBADMSG;
        uint64_t start = at + sizeof h + (h.prev ? 0 : sizeof *a);
        struct segment s = {(start + 15) & ~15ull, at + h.size, ARENA_NON_MAIN, i == 0};
        int rc = walk_range(r, &s, at);
        if (rc < 0)
            return rc;
        r->l->heap.heaps++;
        at = h.prev;
    }
    return at ? -EBADMSG : 0;
}

// Reads the head of a freed chunk and its link. If the chunk is near the last one, reads a window,
// because successive chunks of a list are often near each other, in any order. Otherwise reads a
// page.
static bool read_freed(struct heap_reading *r, uint64_t at, uint64_t words[3])
{
    const struct look_resident *pages = &r->maps->resident;
    if (at - r->window_at > r->window_bytes || r->window_bytes - (at - r->window_at) < 24) {
        bool is_near = at / WINDOW == r->window_at / WINDOW;
        uint64_t from = at & ~(is_near ? WINDOW - 1ull : PAGE - 1ull);
        if (look_resident_end(pages, from) <= at)
            from = at & ~(PAGE - 1ull);
        uint64_t bytes = look_resident_end(pages, from) - from, most = is_near ? WINDOW : PAGE;
        r->window_at = from;
        r->window_bytes = (size_t)(bytes < most ? bytes : most);
        if (!bytes || !remote_read(r->remote, from, r->window, r->window_bytes))
            r->window_bytes = 0;
        if (at - from + 24 > r->window_bytes) // continues on the next page
            return read_resident(r, at, words, 24);
    }
    memcpy(words, r->window + (at - r->window_at), 24);
    return true;
}

static void count_fastbins(struct heap_reading *r, const struct arena *a)
{
    r->window_bytes = 0;
    for (unsigned i = 0; i < ARENA_FASTBINS; i++) {
        uint64_t at = a->fastbins[i], size = 32 + 16ull * i, words[3];
        for (uint64_t n = 1; at && n * size <= a->system_mem; n++) {
            if (n % CHUNKS_PER_CHECK == 0 && is_late(r)) {
                r->has_long_lists = true;
                return;
            }
            if (at % 16 || !read_freed(r, at, words) || (words[1] & ~ARENA_SIZE_FLAGS) != size)
                break;
            r->l->owners[LOOK_CACHED] += size;
            r->cached_blocks++;
            at = (at + 16) >> 12 ^ words[2];
        }
    }
}

static bool read_arena(const struct heap_reading *r, uint64_t at, struct arena *a)
{
    return at % 8 == 0 &&
           (at == r->main_arena || at % ARENA_HEAP_BYTES == sizeof(struct arena_heap)) &&
           remote_read(r->remote, at, a, sizeof *a) && has_sizes(a);
}

// Returns the number of arenas, or 0 if the list does not return to the main arena.
static unsigned count_arenas(const struct heap_reading *r)
{
    uint64_t at = r->main_arena;
    struct arena a;
    for (unsigned n = 1; n <= ARENA_MAX && read_arena(r, at, &a); n++) {
        at = a.next;
        if (at == r->main_arena)
            return n;
    }
    return 0;
}

static uint64_t sum_free(const struct heap_reading *r)
{
    return r->l->owners[LOOK_FREE] + r->l->owners[LOOK_TOP] + r->l->owners[LOOK_PINNED];
}

static int walk_arena(struct heap_reading *r, uint64_t at, const struct arena *a)
{
    struct look_heap *h = &r->l->heap;
    uint64_t before = sum_free(r);
    int rc = at == r->main_arena ? walk_main(r, a) : walk_heaps(r, at, a);
    if (rc == -EBADMSG)
        set_why(r, false, "a heap of an arena is not as expected");
    count_fastbins(r, a);
    uint64_t is_free = sum_free(r) - before;
    h->free_arenas += is_free >= MUCH_FREE;
    h->other_free_bytes += at == r->main_arena ? 0 : is_free;
    return rc == -ENOMEM ? rc : 0;
}

static int walk_arenas(struct heap_reading *r)
{
    struct look_heap *h = &r->l->heap;
    uint64_t at = r->main_arena;
    struct arena a;
    for (unsigned i = 0; i < TRIES && !h->arenas; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
        h->arenas = count_arenas(r);
    }
    if (!h->arenas)
        return set_why(r, true, "the list of glibc's arenas is corrupt");
    h->is_read = true;
    for (unsigned i = 0; i < h->arenas && read_arena(r, at, &a); i++) {
        int rc = walk_arena(r, at, &a);
        if (rc < 0)
            return rc;
        at = a.next;
    }
    return 0;
}

// If a block's mapping starts at the address, returns the size of the mapping, else 0. realloc may
// have enlarged the block since the mappings were read.
static uint64_t read_mapped(const struct heap_reading *r, uint64_t at, uint64_t end)
{
    uint64_t head[2] = {0};
    if (!read_resident(r, at, head, sizeof head))
        return 0;
    uint64_t size = head[1] & ~ARENA_SIZE_FLAGS, before = size < end - at ? size : end - at;
    return !head[0] && (head[1] & ARENA_SIZE_FLAGS) == ARENA_MMAPPED && size % PAGE == 0 &&
                   size / 2 <= before
               ? before
               : 0;
}

// Returns the end of the heap that starts at the address, or 0.
static uint64_t find_heap_end(const struct look_maps *m, uint64_t at)
{
    for (size_t i = 0; at % ARENA_HEAP_BYTES == 0 && i < m->n_heap; i++) {
        if (m->heap[i].start == at)
            return m->heap[i].end;
    }
    return 0;
}

static int add_mapped(struct heap_reading *r, uint64_t at, uint64_t size)
{
    struct look_heap *h = &r->l->heap;
    uint64_t resident = look_resident_bytes(&r->maps->resident, at, at + size);
    h->mapped++;
    h->mapped_bytes += size;
    h->mapped_resident_bytes += resident;
    h->largest_bytes = size > h->largest_bytes ? size : h->largest_bytes;
    r->l->owners[LOOK_LIVE] += resident;
    return look_maps_add_heap(r->maps, at, at + size);
}

// Finds blocks that malloc mapped separately. Their mappings may be adjacent.
static int find_mapped(struct heap_reading *r, const struct look_map *m, unsigned *pages)
{
    const struct look_heap *h = &r->l->heap;
    int rc = 0;
    for (uint64_t at = m->start; rc == 0 && at < m->end && *pages < MAX_PAGES;) {
        at = look_resident_next(&r->maps->resident, at);
        uint64_t end = at < m->end ? find_heap_end(r->maps, at) : 0;
        if (end) {
            at = end;
            continue;
        }
        uint64_t size = at < m->end ? read_mapped(r, at, m->end) : 0;
        *pages += !size;
        if (size && r->has_parameters && h->mapped_bytes + size > r->parameters.mmapped_mem)
            return 0;
        rc = size ? add_mapped(r, at, size) : 0;
        at += size ? size : PAGE;
    }
    return rc;
}

static bool may_have_blocks(const struct look_map *m)
{
    return m->owner == LOOK_ANONYMOUS && m->is_writable && !m->is_brk && m->rss_bytes;
}

// Counts a block that realloc has moved since the mappings were read. Such a block was in a mapping
// of about the missing size, and the mapping no longer exists.
static int add_moved(struct heap_reading *r, uint64_t missing)
{
    uint64_t word;
    for (size_t i = 0; i < r->maps->n; i++) {
        const struct look_map *m = &r->maps->all[i];
        uint64_t size = m->end - m->start;
        if (may_have_blocks(m) && size / 2 <= missing && missing / 2 <= size &&
            !remote_read(r->remote, m->start, &word, sizeof word))
            return add_mapped(r, m->start, size);
    }
    return 0;
}

static int walk_mapped(struct heap_reading *r)
{
    struct look_heap *h = &r->l->heap;
    unsigned pages = 0;
    int rc = 0;
    if (r->has_parameters && !r->parameters.n_mmaps)
        return 0;
    for (size_t i = 0; rc == 0 && i < r->maps->n; i++) {
        const struct look_map *m = &r->maps->all[i];
        if (may_have_blocks(m) && !is_late(r))
            rc = find_mapped(r, m, &pages);
    }
    if (rc == 0 && r->has_parameters && r->parameters.mmapped_mem > h->mapped_bytes + MUCH_FREE)
        rc = add_moved(r, r->parameters.mmapped_mem - h->mapped_bytes);
    h->blocks += h->mapped;
    h->live_bytes += h->mapped_bytes;
    return rc;
}

// Subtracts cached blocks from the live blocks, because cached blocks have the flags of blocks in
// use.
static void subtract_cached(struct heap_reading *r)
{
    struct look_heap *h = &r->l->heap;
    uint64_t *owners = r->l->owners, cached = owners[LOOK_CACHED];
    cached = cached < owners[LOOK_LIVE] ? cached : owners[LOOK_LIVE];
    owners[LOOK_CACHED] = cached;
    owners[LOOK_LIVE] -= cached;
    uint64_t usable = cached - (cached < 8 * r->cached_blocks ? cached : 8 * r->cached_blocks);
    h->live_bytes -= usable < h->live_bytes ? usable : h->live_bytes;
    h->blocks -= r->cached_blocks < h->blocks ? r->cached_blocks : h->blocks;
    if (!r->has_long_lists)
        return;
    // Count live blocks as unread, because each may be in the part of the lists that was not read.
    owners[LOOK_UNREAD] += owners[LOOK_LIVE];
    owners[LOOK_LIVE] = 0;
}

// Reads the file of libc. If the file was replaced, reads the mappings instead. Returns the number
// of bytes read.
static size_t read_libc(const struct heap_reading *r, char *bytes, size_t room)
{
    const struct look_map *libc = look_maps_find(r->maps, r->remote->libc);
    char path[64 + LOOK_NAME];
    size_t n = 0;
    if (!libc)
        return 0;
    snprintf(path, sizeof path, "/proc/%ld/root%s", (long)r->remote->pid,
             r->maps->names[libc->name].name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, bytes, room) : 0;
    proc_file_close(fd);
    for (const struct look_map *m = libc; fd < 0 && m < r->maps->all + r->maps->n; m++) {
        size_t size = m->end - m->start;
        if (m->name == libc->name && !m->is_writable && size <= room - n &&
            remote_read(r->remote, m->start, bytes + n, size))
            n += size;
    }
    return fd >= 0 && got > 0 ? (size_t)got : n;
}

// Copies the version from the string "... release version 2.36."
static void read_version(const struct heap_reading *r, char version[16])
{
    static const char words[] = "release version ";
    char *bytes = malloc(MAX_LIBC_BYTES);
    size_t n = bytes ? read_libc(r, bytes, MAX_LIBC_BYTES - 1) : 0;
    const char *at = n ? memmem(bytes, n, words, sizeof words - 1) : NULL;
    if (at) {
        bytes[n] = 0;
        snprintf(version, 16, "%.15s", at + sizeof words - 1);
        version[strspn(version, "0123456789.")] = 0;
        size_t length = strlen(version);
        if (length && version[length - 1] == '.')
            version[length - 1] = 0;
    }
    free(bytes);
}

static enum software_allocator find_allocator(struct remote *r)
{
    uint64_t at = remote_function(r, "malloc");
    if (at && remote_is_libc(r, at))
        return r->libc == r->loader ? SOFTWARE_MUSL : SOFTWARE_GLIBC;
    for (unsigned i = 0; i < SOFTWARE_ALLOCATORS; i++) {
        for (unsigned k = 0; k < 2; k++) {
            const char *function = software_allocators[i].functions[k];
            if (function && remote_function(r, function))
                return i;
        }
    }
    return SOFTWARE_OTHER_ALLOCATOR;
}

static int read_arenas(struct heap_reading *r)
{
    int rc = arena_read_data(&r->data, r->remote);
    if (rc < 0)
        return rc == -ENOMEM ? rc : set_why(r, false, "the memory of libc cannot be read");
    r->has_parameters = arena_find_parameters(&r->data, &r->parameters) == 1;
    if (r->has_parameters) {
        r->l->heap.trim_threshold = r->parameters.trim_threshold;
        r->l->heap.mmap_threshold = r->parameters.mmap_threshold;
        r->l->heap.arena_max = r->parameters.arena_max;
    }
    find_main_arena(r);
    // The process has never allocated memory.
    if (!r->main_arena && r->has_parameters && !r->parameters.sbrk_base && !r->parameters.n_mmaps) {
        r->l->heap.is_read = true;
        return 0;
    }
    if (!r->main_arena)
        return set_why(r, false, "glibc's main arena was not found");
    rc = walk_arenas(r) ?: walk_mapped(r);
    subtract_cached(r);
    return rc;
}

static int read_malloc(struct heap_reading *r)
{
    struct look_heap *h = &r->l->heap;
    h->allocator = find_allocator(r->remote);
    if (h->allocator == SOFTWARE_MIMALLOC)
        return look_mimalloc_read(r->l, r->maps, r->remote, r->until_ns);
    if (h->allocator != SOFTWARE_GLIBC)
        return 0;
    read_version(r, h->version);
    if (!arena_is_known(h->version)) {
        snprintf(h->why_not, sizeof h->why_not, "the layout of glibc %s is unknown",
                 h->version[0] ? h->version : "without a version");
        return 0;
    }
    r->window = malloc(WINDOW);
    int rc = r->window ? read_arenas(r) : -ENOMEM;
    free(r->window);
    free(r->data.bytes);
    return rc;
}

int look_heap_read(struct look *l, struct look_maps *m, uint64_t until_ns, struct err *e)
{
    struct remote remote;
    struct heap_reading r = {.l = l, .maps = m, .remote = &remote, .until_ns = until_ns};
    struct err why = {0};
    int rc = remote_open(&remote, l->pid, &why);
    l->heap.allocator = SOFTWARE_UNKNOWN_ALLOCATOR;
    if (rc == -ESRCH || rc == -ENOMEM)
        return err_set(e, rc, "%s", why.text);
    if (rc < 0) {
        // The text is, for example, "PID: is statically linked".
        const char *colon = strstr(why.text, ": "), *text = colon ? colon + 2 : why.text;
        bool is_verb = strncmp(text, "is ", 3) == 0 || strncmp(text, "has ", 4) == 0;
        snprintf(l->heap.why_not, sizeof l->heap.why_not, "%s%.150s", is_verb ? "the process " : "",
                 text);
        return 0;
    }
    rc = read_malloc(&r);
    if (remote_is_over(&remote))
        rc = remote_set_over(&remote, e);
    remote_close(&remote);
    return rc == -ENOMEM ? err_no_memory(e, NULL) : rc;
}
